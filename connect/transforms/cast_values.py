"""Casts values to other types, narrowing numbers as Java does."""

import datetime
from collections.abc import Callable
from ctypes import c_float
from decimal import Decimal
from math import isnan

from broker.java.number_text import float_text, parse_double, parse_integer
from connect.data import DATE_NAME, TIME_NAME, TIMESTAMP_NAME, ConnectSchema, Type, text_of
from connect.errors import DataError
from connect.logical_values import DAY_MS, days_of, time_milliseconds, timestamp_milliseconds
from connect.transforms.parts import java_class

Caster = Callable[[object], object]

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
CAST_FROM = (*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES)
CAST_TO = CAST_FROM[:-1]
_PLAIN_TYPES: dict[type, Type] = {
    bool: Type.BOOLEAN,
    int: Type.INT64,
    float: Type.FLOAT64,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    dict: Type.MAP,
}


def names_of(types: tuple[Type, ...]) -> str:
    """Types as Java lists them."""
    return f"[{', '.join(each.name for each in types)}]"


def caster(schema: ConnectSchema, target: Type) -> Caster:
    """The function that casts values of a schema."""
    if schema.type not in CAST_FROM:
        return _nullable(lambda value: ensure_castable(schema.type))
    if target is Type.STRING:
        return _nullable(float_or_text if schema.type is Type.FLOAT32 else text_of_value)
    to_target = _TO[target]
    encode = _ENCODED.get(schema.name or "")
    if encode is None:
        return _nullable(to_target)
    # Dates and times are cast as their underlying numbers.
    return _nullable(lambda value: to_target(encode(value)))


def schemaless_caster(target: Type) -> Caster:
    """The function that casts values without a schema."""
    to_target = text_of_value if target is Type.STRING else _TO[target]

    def cast(value: object) -> object:
        found = _PLAIN_TYPES.get(type(value))
        if found is None:
            raise DataError(
                f"Cast transformation was passed a value of type class {java_class(value)} which "
                "is not supported by Connect's data API"
            )
        ensure_castable(found)
        return to_target(value)

    return _nullable(cast)


def _nullable(cast: Caster) -> Caster:
    return lambda value: None if value is None else cast(value)


def ensure_castable(found: Type) -> None:
    """DataError if values of this type cannot be cast."""
    if found not in CAST_FROM:
        raise DataError(
            f"Cast transformation does not support casting from {found.name}; "
            f"supported types are {names_of(CAST_FROM)}"
        )


def _to_integer(bits: int) -> Caster:
    bound = 1 << (bits - 1)

    def narrowed(number: int) -> int:
        return (number + bound) % (2 * bound) - bound

    def cast(value: object) -> object:
        match value:
            case int():  # bools are ints in Python
                return narrowed(int(value))
            case float():
                return narrowed(_saturated(value, 64 if bits == 64 else 32))
            case Decimal():
                return narrowed(int(value))
            case str():
                try:
                    return parse_integer(value, -bound, bound - 1)
                except ValueError:
                    raise _out_of_range(value) from None
            case _:
                raise _unexpected(value)

    return cast


def _saturated(number: float, bits: int) -> int:
    """Like the cast of a double to an int or long in Java: NaN becomes 0, others saturate."""
    if isnan(number):
        return 0
    bound = 1 << (bits - 1)
    return int(max(-bound, min(number, bound - 1)))


def _to_double(value: object) -> object:
    match value:
        case int() | float() | Decimal():
            return float(value)
        case str():
            try:
                return parse_double(value)
            except ValueError:
                raise _out_of_range(value) from None
        case _:
            raise _unexpected(value)


def _to_float(value: object) -> object:
    number = _to_double(value)
    assert isinstance(number, float)
    return c_float(number).value


def _to_boolean(value: object) -> object:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case float():
            return _saturated(value, 64) != 0
        case Decimal():
            return int(value) != 0
        case str():
            return value.lower() == "true"
        case _:
            raise _unexpected(value)


_TO: dict[Type, Caster] = {
    **{each: _to_integer(bits) for each, bits in _BITS.items()},
    Type.FLOAT32: _to_float,
    Type.FLOAT64: _to_double,
    Type.BOOLEAN: _to_boolean,
}


def _out_of_range(value: str) -> DataError:
    return DataError(f"Value ({value}) was out of range for requested data type")


def _unexpected(value: object) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")


def float_or_text(value: object) -> str:
    """A FLOAT32 value as a string: it has fewer digits than a FLOAT64."""
    return float_text(value) if isinstance(value, float) else text_of_value(value)


def text_of_value(value: object) -> str:
    """A value as a string: numbers as in Java, bytes in base64, times by their range."""
    match value:
        case datetime.datetime():
            return _moment_text(timestamp_milliseconds(value))
        case datetime.date():
            return _moment_text(days_of(value) * DAY_MS)
        case datetime.time():
            return _moment_text(time_milliseconds(value))
        case _:
            return text_of(value)


def _moment_text(milliseconds: int) -> str:
    # Kafka knows only the milliseconds here, and distinguishes times, dates and timestamps by them.
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(  # noqa: DTZ001 - UTC is meant
        milliseconds=milliseconds
    )
    if milliseconds < DAY_MS:
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}Z"
    if milliseconds % DAY_MS == 0:
        return moment.date().isoformat()
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _encoded_date(value: object) -> object:
    return days_of(value) if isinstance(value, datetime.date) else value


def _encoded_time(value: object) -> object:
    return time_milliseconds(value) if isinstance(value, datetime.time) else value


def _encoded_timestamp(value: object) -> object:
    return timestamp_milliseconds(value) if isinstance(value, datetime.datetime) else value


_ENCODED: dict[str, Caster] = {
    DATE_NAME: _encoded_date,
    TIME_NAME: _encoded_time,
    TIMESTAMP_NAME: _encoded_timestamp,
}
