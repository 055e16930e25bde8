import java.io.BufferedReader;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads a resource of its jar of 30 MB, a file beside the jar, and a file by its relative path. */
public class ResourceBot extends Kalah {
    @Override
    void onStart() throws Exception {
        InputStream resource = ResourceBot.class.getResourceAsStream("/weights.txt");
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(resource))) {
            expect(reader.readLine());
        }
        File jar = new File(ResourceBot.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        expect(Files.readAllLines(new File(jar.getParentFile(), "data/book.txt").toPath()).get(0));
        expect(Files.readAllLines(Path.of("data", "book.txt")).get(0));
    }

    private static void expect(String line) {
        if (!line.equals("1 7 7 7 7 7 7 7")) throw new IllegalStateException("unexpected data: " + line);
    }

    public static void main(String[] arguments) throws Exception {
        new ResourceBot().play();
    }
}
