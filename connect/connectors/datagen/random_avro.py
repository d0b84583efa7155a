"""Avro schemas with `arg.properties`, which define the generated values.

    {"type": "string", "arg.properties": {"regex": "User_[1-9]"}}

type              properties
all               options: [values], or {"file": path, "encoding": "json"}
int long          range {min, max}, iteration {start, restart, step, initial}
float double      the same
boolean           odds, iteration {start}
string            regex, length (number, or {min, max}), prefix, suffix
bytes             length
array             length
map               length, keys {properties of a string}
our extensions    numbered {prefix, count} for strings: "User_1" to "User_9";
                  time for top-level longs and strings: the record's timestamp
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from connect import data
from connect.connectors.datagen import columns
from connect.connectors.datagen.generated import Generated, primitive
from connect.connectors.datagen.properties import ARG_PROPERTIES, Properties
from connect.data import ConnectSchema, Field
from connect.errors import ConfigError, DataError
from connect.logical_values import timestamp_of

_NULL_ODDS = 0.5


@dataclass(frozen=True, slots=True)
class TimeField:
    """A top-level field whose value is the record's timestamp."""

    position: int
    of_milliseconds: Callable[[int], object]


@dataclass(frozen=True, slots=True)
class RecordGenerator:
    """The schema of generated records, a column per field, and the time fields."""

    schema: ConnectSchema
    fields: tuple[Generated, ...]
    time_fields: tuple[TimeField, ...]


def read_schema(text: str) -> RecordGenerator:
    """The generator of an Avro record schema; ConfigError if it is invalid."""
    try:
        node = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"Unable to parse the provided schema: {error}") from None
    return read_record(node)


def read_record(node: object) -> RecordGenerator:
    """The generator of a record schema as parsed JSON."""
    if not isinstance(node, dict) or node.get("type") != "record":
        raise ConfigError(
            "the schema of generated records is not a record schema",
            hint='use an Avro schema {"type": "record", "name": ..., "fields": [...]}',
        )
    reader = _Reader()
    fields: list[Generated] = []
    times: list[TimeField] = []
    entries = _entries(node)
    for position, entry in enumerate(entries):
        way = _time_format(entry.get("type"), _at(entry))
        if way is None:
            fields.append(reader.read(entry.get("type"), _at(entry), _namespace(node, "")))
        else:
            schema, of_milliseconds = way
            fields.append(Generated(schema, columns.constant(None)))
            times.append(TimeField(position, of_milliseconds))
    schema = _struct(node, _namespace(node, ""), entries, fields)
    return RecordGenerator(schema, tuple(fields), tuple(times))


class _Reader:
    """Reads types, and remembers named types."""

    def __init__(self) -> None:
        self._named: dict[str, Generated] = {}

    def read(self, node: object, at: str, namespace: str) -> Generated:
        """The schema and the column of a type."""
        if isinstance(node, list):
            return self._union(node, at, namespace)
        if isinstance(node, str):
            node = {"type": node}
        if not isinstance(node, dict):
            raise ConfigError(f"{node!r} is not an Avro type", at=at)
        kind = node.get("type")
        if isinstance(kind, dict | list):
            return self.read(kind, at, namespace)
        properties = Properties.of_node(node, at)
        made = self._of_kind(str(kind), node, properties, namespace)
        options = properties.options()
        if options is None:
            return made
        return Generated(made.schema, columns.one_of(_fitting(made.schema, options, at)))

    def _of_kind(
        self, kind: str, node: dict[str, object], properties: Properties, namespace: str
    ) -> Generated:
        at = properties.at
        if kind in ("record", "enum", "fixed"):
            namespace = _namespace(node, namespace)
            made = self._with_name(kind, node, at, namespace)
            self._named[_full_name(node, namespace)] = made
            return made
        if kind == "array":
            items = self.read(node.get("items"), at, namespace)
            column = columns.lists(items.column, *properties.lengths())
            return Generated(data.array(items.schema), column)
        if kind == "map":
            values = self.read(node.get("values"), at, namespace)
            keys = {"type": "string", ARG_PROPERTIES: properties.given.get("keys", {})}
            key_column = self.read(keys, at, "").column
            column = columns.maps(key_column, values.column, *properties.lengths())
            return Generated(data.map_of(data.STRING, values.schema), column)
        named = self._named.get(kind) or self._named.get(f"{namespace}.{kind}")
        return named or primitive(kind, node, properties)

    def _with_name(self, kind: str, node: dict[str, object], at: str, namespace: str) -> Generated:
        if kind == "enum":
            symbols = node.get("symbols")
            if not isinstance(symbols, list) or not symbols:
                raise ConfigError("the enum has no symbols", at=at)
            return Generated(data.STRING, columns.one_of(symbols))
        if kind == "fixed":
            size = Properties(node, at).integer("size")
            return Generated(data.BYTES, columns.random_bytes(size, size + 1))
        entries = _entries(node)
        fields = [self.read(entry.get("type"), _at(entry), namespace) for entry in entries]
        schema = _struct(node, namespace, entries, fields)
        return Generated(schema, columns.structs(schema, [made.column for made in fields]))

    def _union(self, node: list[object], at: str, namespace: str) -> Generated:
        others = [branch for branch in node if branch != "null"]
        if len(others) != 1 or len(node) > 2:
            raise ConfigError(
                "a union of several types cannot be generated",
                at=at,
                hint='use one type, or ["null", type]',
            )
        made = self.read(others[0], at, namespace)
        if len(node) == 1:
            return made
        column = columns.sometimes_null(made.column, _NULL_ODDS)
        return Generated(made.schema.as_optional(), column, made.prefix)


