import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;

/** A small player of the Manchester protocol. Each bot of the corpus overrides some of its methods. */
class Kalah {
    private static final int OPENING_HOLE = 1;
    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    private String seat = "";
    private boolean maySwap;

    /** Called when START arrives. */
    void onStart() throws Exception {}

    /** Return the hole to empty; {@code own} ends with our store. */
    int choose(int[] own, int[] other) throws Exception {
        return bestHole(own);
    }

    /** Called after END. */
    void onEnd() throws Exception {}

    String readLine() throws Exception {
        return input.readLine();
    }

    void send(String line) {
        System.out.println(line);
    }

    /** Return a hole with an extra turn if there is one, else the fullest hole. */
    static int bestHole(int[] own) {
        int pits = own.length - 1;
        int best = -1;
        for (int i = 0; i < pits; i++) {
            if (own[i] == 0) continue;
            if (i + own[i] == pits) return i + 1;
            if (best < 0 || own[i] > own[best]) best = i;
        }
        return best + 1;
    }

    void play() throws Exception {
        for (String line = readLine(); line != null && !line.equals("END"); line = readLine()) {
            String[] fields = line.split(";");
            if (fields[0].equals("START")) {
                seat = fields[1];
                maySwap = seat.equals("North");
                onStart();
                if (!maySwap) send("MOVE;" + OPENING_HOLE);
            } else if (fields[0].equals("CHANGE")) {
                if (fields[1].equals("SWAP")) seat = "North";
                if (fields[3].equals("YOU")) reply(fields[1], fields[2]);
            }
        }
        onEnd();
    }

    private void reply(String move, String state) throws Exception {
        int[] board = Arrays.stream(state.split(",")).mapToInt(Integer::parseInt).toArray();
        int[] north = Arrays.copyOfRange(board, 0, board.length / 2);
        int[] south = Arrays.copyOfRange(board, board.length / 2, board.length);
        boolean isNorth = seat.equals("North");
        boolean swap = maySwap && Integer.parseInt(move) % 2 == 1;
        maySwap = false;
        if (swap) {
            seat = "South";
            send("SWAP");
        } else {
            send("MOVE;" + choose(isNorth ? north : south, isNorth ? south : north));
        }
    }
}
