import java.util.Arrays;

/** Makes its table half as large as Runtime.maxMemory(), and 400 MB at most. */
public class MaxMemoryBot extends Kalah {
    private static final long MOST = 400L << 20;
    private final int[] table = new int[(int) (Math.min(MOST, Runtime.getRuntime().maxMemory() / 2) / 4)];

    @Override
    void onStart() {
        Arrays.fill(table, 1);
        System.err.println("a table of " + (table.length >> 18) + " MB");
    }

    @Override
    int choose(int[] own, int[] other) {
        return table[table.length - 1] * bestHole(own);
    }

    public static void main(String[] arguments) throws Exception {
        new MaxMemoryBot().play();
    }
}
