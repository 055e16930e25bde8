import java.io.File;

/** Chooses its move with a native library that lies beside its jar (JNI). */
public class NativeBot extends Kalah {
    private static native int chooseHole(int[] own);

    @Override
    int choose(int[] own, int[] other) {
        return chooseHole(own);
    }

    public static void main(String[] arguments) throws Exception {
        File jar = new File(NativeBot.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        System.load(new File(jar.getParentFile(), "libnativebot.so").getAbsolutePath());
        new NativeBot().play();
    }
}
