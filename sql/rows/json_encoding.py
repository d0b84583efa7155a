"""Rows to JSON: generates a function for each list of columns, with inline checks.

For (ID INT, NAME STRING) it is

    def encode(row):
        value0, value1, = row
        return dumps(Fields(
            value0 if type(value0) is int and -2147483648 <= value0 <= ... else other0(value0),
            value1 if type(value1) is str else other1(value1),
        ))

where `other` encodes null and other values, or raises an error. Doubles are written as in Java,
decimals with their digits, bytes as base64.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import isfinite

import msgspec

from broker.java.number_text import as_double, decimal_text, double_text
from sql.datatypes import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.numeric_types import INTEGER_RANGES
from sql.rows.mismatch import Mismatch, inside
from sql.rows.row_format import Row

# From a value or null to a value that msgspec writes correctly.
Encoding = Callable[[object], object]

# Conditions for values that are encoded unchanged.
SIMPLE: dict[Primitive, str] = {
    BOOLEAN: "{value} is True or {value} is False",
    # In this range Python formats doubles as Java does.
    DOUBLE: "type({value}) is float and 0.001 <= {value} < 10000000.0",
    STRING: "type({value}) is str",
    BYTES: "type({value}) is bytes",
} | {
    integer: f"type({{value}}) is int and {low} <= {{value}} <= {high}"
    for integer, (low, high) in INTEGER_RANGES.items()
}

_dumps = msgspec.json.Encoder().encode


def row_encoder(columns: Sequence[Column]) -> Callable[[Row], bytes]:
    """A function that encodes rows as objects; it raises ValueError for invalid values."""
    names: dict[str, object] = {"dumps": _dumps}
    values = [f"value{index}" for index in range(len(columns))]
    expressions = []
    for index, column in enumerate(columns):
        names[f"other{index}"] = _named(column)
        expressions.append(_expression(column.type, f"value{index}", f"other{index}"))
    try:
        names["Fields"] = msgspec.defstruct(
            "Fields",
            [(value, object) for value in values],
            rename={value: each.name for value, each in zip(values, columns, strict=True)},
            gc=False,
        )
        call = f"Fields({', '.join(expressions)})"
    except ValueError:  # names with quotes or control characters
        pairs = zip(columns, expressions, strict=True)
        call = f"{{{', '.join(f'{each.name!r}: {expression}' for each, expression in pairs)}}}"
    unpacking = f"{', '.join(values)}, = row" if values else "() = row"
    return _function(f"def encode(row):\n    {unpacking}\n    return dumps({call})\n", names)


def single_encoder(column: Column) -> Callable[[Row], bytes | None]:
    """The encoder of a row's only value, unwrapped; a null value has no bytes."""
    encoding = encoding_of(column.type)

    def encode(row: Row) -> bytes | None:
        (value,) = row
        return None if value is None else _dumps(encoding(value))

    return encode


def encoding_of(data_type: DataType) -> Encoding:
    """A function from values of a type to values that msgspec writes correctly."""
    match data_type:
        case Primitive():
            return _primitive_encoding(data_type)
        case DecimalType():
            return _encode_decimal
        case ArrayType(element):
            return _array_encoding(data_type, encoding_of(element))
        case MapType(_, value):
            return _map_encoding(data_type, encoding_of(value))
        case StructType(fields):
            return _struct_encoding(data_type, fields)


def _function(text: str, names: dict[str, object]) -> Callable[[Row], bytes]:
    exec(compile(text, "<generated JSON encoder>", "exec"), names)
    result: Callable[[Row], bytes] = names["encode"]  # type: ignore[assignment]
    return result


def _expression(data_type: DataType, value: str, other: str) -> str:
    if isinstance(data_type, Primitive):
        return f"{value} if {SIMPLE[data_type].format(value=value)} else {other}({value})"
    return f"{other}({value})"


def _named(column: Column) -> Encoding:
    encoding = encoding_of(column.type)

    def encode(value: object) -> object:
        try:
            return encoding(value)
        except ValueError as error:
            raise inside(f".{column.name}", error) from None

    return encode


def _refusal(value: object, data_type: object) -> Mismatch:
    return Mismatch(f"{type(value).__name__} is not {data_type}")


def _primitive_encoding(data_type: Primitive) -> Encoding:
    if data_type is DOUBLE:
        return _encode_double
    is_simple: Callable[[object], bool] = eval(
        f"lambda value: {SIMPLE[data_type].format(value='value')}"
    )

    def encode(value: object) -> object:
        if value is None or is_simple(value):
            return value
        if type(value) is int and data_type in INTEGER_RANGES:
            raise Mismatch(f"the number is out of the range of {data_type}")
        raise _refusal(value, data_type)

    return encode


def _encode_double(value: object) -> object:
    if value is None:
        return None
    number = as_double(value)
    text = double_text(number)
    # JSON has no such numbers; their names are written, as by Jackson.
    return msgspec.Raw(text) if isfinite(number) else text


def _encode_decimal(value: object) -> object:
    if value is None:
        return None
    if type(value) is not Decimal:
        raise _refusal(value, "DECIMAL")
    return msgspec.Raw(decimal_text(value))


def _array_encoding(data_type: ArrayType, encoding: Encoding) -> Encoding:
    def encode(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _refusal(value, data_type)
        found: list[object] = []
        for each in value:
            try:
                found.append(encoding(each))
            except ValueError as error:
                raise inside(f"[{len(found)}]", error) from None
        return found

    return encode


def _map_encoding(data_type: MapType, encoding: Encoding) -> Encoding:
    def encode(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _refusal(value, data_type)
        result: dict[str, object] = {}
        for key, each in value.items():
            if key is None:
                key = "null"  # as ksqlDB writes it; keys in JSON are strings
            if not isinstance(key, str):
                raise _refusal(key, "a key of a MAP in JSON")
            try:
                result[key] = encoding(each)
            except ValueError as error:
                raise inside(f".{key}", error) from None
        return result

    return encode


def _struct_encoding(data_type: StructType, fields: tuple[Field, ...]) -> Encoding:
    prepared = [(each.name, encoding_of(each.type)) for each in fields]

    def encode(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _refusal(value, data_type)
        result: dict[str, object] = {}
        for name, encoding in prepared:
            try:
                result[name] = encoding(value.get(name))
            except ValueError as error:
                raise inside(f".{name}", error) from None
        return result

    return encode
