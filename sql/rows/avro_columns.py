"""Columns as ksqlDB's Avro schemas, and the columns of any Avro schema.

A row is a record whose fields are all ["null", T] with default null. Nested records are named after
their path, KsqlDataSourceSchema_FIELD_FIELD. A MAP is an array of records of key and value, as
Kafka Connect writes maps whose keys may be null. Times and decimals have Connect's names.
"""

import json
import re
from collections.abc import Sequence
from typing import assert_never

from broker.errors import SchemaError
from broker.serde.schema.avro_types import RECORDS, AvroType, branch_name, is_map_entry
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
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
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.rows.column_names import struct_of

DEFAULT_NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
CONNECT = "org.apache.kafka.connect.data."
# Connect's default precision and scale of a decimal.
PRECISION_DEFAULT = 64

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PRIMITIVES: dict[Primitive, object] = {
    BOOLEAN: "boolean",
    INT: "int",
    BIGINT: "long",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
}
_TIMES: dict[Primitive, tuple[str, str, str]] = {
    TIME: ("int", "Time", "time-millis"),
    DATE: ("int", "Date", "date"),
    TIMESTAMP: ("long", "Timestamp", "timestamp-millis"),
}
_KINDS: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "enum": STRING,
    "bytes": BYTES,
    "fixed": BYTES,
}
_LOGICAL: dict[tuple[str, str], DataType] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}


def avro_text(columns: Sequence[Column], *, name: str | None = None, wrapped: bool = True) -> str:
    """The schema of rows with these columns, as one line of JSON."""
    writer = _Writer(name or DEFAULT_NAME)
    schema = (
        writer.record([(each.name, each.type) for each in columns], writer.name)
        if wrapped
        else writer.type(columns[0].type, writer.name)
    )
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def avro_columns(
    node: AvroType, *, single: str | None = None, upper: bool = True
) -> tuple[Column, ...]:
    """The columns of a schema; with `single`, the whole schema is one column."""
    if single is not None:
        return (Column(single, avro_type(node, upper=upper)),)
    node = node.present or node
    if node.kind not in RECORDS:
        raise SchemaError(
            f"the Avro schema must be a record, not {node.kind}",
            hint="set WRAP_SINGLE_VALUE to false to read its value as one column",
        )
    fields = _struct(node, upper).fields
    columns = tuple(Column(each.name, each.type) for each in fields)
    if not columns:
        raise SchemaError(f'the Avro record "{node.name}" has no fields that could be columns')
    return columns


def field_name(name: str, upper: bool) -> str:
    """The column name of a field."""
    return name.upper() if upper else name


def avro_type(node: AvroType, *, upper: bool = True) -> DataType:
    """The column type of such values."""
    node = node.present or node
    if node.logical == "decimal" and node.kind in ("bytes", "fixed"):
        return _decimal(node)
    if (result := _LOGICAL.get((node.kind, node.logical))) is not None:
        return result
    if (result := _KINDS.get(node.kind)) is not None:
        return result
    if node.element is not None:
        if node.kind == "array" and is_map_entry(node.element):
            # Keys in Connect may have any type; columns read them as strings.
            values = next(each.type for each in node.element.fields if each.name == "value")
            return MapType(STRING, avro_type(values, upper=upper))
        inner = avro_type(node.element, upper=upper)
        return ArrayType(inner) if node.kind == "array" else MapType(STRING, inner)
    if node.kind in RECORDS or node.kind == "union":
        return _struct(node, upper)
    raise SchemaError(f'values of the Avro type "{node.kind}" alone cannot be columns')


def _struct(node: AvroType, upper: bool) -> StructType:
    where = f'the Avro record "{node.name}"' if node.name else "an Avro union"
    parts = [(each.name, each.type) for each in node.fields]
    parts += [(branch_name(each), each) for each in node.branches if each.kind != "null"]
    return struct_of(
        (Field(field_name(name, upper), avro_type(each, upper=upper)) for name, each in parts),
        where,
    )


def _decimal(node: AvroType) -> DecimalType:
    given = node.properties.get("precision"), node.properties.get("scale")
    precision = PRECISION_DEFAULT if given[0] is None else given[0]
    scale = 0 if given[1] is None else given[1]
    try:
        if isinstance(precision, int) and isinstance(scale, int):
            return DecimalType(precision, scale)
    except ValueError:
        pass
    raise SchemaError(f"an Avro decimal has precision {precision} and scale {scale}")


class _Writer:
    """Creates one schema; its records must have unique names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace = name.rpartition(".")[0]
        self.taken: set[str] = set()
        for part in name.split("."):
            _check_name(part)

    def type(self, data_type: DataType, path: str) -> object:
        match data_type:
            case Primitive():
                return _primitive(data_type)
            case DecimalType(precision, scale):
                return _decimal_schema(precision, scale)
            case ArrayType(element):
                return {"type": "array", "items": self.nullable(element, path)}
            case MapType(key, value):
                return self._map(key, value, path)
            case StructType(fields):
                return self.record([(each.name, each.type) for each in fields], path)
            case _:
                assert_never(data_type)

    def nullable(self, data_type: DataType, path: str) -> list[object]:
        return ["null", self.type(data_type, path)]

    def record(self, fields: Sequence[tuple[str, DataType]], path: str) -> dict[str, object]:
        header = self._header(path)
        written: dict[str, str] = {}
        for name, _ in fields:
            avro_name = _check_name(name.replace(".", "_"))
            if avro_name in written.values():
                raise SchemaError(f'two columns are named "{avro_name}" in Avro')
            written[name] = avro_name
        header["fields"] = [
            self._field(written[name], data_type, f"{path}_{written[name]}")
            for name, data_type in fields
        ]
        return {**header, "connect.name": path}

    def _field(self, name: str, data_type: DataType, path: str) -> dict[str, object]:
        return {"name": name, "type": self.nullable(data_type, path), "default": None}

    def _map(self, key: DataType, value: DataType, path: str) -> dict[str, object]:
        if key is not STRING:
            raise SchemaError("Avro only supports MAPs with STRING keys", hint=f"a key is {key}")
        entry = self._header(path)
        entry["fields"] = [
            self._field("key", key, f"{path}_MapKey"),
            self._field("value", value, f"{path}_MapValue"),
        ]
        entry["connect.internal.type"] = "MapEntry"
        return {"type": "array", "items": entry, "connect.name": path}

    def _header(self, path: str) -> dict[str, object]:
        """The beginning of a record; a name that is already used gets a number."""
        name, number = path, 2
        while name in self.taken:
            name, number = f"{path}_{number}", number + 1
        self.taken.add(name)
        header: dict[str, object] = {"type": "record", "name": name.rpartition(".")[2]}
        if len(self.taken) == 1 and self.namespace:
            header["namespace"] = self.namespace
        return header


def _check_name(name: str) -> str:
    if _NAME.match(name) is None:
        raise SchemaError(
            f'schema is not compatible with Avro: illegal name "{name}"',
            hint="names in Avro consist of letters, digits and _, and do not start with a digit",
        )
    return name


def _primitive(primitive: Primitive) -> object:
    if primitive in _PRIMITIVES:
        return _PRIMITIVES[primitive]
    base, name, logical = _TIMES[primitive]
    return {
        "type": base,
        "connect.version": 1,
        "connect.name": CONNECT + name,
        "logicalType": logical,
    }


def _decimal_schema(precision: int, scale: int) -> dict[str, object]:
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
        "connect.name": CONNECT + "Decimal",
        "logicalType": "decimal",
    }
