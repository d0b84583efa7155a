"""Columns as ksqlDB's JSON Schemas, and the columns of any JSON Schema.

A row is an object; each property is a choice between null and its type, with the index of its
column in "connect.index". "connect.type" distinguishes numbers, the title times. Other schemas may
not have these keywords: then integer is BIGINT, number is DOUBLE, and properties have the order of
Java's HashMap, which Confluent's library uses.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from broker.errors import SchemaError
from broker.serde.schema.json_documents import Subschema
from broker.serde.schema.json_schema import JsonSchema
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

NODES_MAX = 20_000
DEPTH_MAX = 50
PRECISION_DEFAULT = 64
CONNECT = "org.apache.kafka.connect.data."

_PRIMITIVES: dict[Primitive, dict[str, object]] = {
    BOOLEAN: {"type": "boolean"},
    INT: {"type": "integer", "connect.type": "int32"},
    BIGINT: {"type": "integer", "connect.type": "int64"},
    DOUBLE: {"type": "number", "connect.type": "float64"},
    STRING: {"type": "string"},
    BYTES: {"type": "string", "connect.type": "bytes"},
}
_TIMES: dict[Primitive, tuple[str, str]] = {
    TIME: ("Time", "int32"),
    DATE: ("Date", "int32"),
    TIMESTAMP: ("Timestamp", "int64"),
}
_TITLES: dict[tuple[object, object], DataType] = {
    (CONNECT + title, connect): data_type for data_type, (title, connect) in _TIMES.items()
}
_NUMBERS: dict[object, DataType] = {
    "int8": INT,
    "int16": INT,
    "int32": INT,
    "int64": BIGINT,
    "float32": DOUBLE,
    "float64": DOUBLE,
}
Json = Mapping[str, object]


def json_schema_text(columns: Sequence[Column], *, wrapped: bool = True) -> str:
    """The schema of rows with these columns, as one line of JSON."""
    if wrapped:
        schema: object = _object([(each.name, each.type) for each in columns])
    else:
        schema = _nullable(columns[0].type)
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def json_columns(
    schema: JsonSchema, *, single: str | None = None, upper: bool = True
) -> tuple[Column, ...]:
    """The columns of a schema; with `single`, the whole schema is one column."""
    found = _Reader(schema, upper).type(schema.documents.root, single or "", 0)
    if single is not None:
        return (Column(single, found),)
    if not isinstance(found, StructType):
        raise SchemaError(
            f"the JSON schema must be an object with properties, not {found}",
            hint="set WRAP_SINGLE_VALUE to false to read its value as one column",
        )
    return tuple(Column(each.name, each.type) for each in found.fields)


def _nullable(data_type: DataType) -> dict[str, object]:
    return {"oneOf": [{"type": "null"}, _type(data_type)]}


def _object(fields: Iterable[tuple[str, DataType]]) -> dict[str, object]:
    properties = {
        name: {"connect.index": index, **_nullable(data_type)}
        for index, (name, data_type) in enumerate(fields)
    }
    return {"type": "object", "properties": properties}


def _type(data_type: DataType) -> dict[str, object]:
    match data_type:
        case Primitive():
            if data_type in _PRIMITIVES:
                return _PRIMITIVES[data_type]
            title, connect = _TIMES[data_type]
            return {
                "type": "integer",
                "title": CONNECT + title,
                "connect.version": 1,
                "connect.type": connect,
            }
        case DecimalType(precision, scale):
            parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            return {
                "type": "number",
                "title": CONNECT + "Decimal",
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": parameters,
            }
        case ArrayType(element):
            return {"type": "array", "items": _nullable(element)}
        case MapType(key, value):
            if key is not STRING:
                raise SchemaError(
                    "JSON only supports MAP types with STRING keys", hint=f"a key is {key}"
                )
            return {
                "type": "object",
                "additionalProperties": _nullable(value),
                "connect.type": "map",
            }
        case StructType(fields):
            return _object((each.name, each.type) for each in fields)
        case _:
            assert_never(data_type)


class _Reader:
    """Walks a schema; errors contain the path."""

    def __init__(self, schema: JsonSchema, upper: bool) -> None:
        self.documents = schema.documents
        self.upper = upper
        self.nodes = 0

    def type(self, place: Subschema, path: str, depth: int) -> DataType:
        self.nodes += 1
        if self.nodes > NODES_MAX or depth > DEPTH_MAX:
            raise _wrong(path, f"it contains itself or is nested more than {DEPTH_MAX} deep")
        schema = place.schema
        if not isinstance(schema, dict):
            raise _wrong(path, "it declares no type")
        if isinstance(reference := schema.get("$ref"), str):
            named = self.documents.resolve(reference, place.base)
            if named is None:
                raise _wrong(path, f'$ref names "{reference}", which does not exist')
            return self.type(named, path, depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(choice := schema.get(word), list):
                return self._choice([Subschema(each, place.base) for each in choice], path, depth)
        if isinstance(parts := schema.get("allOf"), list) and "type" not in schema:
            return self._all([Subschema(each, place.base) for each in parts], path, depth)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            present = [each for each in kinds if each != "null"]
            if len(present) != 1:
                raise _wrong(path, f"it is a choice of {len(present)} types")
            return self.type(Subschema({**schema, "type": present[0]}, place.base), path, depth + 1)
        return self._simple(schema, kinds, place, path, depth)

    def _simple(
        self, schema: Json, kind: object, place: Subschema, path: str, depth: int
    ) -> DataType:
        connect = schema.get("connect.type")
        match kind:
            case "boolean":
                return BOOLEAN
            case "integer" | "number":
                return _number(schema, kind, connect, path)
            case "string":
                return BYTES if connect == "bytes" else STRING
            case "array":
                return self._array(schema, place, path, depth)
            case "object":
                return self._object(schema, place, path, depth)
            case None if "enum" in schema or "const" in schema:
                return STRING
            case None if "properties" in schema:
                return self._object(schema, place, path, depth)
            case _:
                raise _wrong(path, "it declares no type")

    def _choice(self, choice: list[Subschema], path: str, depth: int) -> DataType:
        present = [each for each in choice if not _is_null(each.schema)]
        if len(present) != 1:
            raise _wrong(path, f"it is a choice of {len(present)} types")
        return self.type(present[0], path, depth + 1)

    def _all(self, parts: list[Subschema], path: str, depth: int) -> DataType:
        """Objects are merged; of other types there must be one, which the others restrict."""
        typed = [
            each
            for each in parts
            if isinstance(each.schema, dict)
            and each.schema.keys() & {"type", "$ref", "properties", "allOf", "oneOf", "anyOf"}
        ]
        found = [self.type(each, path, depth + 1) for each in typed or parts]
        fields: dict[str, Field] = {}
        for each in found:
            if not isinstance(each, StructType):
                return each
            fields.update({field.name: field for field in each.fields})
        return StructType(tuple(fields.values()))

    def _array(self, schema: Json, place: Subschema, path: str, depth: int) -> DataType:
        items = Subschema(schema.get("items"), place.base)
        if schema.get("connect.type") == "map" and isinstance(items.schema, dict):
            properties = items.schema.get("properties")
            if isinstance(properties, dict) and "value" in properties:
                value = Subschema(properties["value"], place.base)
                return MapType(STRING, self.type(value, path, depth + 1))
        return ArrayType(self.type(items, f"{path}[]", depth + 1))

    def _object(self, schema: Json, place: Subschema, path: str, depth: int) -> DataType:
        more = schema.get("additionalProperties")
        properties = schema.get("properties")
        if schema.get("connect.type") == "map" or (not properties and isinstance(more, dict)):
            return MapType(STRING, self.type(Subschema(more, place.base), path, depth + 1))
        if not isinstance(properties, dict) or not properties:
            raise _wrong(path, "it is an object without known properties")
        fields = []
        for name in ordered(properties):
            inner = f"{path}.{name}" if path else name
            found = self.type(Subschema(properties[name], place.base), inner, depth + 1)
            fields.append(Field(name.upper() if self.upper else name, found))
        return struct_of(fields, f'the JSON schema at "{path or "#"}"')


def ordered(properties: Json) -> list[str]:
    """Names of properties by "connect.index", otherwise in the order of Java's HashMap."""
    places: list[tuple[int, int, str]] = []
    for number, name in enumerate(java_order(properties)):
        schema = properties[name]
        index = schema.get("connect.index") if isinstance(schema, dict) else None
        places.append((index if isinstance(index, int) else number, number, name))
    return [name for _, _, name in sorted(places)]


