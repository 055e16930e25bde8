import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Keeps many boxed entries in a HashMap, and 64 MB of garbage at each move. */
public class HashMapBot extends Kalah {
    private static final int ENTRIES = 1_000_000;
    private final Map<Long, Integer> seen = new HashMap<>();
    private final List<byte[]> garbage = new ArrayList<>();
    private long key;

    @Override
    int choose(int[] own, int[] other) {
        for (int i = 0; i < 100_000 && seen.size() < ENTRIES; i++) {
            key = key * 6364136223846793005L + 1442695040888963407L;
            seen.put(key, i);
        }
        for (int i = 0; i < 1_000; i++) garbage.add(new byte[1 << 16]);
        garbage.clear();
        return bestHole(own);
    }

    public static void main(String[] arguments) throws Exception {
        new HashMapBot().play();
    }
}
