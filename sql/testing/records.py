"""Records of cases: conversion from JSON to bytes, and from bytes to plain values."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from broker.errors import MillstreamError, RegistryError, SerdeError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.references import resolve_references
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import ParsedSchema, Schema
from sql.backends.native.rows import row_options
from sql.catalog import FormatInfo
from sql.datatypes import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Primitive,
    StructType,
)
from sql.numeric_types import fit_decimal
from sql.rows.formats import format_of
from sql.rows.row_format import Row

TEXT_FORMATS = ("DELIMITED",)
REGISTERED = ("AVRO", "JSON_SR", "PROTOBUF")
WHOLE_NUMBERS = (INT, BIGINT, DATE, TIME, TIMESTAMP)
ALWAYS_OBJECTS = ("PROTOBUF", "PROTOBUF_NOSR")


@dataclass(frozen=True, slots=True)
class TopicSide:
    """The keys or the values of a topic: their format and columns."""

    topic: str
    format: FormatInfo
    columns: tuple[Column, ...]
    is_key: bool

    @property
    def subject(self) -> str:
        """The subject of their schema."""
        return f"{self.topic}-{'key' if self.is_key else 'value'}"

    def is_alone(self, columns: Sequence[Column]) -> bool:
        """Whether a single column is unwrapped."""
        if len(columns) != 1 or self.format.name in ALWAYS_OBJECTS:
            return False
        return self.is_key or self.format.wrapped is False or self.format.name == "KAFKA"


def encode(side: TopicSide, given: object, registry: SchemaRegistry) -> bytes | None:
    """The bytes of a key or value in a case."""
    if given is None or side.format.name == "NONE":
        return None
    match side.format.name:
        case "JSON":
            return json_text(given).encode()
        case "DELIMITED":
            return str(given).encode()
        case "KAFKA":
            return _encode_kafka(side, given)
    columns = _written_columns(side, registry)
    options = row_options(side.format, is_key=side.is_key)
    serde = format_of(side.format.name).serde(columns, options, registry)
    return serde.serialize(side.topic, _row(side, columns, given))


def decode(side: TopicSide, data: bytes | None, registry: SchemaRegistry) -> object:
    """A key or value as plain Python values, for comparison."""
    if data is None or side.format.name == "NONE":
        return None
    if side.format.name in TEXT_FORMATS:
        return data.decode()
    if side.format.name == "JSON":
        return _read_json(side, data)
    if side.format.name == "KAFKA" and not side.columns:
        return data.decode(errors="replace")
    columns = side.columns
    if side.format.name in REGISTERED:
        columns = _registered_columns(side, registry, int.from_bytes(data[1:5], "big")) or columns
    options = row_options(side.format, is_key=side.is_key)
    row = (
        format_of(side.format.name).serde(columns, options, registry).deserialize(side.topic, data)
    )
    if row is None:
        return None
    if side.is_alone(columns):
        value = row[0]
        is_text = side.format.name == "KAFKA" and isinstance(value, bytes)
        return cast("bytes", value).decode(errors="replace") if is_text else value
    return {
        column.name: None if _is_empty(side, value) else value
        for column, value in zip(columns, row, strict=True)
    }


def _is_empty(side: TopicSide, value: object) -> bool:
    """An empty BYTES column counts as null in formats with schemas."""
    return value == b"" and side.format.name in ("AVRO", "PROTOBUF", "PROTOBUF_NOSR")


def _read_json(side: TopicSide, data: bytes) -> object:
    """Plain JSON; only numbers of DOUBLE columns are floats, others keep their digits."""
    try:
        result = json.loads(data, parse_float=Decimal)
    except ValueError as error:
        raise SerdeError(f"this is not JSON: {data!r}") from error
    if side.is_alone(side.columns):
        return _typed_json(result, side.columns[0].type)
    if not isinstance(result, dict):
        return result
    types = {column.name: column.type for column in side.columns}
    return {
        name: _typed_json(value, types[name]) if name in types else value
        for name, value in result.items()
    }


def _typed_json(value: object, type_: DataType) -> object:
    match value, type_:
        case ((int() | Decimal()), _) if type_ is DOUBLE and not isinstance(value, bool):
            return float(value)
        case list(), ArrayType(element=element):
            return [_typed_json(each, element) for each in value]
        case dict(), MapType(value=inner):
            return {name: _typed_json(each, inner) for name, each in value.items()}
        case dict(), StructType(fields=fields):
            types = {each.name: each.type for each in fields}
            return {
                name: _typed_json(each, types[name]) if name in types else each
                for name, each in value.items()
            }
        case _:
            return value


def _encode_kafka(side: TopicSide, given: object) -> bytes | None:
    text = given if isinstance(given, str) else json_text(given)
    if len(side.columns) != 1:
        return text.encode()
    (column,) = side.columns
    if column.type is BYTES:
        return text.encode()
    serde = format_of("KAFKA").serde(
        side.columns, row_options(side.format, is_key=side.is_key), None
    )
    try:
        return serde.serialize(side.topic, (as_typed(given, column.type),))
    except (MillstreamError, ValueError):
        return text.encode()  # a case may contain invalid bytes


def _written_columns(side: TopicSide, registry: SchemaRegistry) -> tuple[Column, ...]:
    """The columns of a topic's records: those of its schema, if it has one."""
    if side.format.name not in REGISTERED:
        return side.columns
    try:
        found = registry.version(side.subject)
    except RegistryError:
        return side.columns
    return _columns_of(side, registry, found.schema) or side.columns


