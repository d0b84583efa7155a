"""The plugins that come with the worker: Java's class names, and where ours are.

Nothing is imported before a plugin is used, so that a connector whose library is missing is in
nobody's way.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from connect.plugin_finder import PluginKind

FILE = "org.apache.kafka.connect.file"
TRANSFORMS = "org.apache.kafka.connect.transforms"
CONVERTERS = "org.apache.kafka.connect.converters"


@dataclass(frozen=True, slots=True)
class BuiltinPlugin:
    """A plugin by Java's name; `place` is our "module:Class"."""

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
)

# Java's name, our place.
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
# A transform's name, our module; these have a class for keys and one for values.
_OF_KEYS_AND_VALUES = {
    "Cast": "cast",
    "ExtractField": "fields",
    "Flatten": "flatten",
    "HeaderFrom": "headers",
    "HoistField": "fields",
    "InsertField": "insert_field",
    "MaskField": "mask_field",
    "ReplaceField": "replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "timestamp_converter",
}
_OF_RECORDS = {
    "DropHeaders": "headers",
    "Filter": "routing",
    "InsertHeader": "headers",
    "RegexRouter": "routing",
    "TimestampRouter": "routing",
    "ValueToKey": "fields",
}
_PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")


def builtin_plugins() -> Iterator[BuiltinPlugin]:
    """All of them, by kind."""
    yield from CONNECTORS
    for name, place in _CONVERTERS.items():
        yield BuiltinPlugin(PluginKind.CONVERTER, name, place)
    for name, place in {**_CONVERTERS, **_SIMPLE_HEADERS}.items():
        yield BuiltinPlugin(PluginKind.HEADER_CONVERTER, name, place)
    for name, module in _OF_KEYS_AND_VALUES.items():
        for part in ("Key", "Value"):
            yield BuiltinPlugin(
                PluginKind.TRANSFORMATION,
                f"{TRANSFORMS}.{name}${part}",
                f"connect.transforms.{module}:{name}{part}",
            )
    for name, module in _OF_RECORDS.items():
        place = f"connect.transforms.{module}:{name}"
        yield BuiltinPlugin(PluginKind.TRANSFORMATION, f"{TRANSFORMS}.{name}", place)
    for name in _PREDICATES:
        place = f"connect.transforms.predicates:{name}"
        yield BuiltinPlugin(PluginKind.PREDICATE, f"{TRANSFORMS}.predicates.{name}", place)
