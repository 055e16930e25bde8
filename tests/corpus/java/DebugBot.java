import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Random;
import java.util.Scanner;

/** Prints a banner and 64 KB of debug text for each move on standard error; reads with a Scanner. */
public class DebugBot extends Kalah {
    private final Scanner input = new Scanner(System.in);
    private final Random random = new Random(new SecureRandom().nextLong());

    @Override
    String readLine() {
        return input.hasNextLine() ? input.nextLine() : null;
    }

    @Override
    int choose(int[] own, int[] other) {
        for (int node = 0; node < 800; node++) {
            System.err.println("node " + node + ": own " + Arrays.toString(own) + ", other " + Arrays.toString(other));
        }
        int[] legal = java.util.stream.IntStream.range(0, own.length - 1).filter(i -> own[i] > 0).toArray();
        return legal[random.nextInt(legal.length)] + 1;
    }

    public static void main(String[] arguments) throws Exception {
        System.err.println("*****************\n*  DebugBot 1.0 *\n*****************");
        new DebugBot().play();
    }
}
