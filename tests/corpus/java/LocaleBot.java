import java.io.File;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.PrintWriter;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.Locale;
import java.util.Properties;

/**
 * Needs a locale and a time zone; keeps settings in the user's home and a temporary file; writes output.txt over the
 * one that was submitted.
 */
public class LocaleBot extends Kalah {
    private final PrintWriter output = new PrintWriter(System.out, true);
    private File settings;
    private PrintWriter log;

    @Override
    void onStart() throws Exception {
        settings = new File(System.getProperty("user.home"), ".kalahbot.properties");
        Properties values = new Properties();
        values.setProperty("zone", ZoneId.systemDefault().getId());
        try (FileOutputStream file = new FileOutputStream(settings)) {
            values.store(file, "settings");
        }
        File temporary = File.createTempFile("kalah", ".tmp");
        temporary.deleteOnExit();
        log = new PrintWriter("output.txt", "UTF-8");
        log.println(ZonedDateTime.now(ZoneId.systemDefault()));
    }

    @Override
    int choose(int[] own, int[] other) {
        String value = String.format(Locale.GERMANY, "%,.2f", 1234.5 + own[own.length - 1]);
        log.println(value + " " + String.format("%,d", 1234567) + " " + Locale.getDefault());
        log.flush();
        if (!value.contains(",")) throw new IllegalStateException("no German numbers: " + value);
        return bestHole(own);
    }

    @Override
    void send(String line) {
        output.println(line);
    }

    @Override
    void onEnd() throws Exception {
        try (FileReader file = new FileReader(settings)) {
            new Properties().load(file);
        }
        settings.delete();
    }

    public static void main(String[] arguments) throws Exception {
        new LocaleBot().play();
    }
}
