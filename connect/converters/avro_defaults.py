"""Defaults of schemas as JSON in Avro's form: bytes are strings of one character per byte."""

import datetime
from decimal import Decimal

from connect.data import DECIMAL_NAME, ConnectSchema, Struct, Type
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_bytes,
    decimal_of_bytes,
    logical_name,
    scale_of,
)


def default_to_json(schema: ConnectSchema, value: object) -> object:
    """The JSON of a default, which must match its schema."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("latin-1")
        case Decimal():
            return decimal_bytes(value, scale_of(schema)).decode("latin-1")
        case datetime.date() | datetime.time():
            return NUMBERED[schema.name or ""][1](value)
        case list() if schema.value_schema is not None:
            return [default_to_json(schema.value_schema, each) for each in value]
        case dict() if schema.value_schema is not None and schema.key_schema is not None:
            return _map_to_json(schema, schema.key_schema, schema.value_schema, value)
        case Struct():
            return {
                each.name: default_to_json(each.schema, value[each.name])
                for each in value.schema.fields
            }
    raise DataError(f"Invalid type used for default value of {schema.type.name} field: {value!r}")


def _map_to_json(
    schema: ConnectSchema,
    keys: ConnectSchema,
    values: ConnectSchema,
    given: dict[object, object],
) -> object:
    if keys.type is Type.STRING and not keys.optional:
        return {str(key): default_to_json(values, each) for key, each in given.items()}
    return [
        {"key": default_to_json(keys, key), "value": default_to_json(values, each)}
        for key, each in given.items()
    ]


def default_from_json(schema: ConnectSchema, given: object) -> object:
    """The default of a schema from its JSON; DataError if it does not match."""
    if given is None:
        return None
    name = logical_name(schema)
    if name is not None and name != DECIMAL_NAME and type(given) is int:
        return NUMBERED[name][2](given)
    match schema.type, given:
        case Type.BYTES, str():
            data = given.encode("latin-1", "replace")
            return decimal_of_bytes(data, scale_of(schema)) if name == DECIMAL_NAME else data
        case ((Type.FLOAT32 | Type.FLOAT64), int()):
            return float(given)
        case Type.ARRAY, list() if schema.value_schema is not None:
            return [default_from_json(schema.value_schema, each) for each in given]
        case Type.MAP, (dict() | list()):
            return _map_from_json(schema, given)
        case Type.STRUCT, dict():
            values = [
                default_from_json(each.schema, given.get(each.name)) for each in schema.fields
            ]
            return Struct(schema, values)
    return given


def _map_from_json(
    schema: ConnectSchema, given: dict[str, object] | list[object]
) -> dict[object, object]:
    keys, values = schema.key_schema, schema.value_schema
    if keys is None or values is None:
        return {}
    if isinstance(given, dict):
        return {key: default_from_json(values, each) for key, each in given.items()}
    found: dict[object, object] = {}
    for entry in given:
        match entry:
            case {"key": key, "value": value} | [key, value]:
                found[default_from_json(keys, key)] = default_from_json(values, value)
            case _:
                raise DataError("Invalid JSON for map default value")
    return found
