// Runs scenarios of the Java client against one broker and prints one JSON line for each:
//   java ClientScenarios BOOTSTRAP SCENARIO...
//   {"scenario": "transactions", "facts": {...}}  or  {"scenario": ..., "error": "..."}
// The facts are what the client saw; whether they are right is for the caller to say.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class ClientScenarios {
    private static final long FIRST_TIMESTAMP_MS = 1_700_000_000_000L;
    private static final int PARTITIONS = 4;

    private final String bootstrap;
    private final Admin admin;

    private ClientScenarios(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        ClientScenarios client = new ClientScenarios(args[0]);
        Map<String, Callable<Map<String, Object>>> known = client.scenarios();
        ExecutorService pool = Executors.newFixedThreadPool(3);
        Map<String, Future<Map<String, Object>>> running = new TreeMap<>();
        for (String name : Arrays.copyOfRange(args, 1, args.length)) {
            running.put(name, pool.submit(known.get(name)));
        }
        ObjectMapper json = new ObjectMapper();
        for (Map.Entry<String, Future<Map<String, Object>>> entry : running.entrySet()) {
            Map<String, Object> line = new HashMap<>();
            line.put("scenario", entry.getKey());
            try {
                line.put("facts", entry.getValue().get());
            } catch (ExecutionException failed) {
                line.put("error", describe(failed.getCause()));
            }
            System.out.println(json.writeValueAsString(line));
        }
        pool.shutdown();
        client.admin.close(Duration.ofSeconds(5));
    }

    private Map<String, Callable<Map<String, Object>>> scenarios() {
        Map<String, Callable<Map<String, Object>>> all = new HashMap<>();
        all.put("topics", this::manageTopics);
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            all.put("compression-" + compression, () -> roundTrip(compression));
        }
        for (String protocol : List.of("range", "cooperative", "consumer")) {
            all.put("rebalance-" + protocol, () -> rebalance(protocol));
            all.put("resume-" + protocol, () -> resume(protocol));
            all.put("static-" + protocol, () -> comeBack(protocol));
            all.put("transactional-offsets-" + protocol, () -> moveOffsets(protocol));
        }
        all.put("pattern", this::subscribeByPattern);
        all.put("groups", this::manageGroups);
        all.put("idempotent", this::idempotent);
        all.put("transactions", this::transactions);
        all.put("open-transaction", this::openTransaction);
        all.put("fencing", this::fencing);
        all.put("timestamps", this::timestamps);
        all.put("delete-records", this::deleteRecords);
        return all;
    }

    private Map<String, Object> manageTopics() throws Exception {
        String topic = unique("managed");
        NewTopic fresh = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "5000"));
        admin.createTopics(List.of(fresh)).all().get();
        String refusal = failure(() -> admin.createTopics(List.of(fresh)).all().get());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        await("the third partition", () -> describeTopic(topic).partitions().size() == 3);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp change = new AlterConfigOp(
            new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        await("the changed setting", () -> setting(resource, "cleanup.policy").equals("compact"));
        int brokers = admin.describeCluster().nodes().get().size();
        int leaders = describeTopic(topic).partitions().stream()
            .map(each -> each.leader().id()).collect(Collectors.toSet()).size();
        Set<TopicPartition> elected =
            admin.electLeaders(ElectionType.PREFERRED, Set.of(new TopicPartition(topic, 0)))
                .partitions().get().keySet();
        String retention = setting(resource, "retention.ms");
        admin.deleteTopics(List.of(topic)).all().get();
        await("the end of the topic", () -> !admin.listTopics().names().get().contains(topic));
        return Map.of(
            "refusal", refusal, "retention", retention, "brokers", brokers, "leaders", leaders,
            "elections", elected.size());
    }

    private Map<String, Object> roundTrip(String compression) throws Exception {
        String topic = newTopic("whole");
        try (KafkaProducer<String, String> producer =
                producer(Map.of("compression.type", compression, "linger.ms", 5))) {
            for (int number = 0; number < 100; number++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(
                    topic, 1, FIRST_TIMESTAMP_MS + number, "key-" + number,
                    number + "-" + "abc".repeat(50));
                record.headers().add("number", String.valueOf(number).getBytes());
                record.headers().add("null", null);
                producer.send(record);
            }
        }
        List<ConsumerRecord<String, String>> records = read(topic, 100, Map.of());
        Header[] headers = records.get(7).headers().toArray();
        return Map.of(
            "topic", topic,
            "offsets", records.stream().map(ConsumerRecord::offset).toList(),
            "keys", records.stream().map(ConsumerRecord::key).toList(),
            "values", values(records),
            "timestamps", records.stream().map(each -> each.timestamp() - FIRST_TIMESTAMP_MS).toList(),
            "header", headers[0].key() + "=" + new String(headers[0].value()),
            "null_header", headers[1].value() == null);
    }

    private Map<String, Object> rebalance(String protocol) throws Exception {
        String topic = newTopic("shared");
        Map<String, Object> settings = group(unique("group"), protocol);
        Map<String, Object> facts = new HashMap<>();
        Set<String> distinct = new TreeSet<>();
        try (Member first = new Member(topic, settings)) {
            awaitSplit(List.of(first), List.of(4));
            send(topic, "alone");
            facts.put("alone", taken(List.of(first), distinct));
            try (Member second = new Member(topic, settings)) {
                awaitSplit(List.of(first, second), List.of(2, 2));
                send(topic, "shared");
                facts.put("shared", taken(List.of(first, second), distinct));
            }
            awaitSplit(List.of(first), List.of(4));
            send(topic, "again");
            facts.put("again", taken(List.of(first), distinct));
        }
        facts.put("distinct", distinct.size());
        return facts;
    }

    private Map<String, Object> resume(String protocol) throws Exception {
        String topic = newTopic("resumed");
        Map<String, Object> settings = group(unique("resuming"), protocol);
        settings.put("enable.auto.commit", false);
        send(topic, "record");
        Map<TopicPartition, OffsetAndMetadata> seven = new HashMap<>();
        partitions(topic).forEach(each -> seven.put(each, new OffsetAndMetadata(7, "seven")));
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            take(consumer, 40);
            consumer.commitSync(seven);
        }
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            Set<Long> offsets = new TreeSet<>();
            take(consumer, 12).forEach(each -> offsets.add(each.offset()));
            Set<String> notes = consumer.committed(Set.copyOf(partitions(topic))).values().stream()
                .map(OffsetAndMetadata::metadata).collect(Collectors.toSet());
            return Map.of("offsets", offsets, "notes", notes);
        }
    }

    private Map<String, Object> comeBack(String protocol) throws Exception {
        String topic = newTopic("static");
        Map<String, Object> stays = group(unique("static"), protocol);
        Map<String, Object> returns = new HashMap<>(stays);
        stays.put("group.instance.id", "stays");
        returns.put("group.instance.id", "returns");
        try (Member first = new Member(topic, stays)) {
            Set<Integer> held;
            int rebalances;
            try (Member second = new Member(topic, returns)) {
                awaitSplit(List.of(first, second), List.of(2, 2));
                held = second.partitions;
                rebalances = first.rebalances;
            }
            try (Member second = new Member(topic, returns)) {
                awaitSplit(List.of(first, second), List.of(2, 2));
                return Map.of(
                    "same", second.partitions.equals(held),
                    "rebalances", first.rebalances - rebalances);
            }
        }
    }

    private Map<String, Object> subscribeByPattern() throws Exception {
        String prefix = unique("pattern");
        for (String suffix : List.of("a", "b")) {
            NewTopic topic = new NewTopic(prefix + "-" + suffix, 1, (short) 1);
            admin.createTopics(List.of(topic)).all().get();
        }
        try (KafkaConsumer<String, String> consumer = consumer(group(prefix, "consumer"))) {
            consumer.subscribe(new SubscriptionPattern(prefix + "-[ab]"));
            await("the topics of the pattern", () -> {
                consumer.poll(Duration.ofMillis(100));
                return consumer.assignment().size() == 2;
            });
            return Map.of("assigned", consumer.assignment().size());
        }
    }

    private Map<String, Object> manageGroups() throws Exception {
        String topic = newTopic("described");
        Map<String, Object> facts = new HashMap<>();
        for (String protocol : List.of("range", "consumer")) {
            String name = unique("group-" + protocol);
            try (Member member = new Member(topic, group(name, protocol))) {
                awaitSplit(List.of(member), List.of(4));
                ConsumerGroupDescription live = describeGroup(name);
                facts.put(protocol + "-type", live.type().toString());
                facts.put(protocol + "-state", live.groupState().toString());
                facts.put(protocol + "-assignor", live.partitionAssignor());
                facts.put(protocol + "-assigned", live.members().stream()
                    .mapToInt(each -> each.assignment().topicPartitions().size()).sum());
            }
            await("the empty group", () -> describeGroup(name).members().isEmpty());
            TopicPartition zero = new TopicPartition(topic, 0);
            admin.alterConsumerGroupOffsets(name, Map.of(zero, new OffsetAndMetadata(3))).all().get();
            facts.put(protocol + "-offset", admin.listConsumerGroupOffsets(name)
                .partitionsToOffsetAndMetadata().get().get(zero).offset());
            admin.deleteConsumerGroupOffsets(name, Set.of(zero)).all().get();
            facts.put(protocol + "-offset-deleted", !admin.listConsumerGroupOffsets(name)
                .partitionsToOffsetAndMetadata().get().containsKey(zero));
            boolean listed = groups().contains(name);
            admin.deleteConsumerGroups(List.of(name)).all().get();
            facts.put(protocol + "-deleted", listed && !groups().contains(name));
        }
        return facts;
    }

    private Map<String, Object> idempotent() throws Exception {
        String topic = newTopic("idempotent");
        List<Long> offsets = new ArrayList<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(Map.of("batch.size", 200))) {
            for (int number = 0; number < 400; number++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, String.valueOf(number))));
            }
            for (Future<RecordMetadata> each : sent) {
                offsets.add(each.get().offset());
            }
        }
        return Map.of("offsets", offsets, "values", values(read(topic, 400, Map.of())));
    }

    private Map<String, Object> transactions() throws Exception {
        String topic = newTopic("transactions");
        try (KafkaProducer<String, String> producer = transactional(unique("writer"))) {
            for (String outcome : List.of("kept", "dropped", "kept")) {
                producer.beginTransaction();
                for (int number = 0; number < 8; number++) {
                    producer.send(new ProducerRecord<>(topic, number % PARTITIONS, null, outcome));
                }
                producer.flush();
                if (outcome.equals("kept")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        send(topic, "end");
        Map<String, Object> committed = Map.of("isolation.level", "read_committed");
        return Map.of(
            "committed", counts(read(topic, 56, committed)),
            "uncommitted", counts(read(topic, 64, Map.of())));
    }

    private Map<String, Object> openTransaction() throws Exception {
        String topic = newTopic("open");
        String name = unique("open");
        TopicPartition zero = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = transactional(name)) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "pending")).get();
            TransactionDescription live =
                admin.describeTransactions(List.of(name)).description(name).get();
            boolean listed = admin.listTransactions().all().get().stream()
                .anyMatch(each -> each.transactionalId().equals(name));
            int writers = admin.describeProducers(List.of(zero)).partitionResult(zero).get()
                .activeProducers().size();
            long stable = latest(zero, IsolationLevel.READ_COMMITTED);
            long end = latest(zero, IsolationLevel.READ_UNCOMMITTED);
            producer.commitTransaction();
            await("the marker", () -> latest(zero, IsolationLevel.READ_COMMITTED) == 2);
            return Map.of(
                "state", live.state().toString(), "partitions", live.topicPartitions().size(),
                "listed", listed, "writers", writers, "stable", stable, "end", end);
        }
    }

    private Map<String, Object> moveOffsets(String protocol) throws Exception {
        String topic = newTopic("moved");
        Map<String, Object> settings = group(unique("mover"), protocol);
        settings.put("enable.auto.commit", false);
        send(topic, "record");
        TopicPartition zero = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = consumer(settings);
                KafkaProducer<String, String> producer = transactional(unique("mover"))) {
            consumer.subscribe(List.of(topic));
            take(consumer, 40);
            for (long offset : new long[] {4, 9}) {
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(
                    Map.of(zero, new OffsetAndMetadata(offset)), consumer.groupMetadata());
                if (offset == 4) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            return Map.of("committed", consumer.committed(Set.of(zero)).get(zero).offset());
        }
    }

    private Map<String, Object> fencing() throws Exception {
        String topic = newTopic("fenced");
        String name = unique("fenced");
        try (KafkaProducer<String, String> old = transactional(name)) {
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, 0, null, "of the old one")).get();
            try (KafkaProducer<String, String> fresh = transactional(name)) {
                String refusal = failure(() -> {
                    old.commitTransaction();
                    return null;
                });
                fresh.beginTransaction();
                fresh.send(new ProducerRecord<>(topic, 0, null, "of the new one"));
                fresh.commitTransaction();
                Map<String, Object> committed = Map.of("isolation.level", "read_committed");
                return Map.of("refusal", refusal, "values", values(read(topic, 1, committed)));
            }
        }
    }

    private Map<String, Object> timestamps() throws Exception {
        String topic = newTopic("times");
        TopicPartition two = new TopicPartition(topic, 2);
        try (KafkaProducer<String, String> producer = producer(Map.of("batch.size", 500))) {
            for (int number = 0; number < 100; number++) {
                producer.send(new ProducerRecord<>(
                    topic, 2, FIRST_TIMESTAMP_MS + 10 * number, null, String.valueOf(number)));
            }
        }
        long newest = admin.listOffsets(Map.of(two, OffsetSpec.maxTimestamp()))
            .partitionResult(two).get().offset();
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(two));
            OffsetAndTimestamp found =
                consumer.offsetsForTimes(Map.of(two, FIRST_TIMESTAMP_MS + 495)).get(two);
            OffsetAndTimestamp none =
                consumer.offsetsForTimes(Map.of(two, FIRST_TIMESTAMP_MS + 5000)).get(two);
            consumer.seek(two, 97);
            List<String> last = values(take(consumer, 3));
            return Map.of(
                "found", found.offset(), "timestamp", found.timestamp() - FIRST_TIMESTAMP_MS,
                "none", none == null, "last", last, "newest", newest,
                "beginning", consumer.beginningOffsets(List.of(two)).get(two),
                "end", consumer.endOffsets(List.of(two)).get(two));
        }
    }

    private Map<String, Object> deleteRecords() throws Exception {
        String topic = newTopic("shortened");
        send(topic, "record");
        TopicPartition zero = new TopicPartition(topic, 0);
        long low = admin.deleteRecords(Map.of(zero, RecordsToDelete.beforeOffset(6)))
            .lowWatermarks().get(zero).get().lowWatermark();
        List<Long> left = read(topic, 34, Map.of()).stream()
            .filter(each -> each.partition() == 0).map(ConsumerRecord::offset).toList();
        return Map.of("low", low, "left", left);
    }

    /** A member of a group that polls in a thread of its own, as an application does. */
    private final class Member implements AutoCloseable, ConsumerRebalanceListener {
        final List<String> values = Collections.synchronizedList(new ArrayList<>());
        volatile Set<Integer> partitions = Set.of();
        volatile int rebalances;
        private final KafkaConsumer<String, String> consumer;
        private final Thread thread;
        private volatile boolean leaving;

        Member(String topic, Map<String, Object> settings) {
            consumer = consumer(settings);
            consumer.subscribe(List.of(topic), this);
            thread = new Thread(this::poll);
            thread.start();
        }

        private void poll() {
            try (consumer) {
                while (!leaving) {
                    consumer.poll(Duration.ofMillis(100)).forEach(each -> values.add(each.value()));
                    partitions = consumer.assignment().stream()
                        .map(TopicPartition::partition).collect(Collectors.toSet());
                }
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            rebalances++;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {}

        @Override
        public void close() {
            leaving = true;
            try {
                thread.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static void awaitSplit(List<Member> members, List<Integer> sizes) throws Exception {
        await("a split of the partitions into " + sizes, () -> {
            Set<Integer> all = new TreeSet<>();
            members.forEach(each -> all.addAll(each.partitions));
            return all.size() == PARTITIONS
                && members.stream().map(each -> each.partitions.size()).toList().equals(sizes);
        });
    }

    /** How many of the 40 records just sent each member took. */
    private static List<Integer> taken(List<Member> members, Set<String> distinct) throws Exception {
        await("40 records", () ->
            members.stream().mapToInt(each -> each.values.size()).sum() >= 40);
        List<Integer> sizes = members.stream().map(each -> each.values.size()).toList();
        members.forEach(each -> {
            distinct.addAll(each.values);
            each.values.clear();
        });
        return sizes;
    }

    private Map<String, Object> group(String name, String protocol) {
        Map<String, Object> settings = new HashMap<>(Map.of("group.id", name));
        if (protocol.equals("consumer")) {
            settings.put("group.protocol", "consumer");
            return settings;
        }
        String assignor = protocol.equals("range") ? "RangeAssignor" : "CooperativeStickyAssignor";
        settings.put(
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
        settings.put("heartbeat.interval.ms", 200);
        settings.put("session.timeout.ms", 10_000);
        return settings;
    }

    private KafkaProducer<String, String> producer(Map<String, Object> settings) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.putAll(settings);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    private KafkaProducer<String, String> transactional(String name) {
        KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name));
        producer.initTransactions();
        return producer;
    }

    private KafkaConsumer<String, String> consumer(Map<String, Object> settings) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("auto.offset.reset", "earliest");
        all.putAll(settings);
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    /** Sends 40 records, ten to each partition. */
    private void send(String topic, String prefix) {
        try (KafkaProducer<String, String> producer = producer(Map.of("linger.ms", 5))) {
            for (int number = 0; number < 40; number++) {
                producer.send(
                    new ProducerRecord<>(topic, number % PARTITIONS, null, prefix + "-" + number));
            }
        }
    }

    private List<ConsumerRecord<String, String>> read(
            String topic, int count, Map<String, Object> settings) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.assign(partitions(topic));
            return take(consumer, count);
        }
    }

    private static List<ConsumerRecord<String, String>> take(
            KafkaConsumer<String, String> consumer, int count) throws Exception {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        await(count + " records", () -> {
            consumer.poll(Duration.ofMillis(100)).forEach(records::add);
            return records.size() >= count;
        });
        return records;
    }

    private static List<TopicPartition> partitions(String topic) {
        return IntStream.range(0, PARTITIONS)
            .mapToObj(number -> new TopicPartition(topic, number)).toList();
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private static Map<String, Long> counts(List<ConsumerRecord<String, String>> records) {
        return records.stream().collect(
            Collectors.groupingBy(each -> each.value().split("-")[0], Collectors.counting()));
    }

    /** Makes a topic and returns when all its leaders answer: before that a producer may have to
     * retry its first batch, and a broker that does not know the producer takes the second first. */
    private String newTopic(String prefix) throws Exception {
        String topic = unique(prefix);
        admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        partitions(topic).forEach(each -> ends.put(each, OffsetSpec.latest()));
        await("the leaders of " + topic,
            () -> failure(() -> admin.listOffsets(ends).all().get()).equals("none"));
        return topic;
    }

    private TopicDescription describeTopic(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private ConsumerGroupDescription describeGroup(String name) throws Exception {
        return admin.describeConsumerGroups(List.of(name)).all().get().get(name);
    }

    private Set<String> groups() throws Exception {
        return admin.listGroups().all().get().stream()
            .map(each -> each.groupId()).collect(Collectors.toSet());
    }

    private String setting(ConfigResource resource, String name) throws Exception {
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        return config.get(name).value();
    }

    private long latest(TopicPartition partition, IsolationLevel isolation) throws Exception {
        return admin.listOffsets(
                Map.of(partition, OffsetSpec.latest()), new ListOffsetsOptions(isolation))
            .partitionResult(partition).get().offset();
    }

    private static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    /** The kind of error that the action ends with. */
    private static String failure(Callable<?> action) {
        try {
            action.call();
            return "none";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (Exception failed) {
            return failed.getClass().getSimpleName();
        }
    }

    private static String describe(Throwable failed) {
        String where = Arrays.stream(failed.getStackTrace())
            .filter(each -> each.getClassName().startsWith("ClientScenarios"))
            .map(StackTraceElement::toString).findFirst().orElse("?");
        return failed + " at " + where;
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(what + " did not come in 30 s");
            }
            Thread.sleep(20);
        }
    }
}
