import java.util.Arrays;

/** Fills a transposition table of 200 MB in a heap of the default size. */
public class TableBot extends Kalah {
    private long[] table;

    @Override
    void onStart() {
        table = new long[25_000_000];
        Arrays.fill(table, -1);
    }

    @Override
    int choose(int[] own, int[] other) {
        int slot = Math.floorMod(Arrays.hashCode(own) * 31 + Arrays.hashCode(other), table.length);
        if (table[slot] < 0) table[slot] = bestHole(own);
        return own[(int) table[slot] - 1] > 0 ? (int) table[slot] : bestHole(own);
    }

    public static void main(String[] arguments) throws Exception {
        new TableBot().play();
    }
}
