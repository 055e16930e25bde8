import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Searches with one thread for each core, and ends the program in another thread than the reading one. */
public class ExecutorBot extends Kalah {
    private final ExecutorService pool =
            Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());

    @Override
    int choose(int[] own, int[] other) throws Exception {
        List<Future<Integer>> values = new ArrayList<>();
        for (int i = 0; i < own.length - 1; i++) {
            int hole = i;
            values.add(pool.submit(() -> own[hole] == 0 ? -1 : value(own[hole], own.length - 1 - hole)));
        }
        int best = 0;
        for (int i = 1; i < values.size(); i++) {
            if (values.get(i).get() > values.get(best).get()) best = i;
        }
        return best + 1;
    }

    private static int value(int seeds, int distance) {
        int work = 0;
        for (int i = 0; i < 1_000_000; i++) work = work * 31 + i;
        return seeds == distance ? 200 : seeds + (work & 1);
    }

    @Override
    void onEnd() throws Exception {
        Thread closing = new Thread(() -> System.exit(0));
        closing.start();
        closing.join();
    }

    public static void main(String[] arguments) throws Exception {
        new ExecutorBot().play();
    }
}
