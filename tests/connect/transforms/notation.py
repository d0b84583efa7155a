"""Records, schemas and values in JSON, as the cases and the Java peer write them.

record      {"topic": "t", "partition": 0, "offset": 0, "timestamp": 7, "key": DATA, "value": DATA,
            "headers": [{"key": "h", ...DATA}], "source": true}; all may be left out
DATA        {"schema": SCHEMA, "value": VALUE}; without "schema", the value has none
SCHEMA      "int32", "string?" (optional), "decimal(2)", "date", "time", "timestamp", or
            {"type": "struct", "fields": {"a": SCHEMA}}, {"type": "array", "of": SCHEMA},
            {"type": "map", "keys": SCHEMA, "of": SCHEMA}; with "optional", "name", "version",
            "doc", "parameters", "default"
VALUE       what JSON says; with a schema, bytes are base64 and decimals and times are strings;
            without one {"$bytes": ""}, {"$decimal": ""}, {"$timestamp": ""}, and numbers whose
            type in Java matters are {"$int32": 1}, {"$float": 0.5}, {"$double": "NaN"}
"""

import base64
import datetime
from collections.abc import Callable, Mapping
from ctypes import c_float
from decimal import Decimal
from math import isfinite
from typing import Any

from broker.java.number_text import double_text
from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Field,
    Struct,
    Type,
    date,
    decimal,
    time,
    timestamp,
)
from connect.records import Header, Record, SinkRecord, SourceRecord

# Any: whatever JSON holds, looked into all the way down.
Json = Any

LOGICAL = {DECIMAL_NAME: "decimal", DATE_NAME: "date", TIME_NAME: "time"}
LOGICAL[TIMESTAMP_NAME] = "timestamp"


def read_record(node: Json) -> Record:
    """The record that some JSON says."""
    key_schema, key = read_data(node.get("key"))
    value_schema, value = read_data(node.get("value"))
    headers = [Header(each["key"], *read_data(each)) for each in node.get("headers", [])]
    topic, partition = node.get("topic", "t"), node.get("partition", 0)
    timestamp_ms = node.get("timestamp")
    data = (key_schema, key, value_schema, value)
    if node.get("source"):
        return SourceRecord({}, {}, topic, partition, *data, timestamp_ms, headers)
    offset = node.get("offset", 0)
    return SinkRecord(topic, partition, *data, offset, timestamp_ms, "CreateTime", headers)


def read_data(node: Json) -> tuple[ConnectSchema | None, object]:
    """A schema and a value."""
    if node is None:
        return None, None
    schema = read_schema(node["schema"]) if "schema" in node else None
    return schema, read_value(node["value"], schema)


def read_schema(node: Json) -> ConnectSchema:
    """The schema that some JSON says."""
    extras: Mapping[str, Json] = {} if isinstance(node, str) else node
    name = node if isinstance(node, str) else node["type"]
    optional = name.endswith("?") or extras.get("optional", False)
    schema = _bare_schema(name.rstrip("?"), extras)
    changes = {part: extras[part] for part in ("name", "version", "doc") if part in extras}
    if "parameters" in extras:
        changes["parameters"] = {**(schema.parameters or {}), **extras["parameters"]}
    schema = schema.with_(optional=optional, **changes)
    if "default" in extras:
        schema = schema.with_(default=read_value(extras["default"], schema))
    return schema


def _bare_schema(name: str, extras: Mapping[str, Json]) -> ConnectSchema:
    if name.startswith("decimal("):
        return decimal(int(name.removeprefix("decimal(").removesuffix(")")))
    logical: dict[str, Callable[[], ConnectSchema]] = {
        "date": date,
        "time": time,
        "timestamp": timestamp,
    }
    if name in logical:
        return logical[name]()
    fields = tuple(Field(each, read_schema(of)) for each, of in extras.get("fields", {}).items())
    keys = read_schema(extras["keys"]) if "keys" in extras else None
    of = read_schema(extras["of"]) if "of" in extras else None
    return ConnectSchema(Type(name), fields=fields, key_schema=keys, value_schema=of)


def read_value(node: Json, schema: ConnectSchema | None) -> object:
    """The value that some JSON says."""
    if node is None:
        return None
    if schema is None:
        return _read_schemaless(node)
    if schema.name in LOGICAL:
        return _read_logical(node, LOGICAL[schema.name])
    match schema.type:
        case Type.FLOAT32 | Type.FLOAT64:
            number = float(node)
            return c_float(number).value if schema.type is Type.FLOAT32 else number
        case Type.BYTES:
            return base64.b64decode(node)
        case Type.ARRAY:
            return [read_value(each, schema.value_schema) for each in node]
        case Type.MAP:
            pairs = node.items() if isinstance(node, dict) else node
            keys, values = schema.key_schema, schema.value_schema
            return {read_value(key, keys): read_value(each, values) for key, each in pairs}
        case Type.STRUCT:
            return _read_struct(node, schema)
        case _:
            return node


