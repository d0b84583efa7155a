"""The built-in plugins: Java's class names and the Python classes.

Nothing is imported before a plugin is used, so a missing library affects only the connectors that
need it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from connect.plugin_finder import PluginKind

FILE = "org.apache.kafka.connect.file"
JDBC = "io.confluent.connect.jdbc"
TRANSFORMS = "org.apache.kafka.connect.transforms"
CONVERTERS = "org.apache.kafka.connect.converters"


@dataclass(frozen=True, slots=True)
class BuiltinPlugin:
    """A plugin by its Java name; `place` is the Python "module:Class"."""

    kind: PluginKind
    name: str
    place: str
    # The class of a connector's tasks, as task configurations name it in the config topic.
    task_name: str | None = None


CONNECTORS = (
    BuiltinPlugin(
        PluginKind.SOURCE,
        f"{FILE}.FileStreamSourceConnector",
        "connect.connectors.file_stream_source:FileStreamSourceConnector",
        f"{FILE}.FileStreamSourceTask",
    ),
    BuiltinPlugin(
        PluginKind.SINK,
        f"{FILE}.FileStreamSinkConnector",
        "connect.connectors.file_stream_sink:FileStreamSinkConnector",
        f"{FILE}.FileStreamSinkTask",
    ),
    BuiltinPlugin(
        PluginKind.SOURCE,
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        "connect.connectors.datagen.connector:DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenTask",
    ),
    BuiltinPlugin(
        PluginKind.SINK,
        "io.confluent.connect.http.HttpSinkConnector",
        "connect.connectors.http_sink.connector:HttpSinkConnector",
        "io.confluent.connect.http.HttpSinkTask",
    ),
    # Kafka Connect has no such connector, so Millstream chose the name.
    BuiltinPlugin(
        PluginKind.SINK,
        "connect.connectors.files_sink.connector:FilesSinkConnector",
        "connect.connectors.files_sink.connector:FilesSinkConnector",
    ),
    BuiltinPlugin(
        PluginKind.SOURCE,
        f"{JDBC}.JdbcSourceConnector",
        "connect.connectors.jdbc.source_connector:JdbcSourceConnector",
        f"{JDBC}.source.JdbcSourceTask",
    ),
    BuiltinPlugin(
        PluginKind.SINK,
        f"{JDBC}.JdbcSinkConnector",
        "connect.connectors.jdbc.sink_connector:JdbcSinkConnector",
        f"{JDBC}.sink.JdbcSinkTask",
    ),
)

# Java's name, the Python class.
_CONVERTERS = {
    "org.apache.kafka.connect.json.JsonConverter": (
        "connect.converters.json_converter:JsonConverter"
    ),
    "org.apache.kafka.connect.storage.StringConverter": (
        "connect.converters.primitives:StringConverter"
    ),
    **{
        f"{CONVERTERS}.{name}Converter": f"connect.converters.primitives:{name}Converter"
        for name in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
    },
}
_SIMPLE_HEADERS = {
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": (
        "connect.converters.simple_header_converter:SimpleHeaderConverter"
    )
}
_REGISTRY_CONVERTERS = {
    "io.confluent.connect.avro.AvroConverter": "connect.converters.avro_converter:AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter": (
        "connect.converters.json_schema_converter:JsonSchemaConverter"
    ),
    "io.confluent.connect.protobuf.ProtobufConverter": (
        "connect.converters.protobuf_converter:ProtobufConverter"
    ),
}
# The name of a transform, and its module with one class for keys and one for values.
_OF_KEYS_AND_VALUES = {
    "Cast": "connect.transforms.cast",
    "ExtractField": "connect.transforms.extract_field",
    "Flatten": "connect.transforms.flatten",
    "HeaderFrom": "connect.transforms.header_from",
    "HoistField": "connect.transforms.hoist_field",
    "InsertField": "connect.transforms.insert_field",
    "MaskField": "connect.transforms.mask_field",
    "ReplaceField": "connect.transforms.replace_field",
    "SetSchemaMetadata": "connect.transforms.set_schema_metadata",
    "TimestampConverter": "connect.transforms.timestamp_converter",
}
_OF_RECORDS = {
    "DropHeaders": "connect.transforms.drop_headers",
    "Filter": "connect.transforms.filter",
    "InsertHeader": "connect.transforms.insert_header",
    "RegexRouter": "connect.transforms.regex_router",
    "TimestampRouter": "connect.transforms.timestamp_router",
    "ValueToKey": "connect.transforms.value_to_key",
}
_PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")


def builtin_plugins() -> Iterator[BuiltinPlugin]:
    """All built-in plugins, by kind."""
    yield from CONNECTORS
    for name, place in {**_CONVERTERS, **_REGISTRY_CONVERTERS}.items():
        yield BuiltinPlugin(PluginKind.CONVERTER, name, place)
    for name, place in {**_CONVERTERS, **_SIMPLE_HEADERS}.items():
        yield BuiltinPlugin(PluginKind.HEADER_CONVERTER, name, place)
    for name, module in _OF_KEYS_AND_VALUES.items():
        for part in ("Key", "Value"):
            yield BuiltinPlugin(
                PluginKind.TRANSFORMATION,
                f"{TRANSFORMS}.{name}${part}",
                f"{module}:{name}{part}",
            )
    for name, module in _OF_RECORDS.items():
        place = f"{module}:{name}"
        yield BuiltinPlugin(PluginKind.TRANSFORMATION, f"{TRANSFORMS}.{name}", place)
    for name in _PREDICATES:
        place = f"connect.transforms.predicates:{name}"
        yield BuiltinPlugin(PluginKind.PREDICATE, f"{TRANSFORMS}.predicates.{name}", place)
