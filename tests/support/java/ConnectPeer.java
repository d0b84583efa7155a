// Kafka Connect's own transforms, predicates and definitions of settings:
//   java ConnectPeer
// takes lines of JSON from standard input and prints a line of JSON for each:
//   {"transform": CLASS, "config": {..}, "record": {..}}   the record, null, or {"error": ".."}
//   {"predicate": CLASS, "config": {..}, "record": {..}}   true or false
//   {"definition": "source" | "sink" | CLASS}              a list of ConfigKeyInfo
//   {"validate": "source" | "sink", "config": {..}}        ConfigInfos
// Records, schemas and values are written as tests/connect/transforms/notation.py says.

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.SinkConnectorConfig;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

public class ConnectPeer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("HH:mm:ss.SSS").withZone(ZoneOffset.UTC);
    private static final DateTimeFormatter MOMENT =
            DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);
    private static final Map<String, String> LOGICAL =
            Map.of(
                    Decimal.LOGICAL_NAME, "decimal",
                    Date.LOGICAL_NAME, "date",
                    Time.LOGICAL_NAME, "time",
                    Timestamp.LOGICAL_NAME, "timestamp");
    private static Plugins plugins;

    public static void main(String[] args) throws Exception {
        PrintStream out =
                new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (Exception error) {
                answer = NODES.objectNode().put("error", described(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    private static String described(Throwable error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }

    private static JsonNode answer(JsonNode request) throws Exception {
        if (request.has("transform")) {
            return transformed(request);
        }
        if (request.has("predicate")) {
            return tested(request);
        }
        if (request.has("definition")) {
            return definition(request.get("definition").asText());
        }
        return validated(request);
    }

    private static Map<String, String> texts(JsonNode config) {
        return JSON.convertValue(config, new TypeReference<LinkedHashMap<String, String>>() {});
    }

    private static Object made(JsonNode name) throws Exception {
        return Class.forName(name.asText()).getDeclaredConstructor().newInstance();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static JsonNode transformed(JsonNode request) throws Exception {
        Transformation transform = (Transformation) made(request.get("transform"));
        transform.configure(texts(request.get("config")));
        return written(transform.apply(record(request.get("record"))));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static JsonNode tested(JsonNode request) throws Exception {
        Predicate predicate = (Predicate) made(request.get("predicate"));
        predicate.configure(texts(request.get("config")));
        return NODES.booleanNode(predicate.test(record(request.get("record"))));
    }

    private static JsonNode definition(String name) throws Exception {
        ConfigDef definition;
        if (name.equals("source")) {
            definition = SourceConnectorConfig.configDef();
        } else if (name.equals("sink")) {
            definition = SinkConnectorConfig.configDef();
        } else {
            Object plugin = Class.forName(name).getDeclaredConstructor().newInstance();
            definition =
                    plugin instanceof Transformation
                            ? ((Transformation<?>) plugin).config()
                            : ((Predicate<?>) plugin).config();
        }
        ArrayNode keys = NODES.arrayNode();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            ObjectNode info = JSON.valueToTree(AbstractHerder.convertConfigKey(key));
            keys.add(info.put("valid_values", String.valueOf(key.validator)));
        }
        return keys;
    }

    private static JsonNode validated(JsonNode request) {
        if (plugins == null) {
            plugins = new Plugins(Map.of());
            plugins.compareAndSwapWithDelegatingLoader(); // knows aliases
        }
        boolean sink = request.get("validate").asText().equals("sink");
        Map<String, String> config = texts(request.get("config"));
        ConfigDef base = sink ? SinkConnectorConfig.configDef() : SourceConnectorConfig.configDef();
        ConfigDef enriched = ConnectorConfig.enrich(plugins, base, config, false);
        Map<String, ConfigValue> values = enriched.validateAll(config);
        if (sink) {
            SinkConnectorConfig.validate(config, values);
        }
        return JSON.valueToTree(
                AbstractHerder.generateResult(
                        config.get("connector.class"),
                        enriched.configKeys(),
                        new ArrayList<>(values.values()),
                        enriched.groups()));
    }

    // Reading.

    private static ConnectRecord<?> record(JsonNode node) {
        Schema keySchema = schemaOf(node.get("key"));
        Schema valueSchema = schemaOf(node.get("value"));
        Object key = valueOf(node.get("key"), keySchema);
        Object value = valueOf(node.get("value"), valueSchema);
        String topic = node.has("topic") ? node.get("topic").asText() : "t";
        Integer partition = node.has("partition") ? node.get("partition").asInt() : 0;
        Long timestamp = node.has("timestamp") ? node.get("timestamp").asLong() : null;
        ConnectHeaders headers = new ConnectHeaders();
        if (node.has("headers")) {
            for (JsonNode header : node.get("headers")) {
                Schema schema = schemaOf(header);
                headers.add(header.get("key").asText(), valueOf(header, schema), schema);
            }
        }
        if (node.has("source")) {
            return new SourceRecord(
                    Map.of(), Map.of(), topic, partition, keySchema, key, valueSchema, value,
                    timestamp, headers);
        }
        long offset = node.has("offset") ? node.get("offset").asLong() : 0;
        return new SinkRecord(
                topic, partition, keySchema, key, valueSchema, value, offset, timestamp,
                TimestampType.CREATE_TIME, headers);
    }

    private static Schema schemaOf(JsonNode data) {
        return data == null || !data.has("schema") ? null : schema(data.get("schema"));
    }

    private static Object valueOf(JsonNode data, Schema schema) {
        return data == null ? null : value(data.get("value"), schema);
    }

    private static Schema schema(JsonNode node) {
        boolean plain = node.isTextual();
        String type = plain ? node.asText() : node.get("type").asText();
        boolean marked = type.endsWith("?");
        type = marked ? type.substring(0, type.length() - 1) : type;
        SchemaBuilder builder = builder(type, node);
        if (marked || node.path("optional").asBoolean()) {
            builder.optional();
        }
        if (plain) {
            return builder.build();
        }
        if (node.has("name")) {
            builder.name(node.get("name").asText());
        }
        if (node.has("version")) {
            builder.version(node.get("version").asInt());
        }
        if (node.has("doc")) {
            builder.doc(node.get("doc").asText());
        }
        if (node.has("parameters")) {
            builder.parameters(texts(node.get("parameters")));
        }
        if (node.has("default")) {
            // A struct's schema must be this one, which is not built yet.
            builder.defaultValue(value(node.get("default"), builder));
        }
        return builder.build();
    }

    private static SchemaBuilder builder(String type, JsonNode node) {
        if (type.startsWith("decimal(")) {
            return Decimal.builder(Integer.parseInt(type.substring(8, type.length() - 1)));
        }
        switch (type) {
            case "date":
                return Date.builder();
            case "time":
                return Time.builder();
            case "timestamp":
                return Timestamp.builder();
            case "array":
                return SchemaBuilder.array(schema(node.get("of")));
            case "map":
                return SchemaBuilder.map(schema(node.get("keys")), schema(node.get("of")));
            case "struct":
                SchemaBuilder struct = SchemaBuilder.struct();
                node.get("fields")
                        .properties()
                        .forEach(each -> struct.field(each.getKey(), schema(each.getValue())));
                return struct;
            case "float":
                return SchemaBuilder.float32();
            case "double":
                return SchemaBuilder.float64();
            default:
                return SchemaBuilder.type(Schema.Type.valueOf(type.toUpperCase()));
        }
    }

    private static Object value(JsonNode node, Schema schema) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (schema == null) {
            return schemaless(node);
        }
        if (schema.name() != null && LOGICAL.containsKey(schema.name())) {
            return logical(LOGICAL.get(schema.name()), node.asText());
        }
        switch (schema.type()) {
            case INT8:
                return (byte) node.asInt();
            case INT16:
                return (short) node.asInt();
            case INT32:
                return node.asInt();
            case INT64:
                return node.asLong();
            case FLOAT32:
                return node.isTextual() ? Float.parseFloat(node.asText()) : (float) node.asDouble();
            case FLOAT64:
                return node.isTextual() ? Double.parseDouble(node.asText()) : node.asDouble();
            case BOOLEAN:
                return node.asBoolean();
            case STRING:
                return node.asText();
            case BYTES:
                return Base64.getDecoder().decode(node.asText());
            case ARRAY:
                List<Object> list = new ArrayList<>();
                node.forEach(each -> list.add(value(each, schema.valueSchema())));
                return list;
            case MAP:
                return map(node, schema);
            default:
                Struct struct = new Struct(schema);
                node.properties()
                        .forEach(
                                each ->
                                        struct.put(
                                                each.getKey(),
                                                value(each.getValue(), schema.field(each.getKey()).schema())));
                return struct;
        }
    }

    private static Map<Object, Object> map(JsonNode node, Schema schema) {
        Map<Object, Object> map = new LinkedHashMap<>();
        if (node.isObject()) {
            node.properties()
                    .forEach(
                            each -> map.put(each.getKey(), value(each.getValue(), schema.valueSchema())));
        } else {
            node.forEach(
                    pair ->
                            map.put(
                                    value(pair.get(0), schema.keySchema()),
                                    value(pair.get(1), schema.valueSchema())));
        }
        return map;
    }

    private static Object logical(String type, String text) {
        switch (type) {
            case "decimal":
                return new BigDecimal(text);
            case "date":
                return java.util.Date.from(LocalDate.parse(text).atStartOfDay().toInstant(ZoneOffset.UTC));
            case "time":
                return new java.util.Date(LocalTime.parse(text).toNanoOfDay() / 1_000_000);
            default:
                return java.util.Date.from(Instant.parse(text));
        }
    }

    private static Object schemaless(JsonNode node) {
        if (node.isArray()) {
            List<Object> list = new ArrayList<>();
            node.forEach(each -> list.add(each.isNull() ? null : schemaless(each)));
            return list;
        }
        if (node.isObject()) {
            return marked(node);
        }
        if (node.isTextual()) {
            return node.asText();
        }
        if (node.isBoolean()) {
            return node.asBoolean();
        }
        if (node.isIntegralNumber()) {
            return node.asLong();
        }
        return node.asDouble();
    }

    private static Object marked(JsonNode node) {
        String mark = node.size() == 1 ? node.fieldNames().next() : "";
        JsonNode inner = node.path(mark);
        switch (mark) {
            case "$int8":
                return (byte) inner.asInt();
            case "$int16":
                return (short) inner.asInt();
            case "$int32":
                return inner.asInt();
            case "$float":
                return (float) inner.asDouble();
            case "$double":
                return Double.parseDouble(inner.asText());
            case "$bytes":
                return Base64.getDecoder().decode(inner.asText());
            case "$decimal":
                return new BigDecimal(inner.asText());
            case "$timestamp":
                return java.util.Date.from(Instant.parse(inner.asText()));
            default:
                Map<String, Object> map = new LinkedHashMap<>();
                node.properties()
                        .forEach(
                                each ->
                                        map.put(
                                                each.getKey(),
                                                each.getValue().isNull() ? null : schemaless(each.getValue())));
                return map;
        }
    }

    // Writing.

    private static JsonNode written(ConnectRecord<?> record) {
        if (record == null) {
            return NODES.nullNode();
        }
        ObjectNode node = NODES.objectNode();
        node.put("topic", record.topic());
        node.put("partition", record.kafkaPartition());
        if (record.timestamp() != null) {
            node.put("timestamp", record.timestamp());
        }
        putData(node, "key", record.keySchema(), record.key());
        putData(node, "value", record.valueSchema(), record.value());
        if (!record.headers().isEmpty()) {
            ArrayNode headers = node.putArray("headers");
            for (Header header : record.headers()) {
                ObjectNode data = data(header.schema(), header.value());
                headers.add(data.put("key", header.key()));
            }
        }
        return node;
    }

    private static void putData(ObjectNode node, String name, Schema schema, Object value) {
        if (schema != null || value != null) {
            node.set(name, data(schema, value));
        }
    }

    private static ObjectNode data(Schema schema, Object value) {
        ObjectNode data = NODES.objectNode();
        if (schema != null) {
            data.set("schema", written(schema));
        }
        data.set("value", written(schema, value));
        return data;
    }

    private static JsonNode written(Schema schema) {
        ObjectNode node = NODES.objectNode();
        String logical = schema.name() == null ? null : LOGICAL.get(schema.name());
        String type = logical != null ? logical : typeName(schema.type());
        Map<String, String> parameters = schema.parameters();
        if (type.equals("decimal")) {
            type = "decimal(" + parameters.get(Decimal.SCALE_FIELD) + ")";
            parameters = null;
        }
        boolean plain = schema.type().isPrimitive() && schema.doc() == null;
        plain = plain && schema.defaultValue() == null && (parameters == null || parameters.isEmpty());
        plain = plain && (logical != null ? Integer.valueOf(1).equals(schema.version()) : schema.version() == null);
        plain = plain && (logical != null || schema.name() == null);
        if (plain) {
            return NODES.textNode(type + (schema.isOptional() ? "?" : ""));
        }
        node.put("type", type);
        if (schema.isOptional()) {
            node.put("optional", true);
        }
        if (schema.name() != null && logical == null) {
            node.put("name", schema.name());
        }
        if (schema.version() != null && (logical == null || schema.version() != 1)) {
            node.put("version", schema.version());
        }
        if (schema.doc() != null) {
            node.put("doc", schema.doc());
        }
        if (parameters != null && !parameters.isEmpty()) {
            ObjectNode written = node.putObject("parameters");
            parameters.forEach(written::put);
        }
        if (schema.defaultValue() != null) {
            node.set("default", written(schema, schema.defaultValue()));
        }
        putParts(node, schema);
        return node;
    }

    private static void putParts(ObjectNode node, Schema schema) {
        if (schema.type() == Schema.Type.STRUCT) {
            ObjectNode fields = node.putObject("fields");
            for (Field field : schema.fields()) {
                fields.set(field.name(), written(field.schema()));
            }
        }
        // An empty list or map that was a text has no schemas of its parts.
        if (schema.type() == Schema.Type.MAP && schema.keySchema() != null) {
            node.set("keys", written(schema.keySchema()));
        }
        boolean hasParts = schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY;
        if (hasParts && schema.valueSchema() != null) {
            node.set("of", written(schema.valueSchema()));
        }
    }

    private static String typeName(Schema.Type type) {
        switch (type) {
            case FLOAT32:
                return "float";
            case FLOAT64:
                return "double";
            default:
                return type.getName();
        }
    }

    private static JsonNode written(Schema schema, Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (schema == null) {
            return schemaless(value);
        }
        if (value instanceof java.util.Date) {
            return moment(LOGICAL.getOrDefault(schema.name(), "timestamp"), (java.util.Date) value);
        }
        if (value instanceof BigDecimal) {
            return NODES.textNode(((BigDecimal) value).toPlainString());
        }
        if (value instanceof Struct) {
            ObjectNode node = NODES.objectNode();
            for (Field field : ((Struct) value).schema().fields()) {
                node.set(field.name(), written(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
            }
            return node;
        }
        if (value instanceof List) {
            ArrayNode node = NODES.arrayNode();
            ((List<?>) value).forEach(each -> node.add(written(schema.valueSchema(), each)));
            return node;
        }
        if (value instanceof Map) {
            return writtenMap(schema, (Map<?, ?>) value);
        }
        JsonNode plain = schemaless(value);
        return plain.has("$bytes") ? plain.get("$bytes") : plain.has("$double") ? plain.get("$double") : plain;
    }

    private static JsonNode writtenMap(Schema schema, Map<?, ?> map) {
        if (schema.keySchema() != null && schema.keySchema().type() == Schema.Type.STRING) {
            ObjectNode node = NODES.objectNode();
            map.forEach((key, each) -> node.set((String) key, written(schema.valueSchema(), each)));
            return node;
        }
        ArrayNode pairs = NODES.arrayNode();
        map.forEach(
                (key, each) ->
                        pairs.addArray()
                                .add(written(schema.keySchema(), key))
                                .add(written(schema.valueSchema(), each)));
        return pairs;
    }

    private static JsonNode moment(String type, java.util.Date date) {
        Instant instant = date.toInstant();
        switch (type) {
            case "date":
                return NODES.textNode(instant.atZone(ZoneOffset.UTC).toLocalDate().toString());
            case "time":
                return NODES.textNode(TIME.format(instant));
            default:
                return NODES.textNode(MOMENT.format(instant));
        }
    }

    private static JsonNode schemaless(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Struct) {
            return written(((Struct) value).schema(), value);
        }
        if (value instanceof Map) {
            ObjectNode node = NODES.objectNode();
            ((Map<?, ?>) value).forEach((key, each) -> node.set(String.valueOf(key), schemaless(each)));
            return node;
        }
        if (value instanceof List) {
            ArrayNode node = NODES.arrayNode();
            ((List<?>) value).forEach(each -> node.add(schemaless(each)));
            return node;
        }
        if (value instanceof java.util.Date) {
            return NODES.objectNode().set("$timestamp", moment("timestamp", (java.util.Date) value));
        }
        if (value instanceof BigDecimal) {
            return NODES.objectNode().put("$decimal", ((BigDecimal) value).toPlainString());
        }
        if (value instanceof byte[] || value instanceof ByteBuffer) {
            byte[] bytes = value instanceof byte[] ? (byte[]) value : ((ByteBuffer) value).array();
            return NODES.objectNode().put("$bytes", Base64.getEncoder().encodeToString(bytes));
        }
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            if (Double.isFinite(number)) {
                return NODES.numberNode(number);
            }
            return NODES.objectNode().put("$double", String.valueOf(number));
        }
        if (value instanceof Number) {
            return NODES.numberNode(((Number) value).longValue());
        }
        return value instanceof Boolean ? NODES.booleanNode((Boolean) value) : NODES.textNode((String) value);
    }
}
