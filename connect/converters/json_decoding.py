"""JSON to values, as Kafka's JSON converter reads it.

Jackson converts a string to 0 where a number is expected; here it is an error.
"""

import struct
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from decimal import Decimal

from connect.converters.compiled import (
    Conversion,
    Convert,
    dict_to_dict,
    dict_to_struct,
    list_to_list,
    simple_for,
)
from connect.converters.payload_options import UNCHANGED, PayloadOptions, element_of, or_null
from connect.data import (
    DECIMAL_NAME,
    NO_DEFAULT,
    TIMESTAMP_NAME,
    ConnectSchema,
    Struct,
    Type,
    validate,
)
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_of_bytes,
    logical_name,
    scale_of,
    timestamp_of,
)

# Milliseconds from 1970 to the end of the year 9999.
IN_CALENDAR = "type({0}) is int and 0 <= {0} < 253402300800000"


class InexactNumber(Exception):
    """A decimal number was parsed as a float: the text must be parsed again, exactly."""


_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_pack_float = struct.Struct("<f").pack
_unpack_float = struct.Struct("<f").unpack


def decoding(schema: ConnectSchema, options: PayloadOptions) -> Conversion:
    """A function from orjson's values to values of a schema."""
    name = logical_name(schema)
    convert = _decode_logical(schema, name) if name else _decode_present(schema, options)
    null = _null_when_decoded(schema, options)
    plain = name is None and schema.type in UNCHANGED
    quick = (IN_CALENDAR, timestamp_of) if name == TIMESTAMP_NAME else None
    return Conversion(or_null(convert, null), simple_for(schema) if plain else "", quick=quick)


def _null_when_decoded(schema: ConnectSchema, options: PayloadOptions) -> Callable[[], object]:
    if schema.default is not NO_DEFAULT and options.replace_null_with_default:
        return lambda: schema.default
    if schema.optional:
        return lambda: None

    def refuse() -> object:
        raise DataError(f"Invalid null value for required {schema.type.name} field")

    return refuse


