/** Takes five seconds to start. */
public class SlowStartBot extends Kalah {
    private static final int[] VALUES = precomputed();

    private static int[] precomputed() {
        int[] values = new int[1 << 16];
        long until = System.nanoTime() + 5_000_000_000L;
        for (int pass = 1; System.nanoTime() < until; pass++) {
            for (int i = 0; i < values.length; i++) values[i] = values[i] * 31 + pass;
            try {
                Thread.sleep(20);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        return values;
    }

    @Override
    int choose(int[] own, int[] other) {
        return VALUES.length > 0 ? bestHole(own) : 1;
    }

    public static void main(String[] arguments) throws Exception {
        new SlowStartBot().play();
    }
}
