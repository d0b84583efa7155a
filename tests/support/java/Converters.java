import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.TimeZone;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.storage.StringConverter;

/** Answers one line for each line of input: what Kafka's own converters make of bytes.
 *
 * json|schemas.enable=true|BASE64    reads JSON and writes it again with the same settings
 * string||BASE64                     reads JSON with a schema, writes the value as a text
 * header||BASE64                     reads a header, writes its value as JSON with a schema
 * text||BASE64                       reads JSON with a schema, writes the value as a header
 *
 * An answer is the bytes in base64, "-" for none, or "error " and the message.
 */
public class Converters {
    public static void main(String[] args) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] parts = in.nextLine().split("\\|", -1);
            System.out.println(answer(parts[0], parts[1], parts[2]));
        }
    }

    private static String answer(String converter, String settings, String text) {
        try {
            byte[] made = converted(converter, settings, Base64.getDecoder().decode(text));
            return made == null ? "-" : Base64.getEncoder().encodeToString(made);
        } catch (RuntimeException error) {
            return "error " + String.valueOf(error.getMessage()).replace("\n", " ");
        }
    }

    private static byte[] converted(String converter, String settings, byte[] data) {
        JsonConverter json = json(settings);
        SimpleHeaderConverter headers = new SimpleHeaderConverter();
        SchemaAndValue found =
                converter.equals("header")
                        ? headers.toConnectHeader("t", "h", data)
                        : json.toConnectData("t", data);
        if (found == null) {
            return null;
        }
        switch (converter) {
            case "string":
                StringConverter strings = new StringConverter();
                return strings.fromConnectData("t", found.schema(), found.value());
            case "text":
                return headers.fromConnectHeader("t", "h", found.schema(), found.value());
            default:
                return json.fromConnectData("t", found.schema(), found.value());
        }
    }

    private static JsonConverter json(String settings) {
        Map<String, String> config = new HashMap<>();
        for (String each : settings.isEmpty() ? new String[0] : settings.split(",")) {
            String[] pair = each.split("=", 2);
            config.put(pair[0], pair[1]);
        }
        JsonConverter json = new JsonConverter();
        json.configure(config, false);
        return json;
    }
}
