/* Computes for ever in as many threads as it may start: without them, one thread of the bot is left. */
#include <pthread.h>

static void *spin(void *unused) {
    for (;;) __asm__ volatile("");
    return unused;
}

int main(void) {
    pthread_t thread;
    while (pthread_create(&thread, 0, spin, 0) == 0) {
    }
    spin(0);
}
