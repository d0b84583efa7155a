// Avro's own Java library with the registry's prefix written by hand:
//   java PlainAvro REGISTRY_URL TOPIC
// takes lines from standard input and prints a line for each:
//   write <tab> SCHEMA <tab> VALUE_AS_JSON    registers the schema, prints the bytes in hex
//   read <tab> BYTES_IN_HEX                   fetches the schema by its id, prints the value as JSON

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

public class PlainAvro {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        String url = args[0];
        String topic = args[1];
        PrintStream out =
                new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            out.println(
                    parts[0].equals("write")
                            ? write(url, topic, parts[1], parts[2])
                            : read(url, HexFormat.of().parseHex(parts[1])));
        }
    }

    private static String write(String url, String topic, String text, String json)
            throws Exception {
        Schema schema = new Schema.Parser().parse(text);
        String body = JSON.writeValueAsString(Map.of("schema", text));
        String path = url + "/subjects/" + topic + "-value/versions";
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(path))
                        .header("Content-Type", "application/vnd.schemaregistry.v1+json")
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build();
        int id = JSON.readTree(send(request)).get("id").asInt();
        Object value =
                new GenericDatumReader<Object>(schema)
                        .read(null, DecoderFactory.get().jsonDecoder(schema, json));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(0);
        out.write(ByteBuffer.allocate(4).putInt(id).array());
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
        return HexFormat.of().formatHex(out.toByteArray());
    }

    private static String read(String url, byte[] data) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(data);
        if (buffer.get() != 0) {
            throw new IllegalArgumentException("unknown magic byte");
        }
        String path = url + "/schemas/ids/" + buffer.getInt();
        String answer = send(HttpRequest.newBuilder(URI.create(path)).build());
        Schema schema = new Schema.Parser().parse(JSON.readTree(answer).get("schema").asText());
        Object value =
                new GenericDatumReader<Object>(schema)
                        .read(null, DecoderFactory.get().binaryDecoder(data, 5, data.length - 5, null));
        return asJson(schema, value);
    }

    private static String asJson(Schema schema, Object value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, out);
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
        return out.toString(StandardCharsets.UTF_8).replace("\n", "");
    }

    private static String send(HttpRequest request) throws Exception {
        HttpResponse<String> response = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IllegalStateException(response.statusCode() + " " + response.body());
        }
        return response.body();
    }
}
