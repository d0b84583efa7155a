"""Values as JSON, as Kafka's JSON converter has them.

INT, FLOAT   number; NaN and infinities are texts      BYTES      text of base64
STRUCT       object                                    ARRAY      array
MAP          object; array of [key, value] when keys are no STRING
Decimal      text of base64 or number                  Date       days since 1970
Time         milliseconds since midnight               Timestamp  milliseconds since 1970

Where Jackson makes 0 of a text that should be a number, there is an error here.
"""

import struct
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, isnan

import orjson

from connect.converters.compiled import (
    Conversion,
    Convert,
    dict_to_dict,
    dict_to_struct,
    list_to_list,
    simple_for,
    struct_to_dict,
)
from connect.data import DECIMAL_NAME, NO_DEFAULT, ConnectSchema, Type, validate
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_bytes,
    decimal_of_bytes,
    logical_name,
    scale_of,
)


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """How decimals are written, and whether a null stands for its schema's default."""

    numeric_decimals: bool = False
    replace_null_with_default: bool = True


class InexactNumber(Exception):
    """A decimal number was read as a float: read the text again, exactly."""


_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_pack_float = struct.Struct("<f").pack
_unpack_float = struct.Struct("<f").unpack


def encoding(schema: ConnectSchema, options: PayloadOptions) -> Conversion:
    """From values of a schema to what orjson writes."""
    name = logical_name(schema)
    convert = _encode_logical(schema, name, options) if name else _encode_present(schema, options)
    null = _null_when_encoded(schema, convert, options)
    plain = name is None and schema.type in _UNCHANGED
    return Conversion(_or_null(convert, null), simple_for(schema) if plain else "")


def decoding(schema: ConnectSchema, options: PayloadOptions) -> Conversion:
    """From what orjson read to values of a schema."""
    name = logical_name(schema)
    convert = _decode_logical(schema, name) if name else _decode_present(schema, options)
    null = _null_when_decoded(schema, options)
    plain = name is None and schema.type in _UNCHANGED
    return Conversion(_or_null(convert, null), simple_for(schema) if plain else "")


_UNCHANGED = frozenset(
    {
        Type.INT8,
        Type.INT16,
        Type.INT32,
        Type.INT64,
        Type.FLOAT64,
        Type.BOOLEAN,
        Type.STRING,
    }
)


def _or_null(convert: Convert, null: Callable[[], object]) -> Convert:
    return lambda value: null() if value is None else convert(value)


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
            hint="give the field a value, or make its schema optional",
        )

    return refuse


def _null_when_decoded(schema: ConnectSchema, options: PayloadOptions) -> Callable[[], object]:
    if schema.default is not NO_DEFAULT and options.replace_null_with_default:
        return lambda: schema.default
    if schema.optional:
        return lambda: None

    def refuse() -> object:
        raise DataError(f"Invalid null value for required {schema.type.name} field")

    return refuse


# Encoding.


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
    if not isinstance(value, float):
        raise _invalid("FLOAT32", value)
    if not isfinite(value):
        return _float_text(value)
    try:
        packed = _pack_float(value)
    except OverflowError:
        raise DataError(
            f"{value} does not fit a FLOAT32", hint="make the field a FLOAT64"
        ) from None
    # The shortest digits that mean this number, as Java writes them: 1.1, not 1.100000023841858.
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if _pack_float(short) == packed:
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
    convert = list_to_list(_element(schema.value_schema, options, encoding))

    def encode(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _invalid("ARRAY", value)
        return convert(value)

    return encode


def _encode_map(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    values = _element(schema.value_schema, options, encoding)
    if schema.key_schema is None or schema.key_schema.type is Type.STRING:
        convert = dict_to_dict(values)
    else:
        keys = encoding(schema.key_schema, options)
        convert = _pairs(keys.convert, values.convert)

    def encode(value: object) -> object:
        if not isinstance(value, dict):
            raise _invalid("MAP", value)
        return convert(value)

    return encode


def _pairs(key: Convert, value: Convert) -> Convert:
    return lambda entries: [[key(each), value(entries[each])] for each in entries]


def _element(
    schema: ConnectSchema | None,
    options: PayloadOptions,
    make: Callable[[ConnectSchema, PayloadOptions], Conversion],
) -> Conversion:
    if schema is not None:
        return make(schema, options)

    def refuse(value: object) -> object:
        if value is not None:
            raise DataError("No schema defined for element of array or map")
        return None

    return Conversion(refuse)


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


# Decoding.


def node_type(value: object) -> str:
    """What Jackson calls a JSON value."""
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
        raise DataError("Invalid bytes field", hint="bytes are texts of base64") from None


def _decode_array(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    convert = list_to_list(_element(schema.value_schema, options, decoding))

    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise _misread(Type.ARRAY, value)
        return convert(value)

    return decode


def _decode_map(schema: ConnectSchema, options: PayloadOptions) -> Convert:
    values = _element(schema.value_schema, options, decoding)
    if schema.key_schema is None or schema.key_schema.type is Type.STRING:
        convert = dict_to_dict(values)

        def decode(value: object) -> object:
            if not isinstance(value, dict):
                raise DataError(
                    "Maps with string fields should be encoded as JSON objects, "
                    f"but found {node_type(value)}"
                )
            return convert(value)

        return decode
    return _decode_entries(decoding(schema.key_schema, options).convert, values.convert)


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
