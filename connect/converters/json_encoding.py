"""Values to JSON, as in Kafka's JSON converter.

INT, FLOAT   number; NaN and infinities are strings    BYTES      base64 string
STRUCT       object                                    ARRAY      array
MAP          object; array of [key, value] if keys are not STRING
Decimal      base64 string or number                  Date       days since 1970
Time         milliseconds since midnight               Timestamp  milliseconds since 1970
"""

from binascii import b2a_base64
from collections.abc import Callable
from decimal import Decimal
from math import isfinite, isnan

import orjson

from connect.converters.compiled import (
    Conversion,
    Convert,
    dict_to_dict,
    float32_bytes,
    list_to_list,
    simple_for,
    struct_to_dict,
)
from connect.converters.payload_options import UNCHANGED, PayloadOptions, element_of, or_null
from connect.data import DECIMAL_NAME, NO_DEFAULT, ConnectSchema, Struct, Type, validate
from connect.errors import DataError
from connect.logical_values import NUMBERED, decimal_bytes, logical_name, scale_of


def encoding(schema: ConnectSchema, options: PayloadOptions) -> Conversion:
    """A function from values of a schema to values that orjson writes."""
    name = logical_name(schema)
    convert = _encode_logical(schema, name, options) if name else _encode_present(schema, options)
    null = _null_when_encoded(schema, convert, options)
    plain = name is None and schema.type in UNCHANGED
    return Conversion(or_null(convert, null), simple_for(schema) if plain else "")


def _null_when_encoded(
    schema: ConnectSchema, convert: Convert, options: PayloadOptions
) -> Callable[[], object]:
    if schema.default is not NO_DEFAULT and options.replace_null_with_default:
        return lambda: convert(schema.default)
    if schema.optional:
        return lambda: None

    def refuse() -> object:
        raise DataError(
            "Conversion error: null value for field that is required and has no default value",
            hint="set a value for the field, or make its schema optional",
        )

    return refuse


def _encode_present(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    match schema.type:
        case Type.FLOAT32:
            return _encode_float32
        case Type.FLOAT64:
            return _encode_float64
        case Type.BYTES:
            return encode_bytes
        case Type.ARRAY:
            return _encode_array(schema, options)
        case Type.MAP:
            return _encode_map(schema, options)
        case Type.STRUCT if options.is_union(schema):
            return _encode_union(schema, options)
        case Type.STRUCT:
            parts = [(each.name, encoding(each.schema, options)) for each in schema.fields]
            return struct_to_dict(schema, parts)

    def same(value: object) -> object:
        validate(schema, value)
        return value

    return same


def _encode_float64(value: object) -> object:
    if not isinstance(value, float):
        raise _invalid("FLOAT64", value)
    return value if isfinite(value) else _float_text(value)


def _encode_float32(value: object) -> object:
    packed = float32_bytes(value)
    assert isinstance(value, float), "only floats are converted"
    if not isfinite(value):
        return _float_text(value)
    # The shortest digits that identify this number, as Java writes them: 1.1, not
    # 1.100000023841858.
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if float32_bytes(short) == packed:
            return short
    return float(f"{value:.9g}")


def _float_text(value: float) -> str:
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def encode_bytes(value: object) -> str:
    """Bytes as base64."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise DataError(f"Invalid type for bytes type: {type(value).__name__}")
    return b2a_base64(value, newline=False).decode("ascii")


def _encode_array(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    convert = list_to_list(element_of(schema.value_schema, options, encoding))

    def encode(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _invalid("ARRAY", value)
        return convert(value)

    return encode


def _encode_map(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    values = element_of(schema.value_schema, options, encoding)
    if schema.key_schema is None or options.is_object(schema):
        convert = dict_to_dict(values)
    else:
        keys = encoding(schema.key_schema, options)
        make = _entries if options.entries_as_objects else _pairs
        convert = make(keys.convert, values.convert)

    def encode(value: object) -> object:
        if not isinstance(value, dict):
            raise _invalid("MAP", value)
        return convert(value)

    return encode


def _pairs(key: Convert, value: Convert) -> Convert:
    return lambda entries: [[key(each), value(entries[each])] for each in entries]


def _entries(key: Convert, value: Convert) -> Convert:
    return lambda entries: [{"key": key(each), "value": value(entries[each])} for each in entries]


def _encode_union(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    converts = [encoding(each.schema, options).convert for each in schema.fields]

    def encode(value: object) -> object:
        if not isinstance(value, Struct) or not value.schema.matches(schema):
            raise DataError("Mismatching schema.")
        for each, convert in zip(value.values, converts, strict=True):
            if each is not None:
                return convert(each)
        if not schema.optional:
            raise DataError("no field of the union has a value")
        return None

    return encode


def _encode_logical(schema: ConnectSchema, name: str, options: PayloadOptions) -> Convert:
    if name == DECIMAL_NAME:
        scale = scale_of(schema)

        def encode_decimal(value: object) -> object:
            if not isinstance(value, Decimal):
                raise DataError(
                    f"Invalid type for Decimal, expected Decimal but was {type(value).__name__}"
                )
            if options.numeric_decimals and value.is_finite():
                return orjson.Fragment(str(value).encode("ascii"))
            return encode_bytes(decimal_bytes(value, scale))

        return encode_decimal
    kind, number_of, _ = NUMBERED[name]

    def encode(value: object) -> object:
        try:
            if type(value) is kind:
                return number_of(value)
        except TypeError:  # a datetime without a time zone
            pass
        validate(schema, value)
        return number_of(value)

    return encode


def _invalid(kind: str, value: object) -> DataError:
    return DataError(f"Invalid type for {kind}: {type(value).__name__}")