def java_order(names: Iterable[str]) -> list[str]:
    """The iteration order of a HashMap after insertions in this order."""
    given = list(names)
    capacity = 16
    while len(given) > capacity * 3 // 4:
        capacity *= 2
    return sorted(given, key=lambda name: _spread(name) & (capacity - 1))


def _spread(name: str) -> int:
    """The hash of a String in a HashMap: its upper half folded into the lower."""
    units = name.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    return found ^ found >> 16


def _number(schema: Json, kind: object, connect: object, path: str) -> DataType:
    title = schema.get("title")
    if title == CONNECT + "Decimal" or connect == "bytes":
        return _decimal(schema, path)
    if (time := _TITLES.get((title, connect))) is not None:
        return time
    if connect is None:
        return BIGINT if kind == "integer" else DOUBLE
    if connect not in _NUMBERS:
        raise _wrong(path, f'"connect.type" is {connect!r}')
    return _NUMBERS[connect]


def _decimal(schema: Json, path: str) -> DecimalType:
    given = schema.get("connect.parameters")
    parameters = given if isinstance(given, dict) else {}
    try:
        precision = int(str(parameters.get("connect.decimal.precision", PRECISION_DEFAULT)))
        return DecimalType(precision, int(str(parameters.get("scale", 0))))
    except ValueError as error:
        raise _wrong(path, f"its decimal is invalid: {error}") from None


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _wrong(path: str, what: str) -> SchemaError:
    return SchemaError(f'the JSON schema cannot be a column at "{path or "#"}": {what}')
