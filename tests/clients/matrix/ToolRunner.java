// Runs Kafka's command line tools in one JVM, one after the other: most of a tool's time is its JVM's start.
//
// A line on stdin is a tool's class and its arguments, separated by tabs. For each a line goes to stdout: the
// exit code, then what the tool has printed to stdout and to stderr, both in Base64.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

public class ToolRunner {
    /** What a tool's exit is here. */
    private static final class Ended extends RuntimeException {
        private final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    private static final List<Runnable> AT_EXIT = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setShutdownHookAdder((name, hook) -> AT_EXIT.add(hook));
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.println(code + "\t" + base64(out) + "\t" + base64(err));
            answers.flush();
        }
    }

    private static int run(String name, String[] arguments) throws Exception {
        AT_EXIT.clear();
        int code = 0;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Ended ended) {
                code = ended.code;
            } else {
                failed.getCause().printStackTrace();
                code = 1;
            }
        }
        AT_EXIT.forEach(Runnable::run);
        return code;
    }

    private static String base64(ByteArrayOutputStream printed) {
        return Base64.getEncoder().encodeToString(printed.toByteArray());
    }
}
