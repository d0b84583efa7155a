"""Conversions of single values to schema types: times as numbers, decimals as bytes."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from enum import Enum
from uuid import UUID

from broker.serde.models.mismatch import unscaled_with
from broker.serde.models.shapes import DecimalShape

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
SECOND = 1_000_000
DAY = 86_400 * SECOND
INT32, INT64 = 1 << 31, 1 << 63
# Decimals with more digits are refused: converting them takes quadratic time.
DIGIT_BITS_MAX = 1 << 14
SCALE_MAX = 5000
WIDE = Context(prec=10_000)


class TypeMismatch(Exception):
    """A value does not have the type of its field; `find_mismatch` determines which."""


def whole(value: object) -> int:
    """A 64-bit int of a subclass of int; a bool is refused."""
    if isinstance(value, int) and not isinstance(value, bool) and -INT64 <= value < INT64:
        return int(value)
    raise TypeMismatch


def whole32(value: object) -> int:
    """The same with 32 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and -INT32 <= value < INT32:
        return int(value)
    raise TypeMismatch


def number(value: object) -> float:
    """An int or a subclass of float, as a float."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise TypeMismatch


def text(value: object) -> str:
    """A subclass of str, as a str."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeMismatch


def refuse(value: object) -> object:
    """Raise TypeMismatch."""
    raise TypeMismatch


def converted(kind: str, value: object) -> object:
    """Convert a value that may be written as Avro's primitive type, but has another class."""
    match kind:
        case "int":
            return whole32(value)
        case "long":
            return whole(value)
        case "float" | "double":
            return number(value)
        case "string":
            return text(value)
    raise TypeMismatch


def without_none(found: dict[str, object], names: Iterable[str]) -> dict[str, object]:
    """A dict without those of the named items that are None."""
    for name in names:
        if found[name] is None:
            del found[name]
    return found


def elements(value: object) -> object:
    """Validate the items of an array."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    raise TypeMismatch


def micros(value: datetime) -> int:
    """Microseconds since 1970; a datetime without a time zone raises TypeError."""
    return micros_of(value - EPOCH)


def local_micros(value: datetime) -> int:
    """The same for a datetime without a time zone; others raise TypeError."""
    return micros_of(value - LOCAL_EPOCH)


def micros_of(value: timedelta) -> int:
    """Microseconds of a duration."""
    return value.days * DAY + value.seconds * SECOND + value.microseconds


def day_micros(value: time) -> int:
    """Microseconds since midnight."""
    if value.tzinfo is not None:
        raise TypeMismatch
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * SECOND + value.microsecond


def days(value: date) -> int:
    """Days since 1970; a datetime is not a date."""
    if isinstance(value, datetime):
        raise TypeMismatch
    return value.toordinal() - EPOCH_ORDINAL


def uuid_text(value: UUID) -> str:
    """The string of 36 characters."""
    if not isinstance(value, UUID):
        raise TypeMismatch
    return str(value)


def timestamp(value: int | datetime) -> datetime:
    """The datetime of microseconds since 1970."""
    return value if isinstance(value, datetime) else EPOCH + timedelta(0, 0, value)


def local_timestamp(value: int | datetime) -> datetime:
    """The same without a time zone."""
    return value if isinstance(value, datetime) else LOCAL_EPOCH + timedelta(0, 0, value)


def duration(value: int) -> timedelta:
    """The duration of microseconds."""
    return timedelta(0, 0, value)


def day(value: int | date) -> date:
    """The date of days since 1970."""
    return value if isinstance(value, date) else date.fromordinal(value + EPOCH_ORDINAL)


def time_of_day(value: int | time) -> time:
    """The time of microseconds since midnight."""
    if isinstance(value, time):
        return value
    return (LOCAL_EPOCH + timedelta(0, 0, value)).time()


def uuid(value: str | UUID) -> UUID:
    """The UUID of its string."""
    return value if isinstance(value, UUID) else UUID(value)


def decimal_writer(shape: DecimalShape) -> Callable[[Decimal], bytes]:
    """A function from a Decimal to Avro's bytes: the digits as a signed big-endian number."""
    unscaled = unscaled_with(shape)

    def write(value: Decimal) -> bytes:
        digits = unscaled(value)
        return digits.to_bytes((8 + (digits + (digits < 0)).bit_length()) // 8, signed=True)

    return write


def decimal_reader(shape: DecimalShape) -> Callable[[bytes | Decimal], Decimal]:
    """A function from Avro's bytes, or fastavro's value of them, to a Decimal."""
    scale = shape.scale

    def read(value: bytes | Decimal) -> Decimal:
        if isinstance(value, Decimal):
            return value
        return scaled(int.from_bytes(value, signed=True), scale)

    return read


def scaled(digits: int, scale: int) -> Decimal:
    """The Decimal with these digits and this scale."""
    if digits.bit_length() > DIGIT_BITS_MAX or abs(scale) > SCALE_MAX:
        raise ValueError("a decimal has too many digits")
    return Decimal(digits).scaleb(-scale, WIDE)


class EnumMembers(dict[object, Enum]):
    """Members of an Enum by their encoded values."""

    def __init__(self, name: str, members: Mapping[str, Enum] | Mapping[int, Enum]) -> None:
        super().__init__(members.items())
        self._name = name

    def __missing__(self, key: object) -> Enum:
        """Raise an error with the name of the enum."""
        raise ValueError(f'"{self._name}" has no member {key!r}')
