// Confluent's Avro serializer and deserializer for Java; used as PlainAvro is:
//   java ConfluentAvro REGISTRY_URL TOPIC

import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericContainer;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

public class ConfluentAvro {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        Map<String, ?> settings = Map.of("schema.registry.url", args[0]);
        KafkaAvroSerializer serializer = new KafkaAvroSerializer();
        serializer.configure(settings, false);
        KafkaAvroDeserializer deserializer = new KafkaAvroDeserializer();
        deserializer.configure(settings, false);
        PrintStream out =
                new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            if (parts[0].equals("write")) {
                Schema schema = new Schema.Parser().parse(parts[1]);
                Object value =
                        new GenericDatumReader<Object>(schema)
                                .read(null, DecoderFactory.get().jsonDecoder(schema, parts[2]));
                out.println(HexFormat.of().formatHex(serializer.serialize(topic, value)));
            } else {
                byte[] data = HexFormat.of().parseHex(parts[1]);
                GenericContainer value = (GenericContainer) deserializer.deserialize(topic, data);
                out.println(asJson(value.getSchema(), value));
            }
        }
    }

    private static String asJson(Schema schema, Object value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, out);
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
        return out.toString(StandardCharsets.UTF_8).replace("\n", "");
    }
}