def _read_struct(node: Json, schema: ConnectSchema) -> Struct:
    made = Struct(schema)
    for name, each in node.items():
        field = schema.field(name)
        assert field is not None, f"the schema has no field {name}"
        made.put(name, read_value(each, field.schema))
    return made


def _read_logical(text: str, kind: str) -> object:
    match kind:
        case "decimal":
            return Decimal(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "time":
            return datetime.time.fromisoformat(text)
        case _:
            return datetime.datetime.fromisoformat(text)


def _read_schemaless(node: Json) -> object:
    if isinstance(node, list):
        return [_read_schemaless(each) for each in node]
    if not isinstance(node, dict):
        return node
    match node:
        case {"$int8": number} | {"$int16": number} | {"$int32": number} | {"$float": number}:
            return number
        case {"$double": text}:
            return float(text)
        case {"$bytes": text}:
            return base64.b64decode(text)
        case {"$decimal": text}:
            return Decimal(text)
        case {"$timestamp": text}:
            return datetime.datetime.fromisoformat(text)
        case _:
            return {name: _read_schemaless(each) for name, each in node.items()}


def written_record(record: Record | None) -> Json:
    """A record as JSON."""
    if record is None:
        return None
    node: dict[str, Json] = {"topic": record.topic, "partition": record.partition}
    if record.timestamp_ms is not None:
        node["timestamp"] = record.timestamp_ms
    for part, schema, value in (
        ("key", record.key_schema, record.key),
        ("value", record.value_schema, record.value),
    ):
        if schema is not None or value is not None:
            node[part] = _written_data(schema, value)
    if record.headers:
        node["headers"] = [
            {**_written_data(header.schema, header.value), "key": header.key}
            for header in record.headers
        ]
    return node


def _written_data(schema: ConnectSchema | None, value: object) -> dict[str, Json]:
    written = {"value": written_value(schema, value)}
    return written if schema is None else {"schema": written_schema(schema), **written}


def written_schema(schema: ConnectSchema) -> Json:
    """A schema as JSON."""
    logical = LOGICAL.get(schema.name or "")
    name, parameters = logical or schema.type.value, schema.parameters
    if logical == "decimal" and parameters is not None:
        name, parameters = f"decimal({parameters['scale']})", None
    version = schema.version if not logical or schema.version != 1 else None
    node: dict[str, Json] = {
        "type": name,
        "optional": schema.optional or None,
        "name": None if logical else schema.name,
        "version": version,
        "doc": schema.doc,
        "parameters": parameters or None,
        "default": written_value(schema, schema.default),
        "keys": schema.key_schema and written_schema(schema.key_schema),
        "of": schema.value_schema and written_schema(schema.value_schema),
    }
    node = {part: each for part, each in node.items() if each is not None}
    if schema.type is Type.STRUCT:
        node["fields"] = {field.name: written_schema(field.schema) for field in schema.fields}
    if schema.type.is_primitive and node.keys() <= {"type", "optional"}:
        return name + ("?" if schema.optional else "")
    return node


def written_value(schema: ConnectSchema | None, value: object) -> Json:
    """A value as JSON."""
    if value is None:
        return None
    if schema is None:
        return _written_schemaless(value)
    match value:
        case Struct():
            pairs = zip(value.schema.fields, value.values, strict=True)
            return {field.name: written_value(field.schema, each) for field, each in pairs}
        case list():
            return [written_value(schema.value_schema, each) for each in value]
        case dict():
            pairs_of_map = [
                [written_value(schema.key_schema, key), written_value(schema.value_schema, each)]
                for key, each in value.items()
            ]
            by_name = schema.key_schema is not None and schema.key_schema.type is Type.STRING
            return dict(pairs_of_map) if by_name else pairs_of_map
        case datetime.datetime():
            return _moment(value)
        case datetime.date():
            return value.isoformat()
        case datetime.time():
            return value.isoformat(timespec="milliseconds")
    plain = _written_schemaless(value)
    return next(iter(plain.values())) if isinstance(plain, dict) else plain


def _written_schemaless(value: object) -> Json:
    match value:
        case Struct():
            return written_value(value.schema, value)
        case dict():
            return {str(key): _written_schemaless(each) for key, each in value.items()}
        case list():
            return [_written_schemaless(each) for each in value]
        case datetime.datetime():
            return {"$timestamp": _moment(value)}
        case datetime.date():  # Java has one class for all of them
            return {"$timestamp": f"{value.isoformat()}T00:00:00.000Z"}
        case datetime.time():
            return {"$timestamp": f"1970-01-01T{value.isoformat(timespec='milliseconds')}Z"}
        case Decimal():
            return {"$decimal": format(value, "f")}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case float() if not isfinite(value):
            return {"$double": double_text(value)}
        case _:
            return value


def _moment(value: datetime.datetime) -> str:
    utc = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"
