// Runs Kafka's command-line tools one after the other in one JVM, because starting a JVM takes
// longer than most of them. Reads a line with a JSON array, [main class, argument...], and answers
// with a line {"code": exit code, "output": standard output, "errors": standard error}.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.Exit;

public final class ToolServer {
    /** Thrown in place of the end of the JVM. */
    private static final class ToolExit extends Error {
        private static final long serialVersionUID = 1L;
    }

    /** A stream that tools may keep for ever, while what it writes to changes with each of them. */
    private static final class Capture extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int each) {
            bytes.write(each);
        }

        @Override
        public synchronized void write(byte[] from, int start, int length) {
            bytes.write(from, start, length);
        }

        synchronized String take() {
            String text = bytes.toString(StandardCharsets.UTF_8);
            bytes = new ByteArrayOutputStream();
            return text;
        }
    }

    private static final AtomicReference<Integer> exitCode = new AtomicReference<>();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        Capture output = new Capture();
        Capture errors = new Capture();
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        Exit.Procedure leave = (code, message) -> {
            // Some tools catch everything and leave again: the first code is the one that counts.
            exitCode.compareAndSet(null, code);
            if (message != null) {
                System.err.println(message);
            }
            throw new ToolExit();
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        ObjectMapper json = new ObjectMapper();
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = json.readValue(line, String[].class);
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.println(json.writeValueAsString(
                Map.of("code", code, "output", output.take(), "errors", errors.take())));
        }
    }

    private static int run(String program, String[] arguments) throws ReflectiveOperationException {
        exitCode.set(null);
        try {
            Class.forName(program).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException ended) {
            if (ended.getCause() instanceof ToolExit) {
                return exitCode.get();
            }
            ended.getCause().printStackTrace();
            return 1;
        }
    }
}