def _entries(node: Mapping[str, object]) -> list[dict[str, object]]:
    entries = node.get("fields")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f'record "{node.get("name")}" has no list of fields')
    return entries


def _at(entry: Mapping[str, object]) -> str:
    return f'field "{entry.get("name")}"'


def _namespace(node: Mapping[str, object], inherited: str) -> str:
    name = str(node.get("name", ""))
    return name.rpartition(".")[0] or str(node.get("namespace", inherited))


def _full_name(node: Mapping[str, object], namespace: str) -> str:
    name = str(node.get("name", "")).rpartition(".")[2]
    return f"{namespace}.{name}" if namespace else name


def _struct(
    node: Mapping[str, object],
    namespace: str,
    entries: list[dict[str, object]],
    fields: list[Generated],
) -> ConnectSchema:
    parts = [
        Field(str(entry.get("name")), made.schema)
        for entry, made in zip(entries, fields, strict=True)
    ]
    return data.struct(_full_name(node, namespace), parts)


def _time_format(node: object, at: str) -> tuple[ConnectSchema, Callable[[int], object]] | None:
    """The schema and conversion of a time field; None for any other field."""
    if not isinstance(node, dict) or not Properties.of_node(node, at).given.get("time"):
        return None
    if node.get("logicalType") == "timestamp-millis":
        return data.timestamp(), timestamp_of
    if node.get("type") == "long":
        return data.INT64, lambda milliseconds: milliseconds
    if node.get("type") == "string":
        return data.STRING, _log_text_of
    raise ConfigError(f"a field of type {node.get('type')} cannot hold the record's time", at=at)


def _log_text_of(milliseconds: int) -> str:
    return _log_text_of_second(milliseconds // 1_000)


@lru_cache(maxsize=1_024)  # many records have the same second
def _log_text_of_second(second: int) -> str:
    # The format of web server logs.
    return timestamp_of(second * 1_000).strftime("%d/%b/%Y:%H:%M:%S +0000")


def _fitting(schema: ConnectSchema, options: list[object], at: str) -> list[object]:
    """Options as values of the schema."""
    made = [_value_of(schema, option) for option in options]
    for value in made:
        try:
            data.validate(schema, value)
        except DataError as error:
            raise ConfigError(
                f"an option does not match the schema: {error.message}", at=at
            ) from None
    return made


def _value_of(schema: ConnectSchema, option: object) -> object:
    if schema.type is data.Type.STRUCT and isinstance(option, dict):
        return data.Struct.from_dict(schema, option)
    if schema.type is data.Type.BYTES and isinstance(option, str):
        return option.encode("latin-1", "replace")
    if schema.type in (data.Type.FLOAT32, data.Type.FLOAT64) and type(option) is int:
        return float(option)
    return option