def _registered_columns(
    side: TopicSide, registry: SchemaRegistry, schema_id: int
) -> tuple[Column, ...] | None:
    try:
        schema = registry.schema(schema_id)
    except RegistryError:
        return None
    return _columns_of(side, registry, schema)


def _columns_of(
    side: TopicSide, registry: SchemaRegistry, schema: Schema
) -> tuple[Column, ...] | None:
    parsed: ParsedSchema = parse_schema(schema, resolve_references(registry, schema))
    options = row_options(side.format, is_key=side.is_key)
    try:
        columns = format_of(side.format.name).columns_of(parsed, options)
    except MillstreamError:
        return None
    if side.is_alone(side.columns) and len(columns) == 1:
        return (Column(side.columns[0].name, columns[0].type),)
    return columns


def _row(side: TopicSide, columns: Sequence[Column], given: object) -> Row:
    if side.is_alone(columns):
        return (as_typed(given, columns[0].type),)
    if not isinstance(given, dict):
        raise SerdeError(f'a record of topic "{side.topic}" is {given!r}, not an object')
    return tuple(as_typed(_field(given, column.name), column.type) for column in columns)


# Any: JSON values.
def _field(given: dict[str, Any], name: str) -> Any:
    """The field with a name; otherwise one that differs only in case."""
    if name in given:
        return given[name]
    return next((value for key, value in given.items() if key.upper() == name.upper()), None)


def as_typed(given: object, type_: DataType) -> object:
    """A JSON value, converted to a type."""
    match type_:
        case _ if given is None:
            return None
        case DecimalType():
            return fit_decimal(Decimal(str(given)), type_)
        case ArrayType(element=element):
            return [as_typed(each, element) for each in cast("list[object]", given)]
        case MapType(key=key, value=value):
            return {
                as_typed(name, key): as_typed(each, value)
                for name, each in cast("dict[str, object]", given).items()
            }
        case StructType(fields=fields):
            found = cast("dict[str, Any]", given)
            return {each.name: as_typed(_field(found, each.name), each.type) for each in fields}
        case Primitive():
            return _as_primitive(given, type_)


def _as_primitive(given: object, type_: Primitive) -> object:
    """Cases may contain numbers and times as strings, and strings as numbers."""
    match given:
        case int() | Decimal() if type_ is DOUBLE:
            return float(given)
        case str() if type_ is BYTES:
            return base64.b64decode(given)
        case str() if type_ in WHOLE_NUMBERS:
            return int(given)
        case bool() | int() | Decimal() if type_ is STRING:
            return json_text(given)
        case _:
            return given


def json_text(value: object) -> str:
    """JSON with all digits of decimals."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            fields = (f"{json.dumps(name)}:{json_text(each)}" for name, each in value.items())
            return "{" + ",".join(fields) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
