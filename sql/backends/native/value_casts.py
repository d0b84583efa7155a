"""CAST: functions that convert values of one type to another; never called with null."""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

from broker.java.number_text import (
    CONTROLS_AND_SPACE,
    DECIMAL,
    parse_base64,
    parse_double,
    parse_integer,
)
from broker.java.times import DAY_MS, parse_date, parse_time, parse_timestamp
from sql.backends.native.value_strings import cast_text
from sql.backends.native.values import (
    BIGINT_MAX,
    BIGINT_MIN,
    DIGITS_MAX,
    INT_MAX,
    INT_MIN,
    wrap_bigint,
    wrap_int,
)
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
    DataType,
    DecimalType,
    MapType,
    StructType,
)

# Any: a function's argument and result have the types that it was created for.
Cast = Callable[[Any], Any]


def cast_function(given: DataType, wanted: DataType) -> Cast | None:
    """A function that converts values to `wanted`; None if the values are the same.

    The function raises if a value cannot be converted. The types must be castable, see sql.analyse.
    """
    if given == wanted or (given is INT and wanted is BIGINT):
        return None
    if wanted is STRING:
        return cast_text(given)
    if isinstance(wanted, DecimalType):
        return _to_decimal(given, wanted)
    match given, wanted:
        case ArrayType(), ArrayType():
            return _array_cast(cast_function(given.element, wanted.element))
        case MapType(), MapType():
            return _map_cast(
                cast_function(given.key, wanted.key), cast_function(given.value, wanted.value)
            )
        case StructType(), StructType():
            return _struct_cast(given, wanted)
    result = CASTS.get(("DECIMAL" if isinstance(given, DecimalType) else given, wanted))
    assert result is not None, f"no cast of {given} to {wanted}"
    return result


def _unchanged(value: object) -> object:
    return value


def _array_cast(cast: Cast | None) -> Cast | None:
    if cast is None:
        return None
    return lambda array: [None if each is None else cast(each) for each in array]


def _map_cast(keys: Cast | None, values: Cast | None) -> Cast | None:
    if keys is None and values is None:
        return None
    key_cast, value_cast = keys or _unchanged, values or _unchanged

    def cast(entries: dict[object, object]) -> dict[object, object]:
        return {
            None if key is None else key_cast(key): None if value is None else value_cast(value)
            for key, value in entries.items()
        }

    return cast


def _struct_cast(given: StructType, wanted: StructType) -> Cast:
    types = {each.name: each.type for each in given.fields}
    casts = [
        (each.name, (cast_function(types[each.name], each.type) or _unchanged) if each.name in types
         else None)
        for each in wanted.fields
    ]  # fmt: skip

    def cast(struct: dict[str, object]) -> dict[str, object]:
        return {
            name: None if change is None or (value := struct.get(name)) is None else change(value)
            for name, change in casts
        }

    return cast


def _to_decimal(given: DataType, wanted: DecimalType) -> Cast:
    fit = _fitting(wanted)
    if given is STRING:
        return lambda text: fit(_parsed_decimal(text))
    if given is DOUBLE:
        # A double has unlimited digits; only as many as the type has are used.
        rounding = Context(
            prec=min(wanted.precision, DIGITS_MAX),
            rounding=ROUND_HALF_UP,
            Emax=MAX_EMAX,
            Emin=MIN_EMIN,
            traps=[InvalidOperation],
        )
        return lambda number: fit(rounding.plus(_finite(number)))
    if isinstance(given, DecimalType):
        return fit
    return lambda number: fit(Decimal(number))


def _finite(number: float) -> Decimal:
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a decimal number")
    return Decimal(number)


def _parsed_decimal(text: str) -> Decimal:
    trimmed = text.strip(CONTROLS_AND_SPACE)
    if DECIMAL.fullmatch(trimmed) is None:
        raise ValueError(f"'{text}' is not a number")
    return Decimal(trimmed)


def _fitting(wanted: DecimalType) -> Callable[[Decimal], Decimal]:
    """Rounds half up to the scale; raises if there are too many digits before the point."""
    unit = Decimal((0, (1,), -wanted.scale))
    context = Context(
        prec=min(wanted.precision, DIGITS_MAX),
        rounding=ROUND_HALF_UP,
        Emax=MAX_EMAX,
        Emin=MIN_EMIN,
        traps=[InvalidOperation],
    )
    quantize = context.quantize

    def fit(number: Decimal) -> Decimal:
        try:
            found = quantize(number, unit)
        except InvalidOperation:
            raise ArithmeticError(
                f"Numeric field overflow: A field with precision {wanted.precision} and scale "
                f"{wanted.scale} must round to an absolute value less than "
                f"10^{wanted.precision - wanted.scale}. Got {number:.60}"
            ) from None
        return found if found else found.copy_abs()

    return fit


def _whole(number: float, low: int, high: int) -> int:
    """Narrows doubles as Java does: NaN is 0, and values out of range saturate."""
    if number != number:
        return 0
    if number <= low:
        return low
    return high if number >= high else int(number)


def parse_boolean(text: str) -> bool:
    """Whether a string is a prefix of 'true' or 'yes', in any case: t, tr, y and so on."""
    word = text.strip(CONTROLS_AND_SPACE).lower()
    return bool(word) and ("true".startswith(word) or "yes".startswith(word))


def _trimmed(parse: Cast) -> Cast:
    return lambda text: parse(text.strip(CONTROLS_AND_SPACE))


# The kind of a type is the type itself, or "DECIMAL" for all decimals.
CASTS: dict[tuple[DataType | str, DataType], Cast] = {
    (BIGINT, INT): wrap_int,
    (INT, DOUBLE): float,
    (BIGINT, DOUBLE): float,
    ("DECIMAL", INT): lambda number: wrap_int(int(number)),
    ("DECIMAL", BIGINT): lambda number: wrap_bigint(int(number)),
    ("DECIMAL", DOUBLE): float,
    (DOUBLE, INT): partial(_whole, low=INT_MIN, high=INT_MAX),
    (DOUBLE, BIGINT): partial(_whole, low=BIGINT_MIN, high=BIGINT_MAX),
    (STRING, BOOLEAN): parse_boolean,
    (STRING, INT): _trimmed(partial(parse_integer, low=INT_MIN, high=INT_MAX)),
    (STRING, BIGINT): _trimmed(partial(parse_integer, low=BIGINT_MIN, high=BIGINT_MAX)),
    (STRING, DOUBLE): _trimmed(parse_double),
    (STRING, TIME): _trimmed(parse_time),
    (STRING, DATE): _trimmed(parse_date),
    (STRING, TIMESTAMP): _trimmed(parse_timestamp),
    (STRING, BYTES): _trimmed(parse_base64),
    (TIMESTAMP, TIME): lambda moment: moment % DAY_MS,
    (TIMESTAMP, DATE): lambda moment: moment // DAY_MS,
    (DATE, TIMESTAMP): lambda days: days * DAY_MS,
}
