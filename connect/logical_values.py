"""Values of logical types, and the underlying numbers and bytes.

Connect has a precision of milliseconds: fractions of a millisecond are truncated.
"""

import datetime
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    SCALE_PARAMETER,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Type,
)
from connect.errors import DataError

DECIMAL_BYTES_MAX = 1_024
DECIMAL_DIGITS_MAX = 2 * DECIMAL_BYTES_MAX
DAY_MS = 86_400_000

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
# The required types of schemas of logical types; other schemas with these names are not logical.
_UNDERNEATH = {
    DECIMAL_NAME: Type.BYTES,
    DATE_NAME: Type.INT32,
    TIME_NAME: Type.INT32,
    TIMESTAMP_NAME: Type.INT64,
}


def logical_name(schema: ConnectSchema) -> str | None:
    """The name of the schema's logical type, if it has one."""
    name = schema.name
    return name if name is not None and _UNDERNEATH.get(name) is schema.type else None


def scale_of(schema: ConnectSchema) -> int:
    """The scale of a Decimal's schema."""
    given = (schema.parameters or {}).get(SCALE_PARAMETER)
    if given is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(given)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def unscaled(value: Decimal, scale: int) -> int:
    """The unscaled value of a decimal number; trailing zeros may be added or dropped."""
    if not value.is_finite() or value.adjusted() + scale > DECIMAL_DIGITS_MAX:
        raise DataError(f"the decimal number {value} cannot be written", hint=_DIGITS)
    shifted = value.scaleb(scale, _EXACT)
    number = int(shifted)
    if number != shifted:
        exponent = value.as_tuple().exponent
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {-int(exponent)}.",
            hint="round the value: value.quantize(Decimal(10) ** -scale)",
        )
    return number


def decimal_bytes(value: Decimal, scale: int) -> bytes:
    """The unscaled value of a decimal number as bytes of Java's BigInteger."""
    number = unscaled(value, scale)
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_of_bytes(data: bytes, scale: int) -> Decimal:
    """The decimal number of an unscaled value in bytes."""
    if len(data) > DECIMAL_BYTES_MAX:
        raise DataError(f"a decimal number has {len(data)} bytes", hint=_DIGITS)
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)


_DIGITS = f"at most {DECIMAL_BYTES_MAX} bytes of digits are written and read"


def days_of(value: datetime.date) -> int:
    """A date as days since 1970."""
    return value.toordinal() - _EPOCH_ORDINAL


def date_of(days: int) -> datetime.date:
    """The date of days since 1970."""
    try:
        return datetime.date.fromordinal(days + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        raise _out_of_calendar(f"day {days}") from None


def time_milliseconds(value: datetime.time) -> int:
    """A time of day as milliseconds since midnight."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_of(milliseconds: int) -> datetime.time:
    """The time of day of milliseconds since midnight."""
    if not 0 <= milliseconds < DAY_MS:
        raise DataError(
            "Time values must use number of milliseconds greater than 0 and less than 86400000",
            hint=f"the value is {milliseconds}",
        )
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return datetime.time(hours, minutes, seconds, milliseconds * 1000)


def timestamp_milliseconds(value: datetime.datetime) -> int:
    """A point in time as milliseconds since 1970."""
    return (value - _EPOCH) // _MILLISECOND


def timestamp_of(milliseconds: int) -> datetime.datetime:
    """The point in time of milliseconds since 1970, in UTC."""
    try:
        return _EPOCH + _MILLISECOND * milliseconds
    except OverflowError:
        raise _out_of_calendar(f"millisecond {milliseconds}") from None


def _out_of_calendar(what: str) -> DataError:
    return DataError(
        f"{what} since 1970 is not in Python's calendar, which has the years 1 to 9999",
        hint="filter out such dates in the source, or read them as plain numbers",
    )


# Logical types with underlying numbers: the class, and the conversions to a number and back.
NUMBERED: dict[str, tuple[type, Callable[..., int], Callable[[int], object]]] = {
    DATE_NAME: (datetime.date, days_of, date_of),
    TIME_NAME: (datetime.time, time_milliseconds, time_of),
    TIMESTAMP_NAME: (datetime.datetime, timestamp_milliseconds, timestamp_of),
}
