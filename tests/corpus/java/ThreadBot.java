import java.io.FileWriter;
import java.io.PrintWriter;

/** Starts a new thread for each move, and appends to a log.txt of 2 MB that was submitted. */
public class ThreadBot extends Kalah {
    private PrintWriter log;
    private volatile int hole;

    @Override
    void onStart() throws Exception {
        log = new PrintWriter(new FileWriter("log.txt", true), true);
        log.println("a new game");
    }

    @Override
    int choose(int[] own, int[] other) throws Exception {
        Thread search = new Thread(() -> hole = bestHole(own));
        search.start();
        search.join();
        log.println("hole " + hole);
        if (log.checkError()) throw new IllegalStateException("log.txt cannot be written");
        return hole;
    }

    public static void main(String[] arguments) throws Exception {
        new ThreadBot().play();
    }
}
