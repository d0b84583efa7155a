"""JSON values to values of columns, as ksqlDB coerces them.

    BOOLEAN    true, false
    INT, BIGINT, TIME, DATE, TIMESTAMP    numbers, truncated at the decimal point; strings of digits
    DOUBLE     numbers, and strings that Java parses
    DECIMAL    numbers and strings of numbers, if nothing has to be rounded
    STRING     everything: numbers as written, objects as JSON, arrays as [a, b]
    BYTES      base64 text
    ARRAY array    MAP object    STRUCT object

Fields are found by their exact name, otherwise by the last one whose upper case is the name.
Missing fields are null, unknown ones are ignored. The values come from decode_json, which loses no
digits.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, DecimalException
from functools import partial

import msgspec

from broker.java.number_text import in_range, parse_base64, parse_double, parse_integer
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
from sql.numeric_types import INTEGER_RANGES, fit_decimal, parse_decimal
from sql.rows.mismatch import Mismatch, inside

# From a JSON value that is not null.
Coercion = Callable[[object], object]

# Numbers with more digits are out of all ranges, and slow to convert to integers.
DIGITS_MAX = 30
KINDS: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    Decimal: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def exact_number(text: str) -> Decimal:
    """A number as written."""
    return Decimal(text)


_decode = msgspec.json.Decoder(float_hook=exact_number).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def decode_json(data: bytes) -> object:
    """Decode any JSON, with numbers as int or Decimal; Mismatch if it is invalid."""
    try:
        result: object = _decode(data)
    except RecursionError:
        raise Mismatch("it is nested too deeply") from None
    except DecimalException:
        raise Mismatch("a number is too large") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise Mismatch(str(error)) from None
    return result


def coercion_of(data_type: DataType) -> Coercion:
    """A function that converts JSON values to a type; it raises ValueError."""
    match data_type:
        case Primitive():
            if data_type in INTEGER_RANGES:
                return partial(_integer, data_type, *INTEGER_RANGES[data_type])
            return PRIMITIVES[data_type]
        case DecimalType():
            return partial(_decimal, data_type)
        case ArrayType(element):
            return _array_coercion(data_type, coercion_of(element))
        case MapType(_, value):
            return _map_coercion(data_type, coercion_of(value))
        case StructType(fields):
            return _struct_coercion(data_type, fields)


def fields_coercion(
    fields: Sequence[Field | Column],
) -> Callable[[dict[str, object]], list[object]]:
    """A function that finds the values of fields in an object, in the order of the fields."""
    prepared = [(each.name, f".{each.name}", coercion_of(each.type)) for each in fields]

    def coerce(found: dict[str, object]) -> list[object]:
        upper: dict[str, object] | None = None
        values: list[object] = []
        for name, part, coercion in prepared:
            if name in found:
                value = found[name]
            else:
                if upper is None:
                    upper = {key.upper(): each for key, each in found.items()}
                value = upper.get(name)
            try:
                values.append(None if value is None else coercion(value))
            except ValueError as error:
                raise inside(part, error) from None
        return values

    return coerce


def refusal(value: object, data_type: object) -> Mismatch:
    """The error for a JSON value of the wrong kind."""
    return Mismatch(f"{KINDS.get(type(value), 'null')} is not {data_type}")


def _boolean(value: object) -> bool:
    if value is True or value is False:
        return value
    raise refusal(value, BOOLEAN)


def _integer(data_type: DataType, low: int, high: int, value: object) -> int:
    match value:
        case bool():
            raise refusal(value, data_type)
        case int():
            return in_range(value, low, high)
        case Decimal():
            if value and value.adjusted() > DIGITS_MAX:
                raise Mismatch("the number is out of range")
            return in_range(int(value), low, high)
        case str():
            return parse_integer(value, low, high)
    raise refusal(value, data_type)


def _double(value: object) -> float:
    match value:
        case bool():
            raise refusal(value, DOUBLE)
        case int():
            try:
                return float(value)
            except OverflowError:
                return float("inf" if value > 0 else "-inf")
        case Decimal():
            return float(value)
        case str():
            return parse_double(value)
    raise refusal(value, DOUBLE)


def _string(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            # Java's decimals have no negative zero.
            return str(value if value else value.copy_abs())
        case dict():
            return _encode(value).decode()
        case list():
            return f"[{', '.join('null' if each is None else _string(each) for each in value)}]"
    raise refusal(value, STRING)


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return parse_base64("".join(value.split()))
    raise refusal(value, BYTES)


def _decimal(data_type: DecimalType, value: object) -> Decimal:
    match value:
        case Decimal():
            return fit_decimal(value, data_type)
        case str():
            return parse_decimal(value, data_type)
        case bool():
            raise refusal(value, data_type)
        case int():
            return fit_decimal(Decimal(value), data_type)
    raise refusal(value, data_type)


PRIMITIVES: dict[Primitive, Coercion] = {
    BOOLEAN: _boolean,
    DOUBLE: _double,
    STRING: _string,
    BYTES: _bytes,
}


def _array_coercion(data_type: ArrayType, coercion: Coercion) -> Coercion:
    def coerce(value: object) -> list[object]:
        if not isinstance(value, list):
            raise refusal(value, data_type)
        found: list[object] = []
        for each in value:
            try:
                found.append(None if each is None else coercion(each))
            except ValueError as error:
                raise inside(f"[{len(found)}]", error) from None
        return found

    return coerce


def _map_coercion(data_type: MapType, coercion: Coercion) -> Coercion:
    def coerce(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise refusal(value, data_type)
        result: dict[str, object] = {}
        for key, each in value.items():
            try:
                result[key] = None if each is None else coercion(each)
            except ValueError as error:
                raise inside(f".{key}", error) from None
        return result

    return coerce


def _struct_coercion(data_type: StructType, fields: tuple[Field, ...]) -> Coercion:
    names = [each.name for each in fields]
    coerce_fields = fields_coercion(fields)

    def coerce(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise refusal(value, data_type)
        return dict(zip(names, coerce_fields(value), strict=True))

    return coerce
