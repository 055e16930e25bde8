import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;

/** Uses so many seconds of CPU time for each move, all threads of the machine together, and makes garbage. */
public class BusyBot {
    static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    static final byte[][] KEPT = new byte[2000][];

    static void think(double seconds) {
        long began = SYSTEM.getProcessCpuTime();
        long until = began + (long) (seconds * 1e9);
        int count = 0;
        while (SYSTEM.getProcessCpuTime() < until) {
            for (int i = 0; i < 100; i++) {
                KEPT[count++ % KEPT.length] = new byte[20_000];
            }
        }
        System.err.printf("%.6f%n", (SYSTEM.getProcessCpuTime() - began) / 1e9);
    }

    static int firstMove(String board, boolean south) {
        String[] counts = board.split(",");
        for (int pit = 0; pit < counts.length / 2 - 1; pit++) {
            if (!counts[(south ? counts.length / 2 : 0) + pit].equals("0")) {
                return pit + 1;
            }
        }
        return 1;
    }

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(args[0]);
        String.format("%.6f%n", seconds);  // the first one loads classes, which would count in the first turn
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        boolean south = false;
        for (String line = in.readLine(); line != null && !line.equals("END"); line = in.readLine()) {
            String[] words = line.split(";");
            if (words[0].equals("START")) {
                south = words[1].equals("South");
                if (south) {
                    think(seconds);
                    System.out.println("MOVE;1");
                }
                continue;
            }
            if (words[1].equals("SWAP")) {
                south = !south;
            }
            if (words[3].equals("YOU")) {
                think(seconds);
                System.out.println("MOVE;" + firstMove(words[2], south));
            }
        }
        System.exit(0);
    }
}
