import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** Prints what Kafka Streams says of the topologies that tests/streams/topology/topologies.py makes. */
public class Topologies {
    static final Map<String, Topology> ALL = new LinkedHashMap<>();
    static final Predicate<String, String> YES = (key, value) -> true;
    static final KeyValueMapper<String, String, KeyValue<String, String>> SWAP =
        (key, value) -> KeyValue.pair(value, key);
    static final ValueJoiner<String, String, String> FIRST = (one, other) -> one;

    static void golden(String name, boolean optimize, Consumer<StreamsBuilder> build) {
        StreamsBuilder builder = new StreamsBuilder();
        build.accept(builder);
        Properties properties = new Properties();
        properties.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, optimize ? "all" : "none");
        ALL.put(name, builder.build(properties));
    }

    static void golden(String name, Consumer<StreamsBuilder> build) {
        golden(name, false, build);
    }

    static KStream<String, String> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(Serdes.String(), Serdes.String()));
    }

    static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic, Consumed.with(Serdes.String(), Serdes.String()));
    }

    static StoreBuilder<?> store(String name) {
        return Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
    }

    static class Drop extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {}
    }

    static class DropValue extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {}
    }

    static class Keep extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {}
    }

    static class Same implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {}

        @Override
        public String transform(String key, String value) {
            return value;
        }

        @Override
        public void close() {}
    }

    static void stateless() {
        golden("one_source", builder -> builder.stream("clicks"));
        golden("stateless_operations", builder -> {
            KStream<String, String> words = stream(builder, "lines")
                .filter(YES).filterNot(YES).map(SWAP).mapValues(value -> value)
                .flatMap((key, value) -> List.of(KeyValue.pair(key, value)))
                .flatMapValues(value -> List.of(value))
                .selectKey((key, value) -> value).peek((key, value) -> {});
            words.foreach((key, value) -> {});
            words.print(Printed.toSysOut());
            words.to("words");
        });
        golden("named_operations", builder -> builder
            .stream("lines", Consumed.with(Serdes.String(), Serdes.String()).withName("read-lines"))
            .filter(YES, Named.as("long-ones")).mapValues(value -> value)
            .to("loud", Produced.as("write")));
        golden("several_topics_and_a_pattern", builder -> {
            builder.stream(List.of("north", "south", "east", "west")).to("all");
            builder.stream(Pattern.compile("sensor-.*")).to("sensors");
        });
        golden("equal_sources_are_one", builder -> {
            stream(builder, "orders").to("copy");
            stream(builder, "orders").filter(YES).to("some");
        });
        golden("merged_streams", builder ->
            stream(builder, "north").merge(stream(builder, "south")).to("all"));
        golden("explicit_repartition", builder -> {
            KStream<String, String> orders = stream(builder, "orders");
            orders.repartition().to("a");
            orders.repartition(Repartitioned.<String, String>as("by-user").withNumberOfPartitions(6))
                .to("b");
        });
    }

    static void branches() {
        golden("branches", builder -> {
            BranchedKStream<String, String> split = stream(builder, "orders").split();
            Map<String, KStream<String, String>> parts =
                split.branch(YES).branch(YES, Branched.as("-small")).defaultBranch();
            parts.get("KSTREAM-BRANCH-00000000011").to("part-0");
            parts.get("KSTREAM-BRANCH-0000000001-small").to("part-1");
            parts.get("KSTREAM-BRANCH-00000000010").to("part-2");
        });
        golden("named_branches", builder -> {
            Map<String, KStream<String, String>> parts = stream(builder, "orders")
                .split(Named.as("by-size-")).branch(YES, Branched.as("big"))
                .defaultBranch(Branched.as("rest"));
            parts.get("by-size-big").to("big-orders");
            parts.get("by-size-rest").to("other-orders");
        });
    }

    static void tables() {
        golden("table_that_nobody_keeps", builder ->
            table(builder, "users").filter(YES).toStream().to("some-users"));
        golden("table_with_named_stores", builder -> builder
            .table("users",
                Consumed.with(Serdes.String(), Serdes.String()).withName("users-table"),
                Materialized.as("users-store"))
            .filter(YES, Materialized.as("adults"))
            .mapValues(value -> value, Materialized.as("loud")).toStream().to("out"));
        golden("options_without_a_name_burn_a_number", builder -> table(builder, "users")
            .filter(YES, Materialized.with(Serdes.String(), Serdes.String()))
            .mapValues(value -> (long) value.length(),
                Materialized.with(Serdes.String(), Serdes.Long()))
            .toStream().to("out"));
        golden("transformed_table", builder -> {
            builder.addStateStore(store("seen"));
            table(builder, "users").transformValues(Same::new, "seen").toStream().to("out");
        });
        golden("stream_to_table", builder -> {
            KStream<String, String> lines = stream(builder, "lines");
            lines.toTable().toStream().to("newest");
            lines.map(SWAP).toTable(Materialized.as("by-value")).toStream().to("newest-by-value");
        });
        golden("source_topic_as_changelog", true, builder -> builder
            .table("users", Consumed.with(Serdes.String(), Serdes.String()),
                Materialized.as("users-store"))
            .toStream().to("out"));
    }

    static void processors() {
        golden("user_processors", builder -> {
            builder.addStateStore(store("shared"));
            KStream<String, String> lines = stream(builder, "lines");
            lines.process(Drop::new, "shared").to("a");
            builder.addStateStore(store("own"));
            lines.processValues(DropValue::new, Named.as("check"), "shared", "own").to("b");
        });
        golden("shared_store_unites_sub_topologies", builder -> {
            builder.addStateStore(store("shared"));
            stream(builder, "north").process(Drop::new, "shared");
            stream(builder, "other").to("copy");
            stream(builder, "south").process(Drop::new, "shared");
        });
        golden("global_table_and_store", builder -> {
            GlobalKTable<String, String> countries = builder.globalTable(
                "countries", Consumed.with(Serdes.String(), Serdes.String()));
            builder.addGlobalStore(store("rates"), "rates-topic",
                Consumed.with(Serdes.String(), Serdes.String()), Keep::new);
            stream(builder, "orders")
                .join(countries, (key, order) -> order, FIRST).to("enriched");
        });
        Topology topology = new Topology();
        topology.addSource("orders", "orders-eu", "orders-us");
        topology.addProcessor("check", Drop::new, "orders");
        topology.addProcessor("count", Drop::new, "check");
        topology.addStateStore(store("n"), "count");
        topology.addSink("good", "good-orders", "check", "count");
        topology.addSink("chosen", new ChooseTopic(), "check");
        ALL.put("made_by_hand", topology);
    }

    static class ChooseTopic implements TopicNameExtractor<String, String> {
        @Override
        public String extract(String key, String value,
                org.apache.kafka.streams.processor.RecordContext context) {
            return "somewhere";
        }

        @Override
        public String toString() {
            return "choose_topic";
        }
    }

    static void aggregates() {
        golden("word_count", builder -> stream(builder, "lines")
            .flatMapValues(value -> List.of(value)).groupBy((key, word) -> word)
            .count(Materialized.as("counts-store")).toStream().to("counts"));
        golden("windowed_aggregates", builder -> {
            KGroupedStream<String, String> grouped = stream(builder, "clicks").groupByKey();
            Duration second = Duration.ofSeconds(1);
            grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(second)).count()
                .toStream().to("tumbling");
            grouped.windowedBy(
                    TimeWindows.ofSizeWithNoGrace(second).advanceBy(Duration.ofMillis(100)))
                .reduce((one, other) -> one).toStream().to("hopping");
            grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(second))
                .count(Materialized.as("sessions"))
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                .toStream().to("final");
        });
        golden("grouped_table", builder -> table(builder, "users")
            .groupBy((key, value) -> KeyValue.pair(value, key)).count()
            .toStream().to("per-city"));
        golden("named_aggregates", builder -> {
            KStream<String, String> orders = stream(builder, "orders");
            KGroupedStream<String, String> grouped =
                orders.groupBy((key, value) -> value, Grouped.as("by-value"));
            grouped.count(Named.as("counted")).toStream(Named.as("counts")).to("a");
            grouped.aggregate(() -> "", (key, value, all) -> all, Named.as("listed"),
                Materialized.as("lists"));
            orders.groupByKey().reduce((one, other) -> one,
                Materialized.with(Serdes.String(), Serdes.String())).toStream().to("b");
        });
        golden("cogrouped", builder -> {
            KGroupedStream<String, String> one = stream(builder, "one").groupByKey();
            KGroupedStream<String, String> two = stream(builder, "two").groupBy((key, value) -> value);
            one.<String>cogroup((key, value, all) -> all)
                .cogroup(two, (key, value, all) -> all)
                .aggregate(() -> "").toStream().to("out");
        });
        golden("windowed_cogrouped", builder -> stream(builder, "one").groupByKey()
            .<String>cogroup((key, value, all) -> all)
            .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(1)))
            .aggregate(() -> "", Named.as("both"), Materialized.as("both-store"))
            .toStream().to("out"));
        golden("named_suppress", builder -> table(builder, "users")
            .suppress(Suppressed.<String>untilTimeLimit(
                Duration.ofSeconds(1), Suppressed.BufferConfig.unbounded()).withName("wait"))
            .toStream().to("out"));
        golden("grouped_table_with_names", builder -> table(builder, "users")
            .groupBy((key, value) -> KeyValue.pair(value, key), Grouped.as("by-city"))
            .aggregate(() -> "", (key, value, all) -> all, (key, value, all) -> all,
                Named.as("cities"), Materialized.as("cities-store"))
            .toStream().to("per-city"));
        golden("stored_options", builder -> stream(builder, "orders").groupByKey()
            .count(Materialized.as("quiet")));
    }

    static StreamJoined<String, String, String> joined() {
        return StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
    }

    static void joins() {
        JoinWindows second = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(1));
        golden("stream_joins", builder -> {
            KStream<String, String> left = stream(builder, "orders").map(SWAP);
            KStream<String, String> right = stream(builder, "payments");
            left.join(right, FIRST, second).to("inner");
            left.leftJoin(right, FIRST, second, joined().withName("paid")).to("left");
        });
        golden("stream_table_join", builder -> {
            KTable<String, String> users = table(builder, "users");
            stream(builder, "clicks").join(users, FIRST).to("out");
        });
        golden("table_joins", builder -> {
            KTable<String, String> users = table(builder, "users");
            KTable<String, String> cities = table(builder, "cities");
            users.join(cities, FIRST).toStream().to("by-key");
            users.leftJoin(cities, (Function<String, String>) user -> user, FIRST)
                .toStream().to("by-city");
        });
        golden("named_joins", builder -> {
            KStream<String, String> left = stream(builder, "orders").selectKey((key, value) -> value);
            KStream<String, String> right = stream(builder, "payments").map(SWAP);
            KTable<String, String> users = table(builder, "users");
            left.outerJoin(right, FIRST, second, joined().withName("paid").withStoreName("kept"))
                .to("outer");
            left.leftJoin(users, FIRST, Joined.as("who")).to("left");
            users.outerJoin(table(builder, "cities"), FIRST, Named.as("both"),
                Materialized.as("both-store")).toStream(Named.as("both-stream")).to("tables");
        });
        golden("foreign_key_join_with_a_store", builder -> {
            KTable<String, String> cities = table(builder, "cities");
            table(builder, "users").join(cities, (Function<String, String>) user -> user, FIRST,
                TableJoined.as("in-city"), Materialized.as("users-in-cities"))
                .toStream((key, value) -> value, Named.as("out-stream")).to("out");
        });
        golden("join_of_derived_tables", builder -> {
            KTable<String, String> users = table(builder, "users").filter(YES);
            KTable<String, String> cities = table(builder, "cities").mapValues(value -> value);
            users.leftJoin(cities, FIRST).toStream().to("out");
        });
        golden("join_with_grace", builder -> {
            KTable<String, String> users = builder.table("users",
                Consumed.with(Serdes.String(), Serdes.String()),
                Materialized.as(Stores.persistentVersionedKeyValueStore(
                    "users-store", Duration.ofHours(1))));
            stream(builder, "clicks").join(users, FIRST,
                Joined.<String, String, String>as("late").withGracePeriod(Duration.ofSeconds(1)))
                .to("out");
        });
        golden("several_joins_of_one_mapped_stream", builder -> {
            KStream<String, String> mapped = stream(builder, "orders").map(SWAP);
            mapped.join(table(builder, "users"), FIRST).to("a");
            mapped.leftJoin(table(builder, "cities"), FIRST).to("b");
        });
        golden("stream_joined_with_itself", true, builder -> {
            KStream<String, String> orders = stream(builder, "orders");
            orders.join(orders, FIRST, second).to("pairs");
        });
    }

    static void changedKeys(StreamsBuilder builder) {
        KStream<String, String> mapped = stream(builder, "orders").map(SWAP);
        mapped.groupByKey(Grouped.as("totals")).count().toStream().to("totals-out");
        mapped.filter(YES).peek((key, value) -> {}).groupByKey().reduce((one, other) -> one)
            .toStream().to("largest");
        mapped.mapValues(value -> (long) value.length())
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Long())).count()
            .toStream().to("lengths");
    }

    static void optimised() {
        golden("repartitions_apart", false, Topologies::changedKeys);
        golden("repartitions_merged", true, Topologies::changedKeys);
        golden("repartition_below_a_merge", true, builder -> {
            KStream<String, String> merged = stream(builder, "one").map(SWAP)
                .merge(stream(builder, "two").map(SWAP));
            merged.groupByKey().count().toStream().to("counts");
            merged.filter(YES).groupByKey().reduce((one, other) -> one).toStream().to("largest");
        });
    }

    static void optimisedJoins() {
        JoinWindows second = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(1));
        golden("one_stream_read_twice_and_joined", true, builder -> stream(builder, "orders")
            .join(stream(builder, "orders"), FIRST, second, joined().withName("pairs"))
            .to("pairs-out"));
        golden("self_join_after_another_use", true, builder -> {
            KStream<String, String> orders = stream(builder, "orders");
            orders.filter(YES).to("some");
            orders.join(orders, FIRST, second).to("pairs");
        });
        golden("optimised_joins_and_tables", true, builder -> {
            KStream<String, String> mapped = stream(builder, "orders").map(SWAP);
            KStream<String, Long> counts =
                mapped.groupByKey(Grouped.as("counted")).count().toStream();
            mapped.filter(YES).join(counts, (one, other) -> one, second,
                    StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.Long())
                        .withName("joined"))
                .to("out");
            mapped.leftJoin(table(builder, "users"), FIRST).to("with-users");
            mapped.peek((key, value) -> {}).toTable(Materialized.as("newest"))
                .toStream().to("newest-out");
        });
        golden("optimised_merges", true, builder -> {
            KStream<String, String> mapped =
                stream(builder, "orders").selectKey((key, value) -> value);
            KStream<String, String> one = mapped.mapValues(value -> value);
            KStream<String, String> two = mapped.mapValues(value -> value);
            KStream<String, String> three = mapped.mapValues(value -> value);
            one.merge(two).merge(three).groupByKey().count().toStream().to("counts");
        });
        golden("optimised_merge_of_one_changed_side", true, builder -> {
            KStream<String, String> changed = stream(builder, "one").map(SWAP);
            stream(builder, "two").merge(changed).groupByKey(Grouped.as("both")).count()
                .toStream().to("counts");
        });
        golden("optimised_cogroup", true, builder -> {
            KStream<String, String> mapped = stream(builder, "one").map(SWAP);
            KGroupedStream<String, String> one = mapped.groupByKey();
            KGroupedStream<String, String> two = mapped.filter(YES).groupByKey();
            one.<String>cogroup((key, value, all) -> all).cogroup(two, (key, value, all) -> all)
                .aggregate(() -> "").toStream().to("out");
        });
        golden("chained_repartitions", true, builder -> stream(builder, "one").map(SWAP)
            .groupByKey(Grouped.as("first")).count().toStream()
            .mapValues(value -> "" + value, Named.as("text")).selectKey((key, value) -> value)
            .groupByKey(Grouped.as("second")).count().toStream().to("out"));
    }

    public static void main(String[] arguments) {
        stateless();
        branches();
        tables();
        processors();
        aggregates();
        joins();
        optimised();
        optimisedJoins();
        ALL.forEach((name, topology) -> System.out.print("== " + name + "\n" + topology.describe()));
    }
}
