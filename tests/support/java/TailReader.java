// Prints the values of partition 0 of a topic, one line each, from its beginning until it is killed:
//   java TailReader BOOTSTRAP TOPIC

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public final class TailReader {
    public static void main(String[] args) {
        Map<String, Object> settings =
                Map.of(
                        "bootstrap.servers", args[0],
                        "auto.offset.reset", "earliest",
                        "enable.auto.commit", false,
                        "metadata.max.age.ms", 500,
                        "reconnect.backoff.max.ms", 500);
        StringDeserializer strings = new StringDeserializer();
        try (KafkaConsumer<String, String> reader =
                new KafkaConsumer<>(settings, strings, strings)) {
            reader.assign(List.of(new TopicPartition(args[1], 0)));
            while (true) {
                for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(100))) {
                    System.out.println(record.value());
                }
                System.out.flush();
            }
        }
    }
}
