import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The workloads in Kafka Streams: one application after the other in the same JVM, so that the
 * second finds it warm. A line on standard input ends the current one; the last one ends the JVM.
 *
 * <p>StreamsSide WORKLOAD BOOTSTRAP INPUT TABLE STATE_DIR (APPLICATION_ID OUTPUT)...
 */
public final class StreamsSide {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static final class Order {
        public String user;
        public String item;
        public double price;
        public int quantity;
        public String region;
        public String order;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static final class Profile {
        public String name;
        public int level;
    }

    public record Projection(String user, double price) {}

    public record Enriched(String user, double price, String name, int level) {}

    public static final class Totals {
        public long count;
        public double sum;

        Totals add(Order order) {
            count += 1;
            sum += order.price;
            return this;
        }
    }

    private static <T> Serde<T> json(Class<T> type) {
        return Serdes.serdeFrom(
                (topic, value) -> {
                    try {
                        return value == null ? null : JSON.writeValueAsBytes(value);
                    } catch (IOException failed) {
                        throw new UncheckedIOException(failed);
                    }
                },
                (topic, data) -> {
                    try {
                        return data == null ? null : JSON.readValue(data, type);
                    } catch (IOException failed) {
                        throw new UncheckedIOException(failed);
                    }
                });
    }

    private static StreamsBuilder build(String workload, String topic, String table, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        Serde<String> text = Serdes.String();
        KStream<String, Order> orders = builder.stream(topic, Consumed.with(text, json(Order.class)));
        switch (workload) {
            case "filter" -> orders.filter((user, order) -> order.price > 50)
                    .mapValues(order -> new Projection(order.user, order.price))
                    .to(output, Produced.with(text, json(Projection.class)));
            case "tumbling" -> orders.groupByKey(Grouped.with(text, json(Order.class)))
                    .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
                    .aggregate(
                            Totals::new,
                            (user, order, totals) -> totals.add(order),
                            Materialized.<String, Totals, WindowStore<Bytes, byte[]>>as("totals")
                                    .withKeySerde(text)
                                    .withValueSerde(json(Totals.class)))
                    .toStream()
                    .to(
                            output,
                            Produced.with(
                                    WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000L),
                                    json(Totals.class)));
            case "join" -> orders.join(
                            builder.table(
                                    table,
                                    Consumed.with(text, json(Profile.class)),
                                    Materialized.<String, Profile, KeyValueStore<Bytes, byte[]>>as(
                                            "profiles")),
                            (order, profile) -> new Enriched(
                                    order.user, order.price, profile.name, profile.level),
                            Joined.with(text, json(Order.class), json(Profile.class)))
                    .to(output, Produced.with(text, json(Enriched.class)));
            default -> throw new IllegalArgumentException(workload);
        }
        return builder;
    }

    public static void main(String[] arguments) throws IOException {
        String workload = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (int number = 5; number < arguments.length; number += 2) {
            Properties settings = new Properties();
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[number]);
            settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[1]);
            settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
            settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
            settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
            settings.put("consumer.auto.offset.reset", "earliest");
            if (workload.equals("join")) {
                // With the default of 500 the long poll of the idle table holds up the orders.
                settings.put("consumer.fetch.max.wait.ms", 10);
            }
            StreamsBuilder built =
                    build(workload, arguments[2], arguments[3], arguments[number + 1]);
            try (KafkaStreams streams = new KafkaStreams(built.build(), settings)) {
                streams.start();
                lines.readLine();
            }
        }
    }
}
