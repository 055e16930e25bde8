import java.io.File;
import java.io.FileWriter;
import java.io.IOException;

/** Logs in a sub-folder that it makes, and ends only when its input does. */
public class FolderBot extends Kalah {
    private FileWriter log;

    @Override
    void onStart() throws IOException {
        File folder = new File("logs/games");
        if (!folder.isDirectory() && !folder.mkdirs()) throw new IOException("no folder " + folder);
        log = new FileWriter(new File(folder, System.currentTimeMillis() + ".log"));
    }

    @Override
    String readLine() throws Exception {
        String line = super.readLine();
        if (line != null && log != null) log.append(line).append('\n').flush();
        return "END".equals(line) ? "" : line;
    }

    public static void main(String[] arguments) throws Exception {
        new FolderBot().play();
    }
}