def node_type(value: object) -> str:
    """Jackson's name for the type of a JSON value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | float() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case dict():
            return "OBJECT"
        case _:
            return "ARRAY"


def _decode_present(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    match schema.type:
        case Type.FLOAT32:
            return _decode_float32
        case Type.FLOAT64:
            return _decode_float64
        case Type.BYTES:
            return _decode_bytes
        case Type.ARRAY:
            return _decode_array(schema, options)
        case Type.MAP:
            return _decode_map(schema, options)
        case Type.STRUCT if options.is_union(schema):
            return _decode_union(schema, options)
        case Type.STRUCT:
            parts = [(each.name, decoding(each.schema, options)) for each in schema.fields]
            return dict_to_struct(schema, parts, _no_struct)
        case Type.BOOLEAN | Type.STRING:
            return _decode_same(schema)
        case _:
            return _decode_integer(schema)


def _decode_same(schema: ConnectSchema) -> Convert:
    kind = bool if schema.type is Type.BOOLEAN else str

    def decode(value: object) -> object:
        if type(value) is not kind:
            raise _misread(schema.type, value)
        return value

    return decode


def _decode_integer(schema: ConnectSchema) -> Convert:
    def decode(value: object) -> object:
        if isinstance(value, float | Decimal) and value == value // 1:
            value = int(value)
        if type(value) is not int:
            raise _misread(schema.type, value)
        validate(schema, value)
        return value

    return decode


def _decode_float64(value: object) -> object:
    if isinstance(value, float):
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise _misread(Type.FLOAT64, value) from None
    if isinstance(value, str) and value in _FLOATS:
        return _FLOATS[value]
    raise _misread(Type.FLOAT64, value)


def _decode_float32(value: object) -> object:
    number = _decode_float64(value)
    try:
        return _unpack_float(_pack_float(number))[0]
    except OverflowError:
        raise _misread(Type.FLOAT32, value) from None


def _decode_bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise _misread(Type.BYTES, value)
    try:
        return a2b_base64(value, strict_mode=True)
    except (Base64Error, ValueError):
        raise DataError("Invalid bytes field", hint="bytes must be base64 strings") from None


def _decode_array(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    convert = list_to_list(element_of(schema.value_schema, options, decoding))

    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise _misread(Type.ARRAY, value)
        return convert(value)

    return decode


def _decode_map(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    values = element_of(schema.value_schema, options, decoding)
    if schema.key_schema is None or options.is_object(schema):
        convert = dict_to_dict(values)

        def decode(value: object) -> object:
            if not isinstance(value, dict):
                raise DataError(
                    "Maps with string fields should be encoded as JSON objects, "
                    f"but found {node_type(value)}"
                )
            return convert(value)

        return decode
    make = _decode_objects if options.entries_as_objects else _decode_entries
    return make(decoding(schema.key_schema, options).convert, values.convert)


def _decode_entries(key: Convert, convert: Convert) -> Convert:
    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise DataError(
                "Maps with non-string fields should be encoded as JSON array of tuples, "
                f"but found {node_type(value)}"
            )
        found: dict[object, object] = {}
        for entry in value:
            if not isinstance(entry, list):
                raise DataError(
                    f"Found invalid map entry instead of array tuple: {node_type(entry)}"
                )
            if len(entry) != 2:
                raise DataError(
                    f"Found invalid map entry, expected length 2 but found :{len(entry)}"
                )
            found[key(entry[0])] = convert(entry[1])
        return found

    return decode


def _decode_objects(key: Convert, convert: Convert) -> Convert:
    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise DataError(
                "Maps with non-string fields should be encoded as JSON array of objects, "
                f"but found {node_type(value)}"
            )
        found: dict[object, object] = {}
        for entry in value:
            if not isinstance(entry, dict):
                raise DataError(f"Found invalid map entry instead of object: {node_type(entry)}")
            found[key(entry.get("key"))] = convert(entry.get("value"))
        return found

    return decode


def _decode_union(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    converts = [decoding(each.schema, options).convert for each in schema.fields]

    def decode(value: object) -> object:
        for at, (field, convert) in enumerate(zip(schema.fields, converts, strict=True)):
            if _may_be(field.schema, value):
                values: list[object] = [None] * len(converts)
                values[at] = convert(value)
                return Struct(schema, values)
        shown = repr(value)[:60]
        raise DataError(f"Did not find matching oneof field for data: {shown}")

    return decode


def _may_be(schema: ConnectSchema, value: object) -> bool:
    """Whether a JSON value matches a schema; objects must not have other fields."""
    match value:
        case bool():
            return schema.type is Type.BOOLEAN
        case int():
            return schema.type in _WHOLE_NUMBERS | _NUMBERS
        case float() | Decimal():
            return schema.type in _NUMBERS
        case str():
            return schema.type is Type.STRING or schema.type is Type.BYTES
        case list():
            return schema.type is Type.ARRAY or schema.type is Type.MAP
        case dict() if schema.type is Type.STRUCT:
            return value.keys() <= schema.positions.keys()
        case dict():
            return schema.type is Type.MAP
    return False


_WHOLE_NUMBERS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})
_NUMBERS = frozenset({Type.FLOAT32, Type.FLOAT64, Type.BYTES})


def _decode_logical(schema: ConnectSchema, name: str) -> Convert:
    if name == DECIMAL_NAME:
        return _decode_decimal(scale_of(schema))
    short = name.rpartition(".")[2]
    value_of = NUMBERED[name][2]

    def decode(value: object) -> object:
        if type(value) is not int:
            raise DataError(
                f"Invalid type for {short}, underlying representation should be integer "
                f"but was {node_type(value)}"
            )
        return value_of(value)

    return decode


def _decode_decimal(scale: int) -> Convert:
    def decode(value: object) -> object:
        if isinstance(value, str):
            return decimal_of_bytes(_decode_bytes(value), scale)
        if isinstance(value, float):
            raise InexactNumber
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return Decimal(value)
        raise DataError(
            "Invalid type for Decimal, underlying representation should be numeric or bytes "
            f"but was {node_type(value)}"
        )

    return decode


def _no_struct(value: object) -> None:
    raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(value)}")


def _misread(kind: Type, value: object) -> DataError:
    shown = repr(value)[:60]
    return DataError(f"Invalid type for {kind.name}: the JSON has {node_type(value)} {shown}")
