/* The native method of NativeBot.java. */
#include <jni.h>

JNIEXPORT jint JNICALL Java_NativeBot_chooseHole(JNIEnv *env, jclass class, jintArray own) {
    jint seeds[64], best = -1, pits = (*env)->GetArrayLength(env, own) - 1;
    (*env)->GetIntArrayRegion(env, own, 0, pits, seeds);
    for (jint i = 0; i < pits; i++)
        if (seeds[i] > 0 && (best < 0 || seeds[i] >= seeds[best])) best = i;
    return best + 1;
}
