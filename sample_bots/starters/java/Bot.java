import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;

/**
 * A Kalah bot to start from. Make choosePit and wantsToSwap cleverer; the rest can stay as it is.
 *
 * Both get the two halves of the board: own and other hold the seeds in the pits and, as the last number, in the
 * store. own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits - 1 - i].
 */
public class Bot {
    /** The pit to empty; pit 1 is own[0]. This is the place for your ideas. */
    static int choosePit(int[] own, int[] other) {
        int pits = own.length - 1;
        // 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
        for (int i = pits - 1; i >= 0; i--) {
            if (own[i] > 0 && lastSeed(own, i) == pits) return i + 1;
        }
        // 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
        int best = -1;
        for (int i = 0; i < pits; i++) {
            if (own[i] > 0 && (best < 0 || worth(own, other, i) >= worth(own, other, best))) best = i;
        }
        return best + 1;
    }

    /**
     * Whether to take the opponent's side, as our answer to its first move (the pie rule). The opponent would move
     * next, from our side. So we swap if it is ahead and our side has no extra turn.
     */
    static boolean wantsToSwap(int[] own, int[] other) {
        int pits = own.length - 1;
        for (int i = 0; i < pits; i++) {
            if (own[i] > 0 && lastSeed(own, i) == pits) return false;
        }
        return other[pits] > own[pits];
    }

    /** The value of emptying own[i]: a capture counts far more than the seeds of a full pit. */
    static int worth(int[] own, int[] other, int i) {
        return 1000 * captured(own, other, i) + own[i];
    }

    /** The index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits. */
    static int lastSeed(int[] own, int i) {
        return (i + own[i]) % (2 * own.length - 1); // the other's store is left out
    }

    /** The seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit. */
    static int captured(int[] own, int[] other, int i) {
        int pits = own.length - 1;
        int last = lastSeed(own, i);
        if (last >= pits || own[i] > 2 * pits + 1 || (own[last] > 0 && last != i)) return 0;
        boolean lapped = i + own[i] > 2 * pits; // then every pit of the other got a seed on the way
        int opposite = other[pits - 1 - last] + (lapped ? 1 : 0);
        return opposite > 0 ? opposite + 1 : 0;
    }

    /** The board of the start, all pits full, from a game's name such as "manchester" or "kalah(6,4)". */
    static int[] startBoard(String game) {
        int[] size = game.startsWith("bga") ? new int[] {6, 4} : new int[] {7, 7};
        if (game.contains("(")) size = numbers(game.substring(game.indexOf('(') + 1, game.indexOf(')')));
        int[] board = new int[2 * (size[0] + 1)];
        Arrays.fill(board, size[1]);
        board[size[0]] = board[2 * size[0] + 1] = 0; // the stores
        return board;
    }

    static int[] numbers(String text) {
        return Arrays.stream(text.split(",")).mapToInt(Integer::parseInt).toArray();
    }

    /** The conversation with the referee: read a line, and answer when it is our turn. */
    public static void main(String[] arguments) throws IOException {
        String game = System.getenv().getOrDefault("KALARENA_GAME", "manchester");
        boolean pieRule = (game.contains("+pie") || game.startsWith("manchester")) && !game.contains("+pie=no");
        boolean opening = System.getenv("KALARENA_OPENING") != null; // some moves are made before the first turn
        String seat = "";
        int[] board = startBoard(game);
        boolean myTurn = false;
        boolean maySwap = false;
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null && !line.equals("END"); line = input.readLine()) {
            String[] fields = line.split(";");
            if (fields[0].equals("START")) { // START;South moves first, START;North second
                seat = fields[1];
                myTurn = seat.equals("South") && !opening;
                maySwap = seat.equals("North") && !opening && pieRule;
            } else if (fields[0].equals("CHANGE")) { // CHANGE;<move>;<board>;<YOU, OPP or END>
                if (fields[1].equals("SWAP")) { // the opponent took our seat, so we have the other one
                    seat = seat.equals("South") ? "North" : "South";
                }
                board = numbers(fields[2]);
                myTurn = fields[3].equals("YOU");
            } else { // TIME, which only bots that ask for it in bot.toml are told
                continue;
            }
            if (!myTurn) continue;
            int[] north = Arrays.copyOfRange(board, 0, board.length / 2);
            int[] south = Arrays.copyOfRange(board, board.length / 2, board.length);
            int[] own = seat.equals("North") ? north : south;
            int[] other = seat.equals("North") ? south : north;
            String reply;
            if (maySwap && wantsToSwap(own, other)) {
                seat = "South";
                reply = "SWAP";
            } else {
                reply = "MOVE;" + choosePit(own, other);
            }
            maySwap = false; // only our very first answer may be SWAP
            System.err.println(seat + ": own " + Arrays.toString(own) + ", other " + Arrays.toString(other)
                    + ": " + reply); // only you get to see this
            System.out.print(reply + "\n"); // not println, which ends lines with CR LF on Windows
            System.out.flush(); // without this the referee may never see it
        }
    }
}
