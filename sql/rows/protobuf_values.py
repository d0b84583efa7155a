"""Times and decimals as Google's and Confluent's messages, and back.

Messages are converted to values of columns; values to dicts, from which upb creates messages.
"""

from decimal import Decimal

from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SerdeError
from sql.datatypes import DecimalType
from sql.rows.coercion import scaled, two_complement, unscaled

DAY_MS = 86_400_000
NANOS_PER_MS = 1_000_000
INT64 = 1 << 63
# Days of the months before each month, in years that begin with March.
_DAYS_400_YEARS = 146_097
_DAYS_TO_1970 = 719_468


def date_of(message: Message) -> int:
    """Days since 1970 of a google.type.Date, with any year."""
    year, month, day = message.year, message.month, message.day
    if not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        raise SerdeError(f"invalid date: year {year}, month {month}, day {day}")
    # Years begin with March here, so that the leap day is the last day.
    year -= month <= 2
    era, of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + day_of_year
    return int(era * _DAYS_400_YEARS + day_of_era - _DAYS_TO_1970)


def date_fields(days: int) -> dict[str, int]:
    """The fields of the date with these days since 1970."""
    era, day_of_era = divmod(days + _DAYS_TO_1970, _DAYS_400_YEARS)
    of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    return {"year": era * 400 + of_era + (month <= 2), "month": month, "day": day}


def days_of_month(year: int, month: int) -> int:
    """The number of days of a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def time_of(message: Message) -> int:
    """Milliseconds of the day of a google.type.TimeOfDay."""
    seconds = message.hours * 3600 + message.minutes * 60 + message.seconds
    found = int(seconds * 1000 + message.nanos // NANOS_PER_MS)
    if not 0 <= found < DAY_MS:
        raise SerdeError(f"invalid time of day: {found} milliseconds")
    return found


def time_fields(milliseconds: int) -> dict[str, int]:
    """The fields of a time of day."""
    if not 0 <= milliseconds < DAY_MS:
        raise SerdeError(f"invalid time of day: {milliseconds} milliseconds")
    seconds, rest = divmod(milliseconds, 1000)
    return {
        "hours": seconds // 3600,
        "minutes": seconds // 60 % 60,
        "seconds": seconds % 60,
        "nanos": rest * NANOS_PER_MS,
    }


def timestamp_of(message: Message) -> int:
    """Milliseconds since 1970 of a google.protobuf.Timestamp."""
    result = int(message.seconds * 1000 + message.nanos // NANOS_PER_MS)
    if not -INT64 <= result < INT64:
        raise SerdeError(f"invalid timestamp: {message.seconds} seconds")
    return result


def timestamp_fields(milliseconds: int) -> dict[str, int]:
    """The fields of a timestamp in milliseconds."""
    seconds, rest = divmod(milliseconds, 1000)
    return {"seconds": seconds, "nanos": rest * NANOS_PER_MS}


def decimal_of(message: Message) -> Decimal:
    """The number of a confluent.type.Decimal."""
    return scaled(int.from_bytes(message.value, "big", signed=True), message.scale)


def decimal_fields(value: Decimal, wanted: DecimalType) -> dict[str, object]:
    """The fields of a decimal; its precision is the number of its digits."""
    number = unscaled(value, wanted)
    digits = Decimal(number).adjusted() + 1
    return {"value": two_complement(number), "precision": digits, "scale": wanted.scale}
