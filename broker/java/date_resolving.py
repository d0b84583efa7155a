"""Resolves parsed fields to a date and a time, like java.time's SMART resolver style.

February 30 becomes the last day of February, hour 24 midnight of the next day. Redundant fields
must agree.
"""

from dataclasses import dataclass

from broker.java.date_moments import (
    DATE_FIELDS,
    DAY_NANOS,
    JULIAN_EPOCH,
    Moment,
    day_of_week,
    first_week,
    is_leap,
)
from broker.java.times import DAYS_OF_MONTHS, date_of, days_of

YEAR_MAX = 999_999_999
HOUR_NANOS = 3_600_000_000_000
MINUTE_NANOS = 60_000_000_000
SECOND_NANOS = 1_000_000_000

RANGES = {
    "Era": (0, 1),
    "Year": (-YEAR_MAX, YEAR_MAX),
    "YearOfEra": (1, YEAR_MAX + 1),
    "WeekBasedYear": (-YEAR_MAX, YEAR_MAX),
    "MonthOfYear": (1, 12),
    "DayOfMonth": (1, 31),
    "DayOfYear": (1, 366),
    "DayOfWeek": (1, 7),
    "LocalDayOfWeek": (1, 7),
    "QuarterOfYear": (1, 4),
    "AlignedWeekOfMonth": (1, 5),
    "WeekOfWeekBasedYear": (1, 54),
    "WeekOfMonth": (1, 6),
    "ModifiedJulianDay": (-365_000_000_000, 365_000_000_000),
    "HourOfDay": (0, 24),
    "ClockHourOfDay": (0, 24),
    "HourOfAmPm": (0, 11),
    "ClockHourOfAmPm": (0, 12),
    "AmPmOfDay": (0, 1),
    "MinuteOfHour": (0, 59),
    "SecondOfMinute": (0, 59),
    "NanoOfSecond": (0, SECOND_NANOS - 1),
    "NanoOfDay": (0, DAY_NANOS - 1),
    "MilliOfDay": (0, 86_399_999),
    "OffsetSeconds": (-18 * 3600, 18 * 3600),
}


@dataclass(slots=True)
class Resolved:
    """A date and a time, as far as they are known, and the remaining fields."""

    days: int | None
    nanos: int | None
    fields: dict[str, int]


def resolve(numbers: dict[str, int]) -> Resolved:
    """The date and time of the fields; ValueError if they are contradictory."""
    fields = dict(numbers)
    for name, value in fields.items():
        low, high = RANGES[name]
        if not low <= value <= high:
            raise ValueError(f"Invalid value for {name} (valid values {low} - {high}): {value}")
    _resolve_year(fields)
    _resolve_clock_hours(fields)
    days = _date(fields)
    nanos, excess = _time(fields)
    if days is not None:
        _check_date(days, fields)
        if nanos is not None:
            days += excess
    return Resolved(days, nanos, fields)


def _resolve_year(fields: dict[str, int]) -> None:
    """Convert the year of an era to a proleptic year."""
    year = fields.pop("YearOfEra", None)
    if year is None:
        return
    found = year if fields.get("Era", 1) else 1 - year
    if fields.setdefault("Year", found) != found:
        raise ValueError(f"Conflict found: Year {found} differs from Year {fields['Year']}")


def _resolve_clock_hours(fields: dict[str, int]) -> None:
    """Convert hours that start at 1, and hours of half a day."""
    _put(fields, "HourOfDay", fields.pop("ClockHourOfDay", None), 24)
    _put(fields, "HourOfAmPm", fields.pop("ClockHourOfAmPm", None), 12)
    if "AmPmOfDay" in fields and "HourOfAmPm" in fields:
        hour = fields.pop("AmPmOfDay") * 12 + fields.pop("HourOfAmPm")
        _put(fields, "HourOfDay", hour, 24)


def _put(fields: dict[str, int], name: str, value: int | None, limit: int) -> None:
    if value is not None and fields.setdefault(name, value % limit) != value % limit:
        raise ValueError(f"Conflict found: {name} {value % limit} differs from {fields[name]}")


def _date(fields: dict[str, int]) -> int | None:
    if "ModifiedJulianDay" in fields:
        return fields["ModifiedJulianDay"] - JULIAN_EPOCH
    year = fields.get("Year")
    if year is not None and "MonthOfYear" in fields and "DayOfMonth" in fields:
        month = fields["MonthOfYear"]
        return days_of(year, month, min(fields["DayOfMonth"], length_of_month(year, month)))
    if year is not None and "DayOfYear" in fields:
        if fields["DayOfYear"] == 366 and not is_leap(year):
            raise ValueError(f"Invalid date 'DayOfYear 366' as '{year}' is not a leap year")
        return days_of(year, 1, 1) + fields["DayOfYear"] - 1
    return _date_of_week(fields)


def _date_of_week(fields: dict[str, int]) -> int | None:
    weekday = fields.get("LocalDayOfWeek")
    if weekday is None and "DayOfWeek" in fields:
        weekday = fields["DayOfWeek"] % 7 + 1
    if weekday is None:
        return None
    if "WeekBasedYear" in fields and "WeekOfWeekBasedYear" in fields:
        first, week = days_of(fields["WeekBasedYear"], 1, 1), fields["WeekOfWeekBasedYear"]
    elif {"Year", "MonthOfYear", "WeekOfMonth"} <= fields.keys():
        first = days_of(fields["Year"], fields["MonthOfYear"], 1)
        week = fields["WeekOfMonth"]
    else:
        return None
    return first_week(first) + (week - 1) * 7 + weekday - 1


def _check_date(days: int, fields: dict[str, int]) -> None:
    """Check that all date fields agree with the date."""
    moment = Moment(days, None)
    for name in fields.keys() & DATE_FIELDS.keys() - {"DayOfMonth", "Year", "MonthOfYear", "Era"}:
        if DATE_FIELDS[name](moment) != fields[name]:
            raise ValueError(
                f"Conflict found: Field {name} {DATE_FIELDS[name](moment)} "
                f"differs from {name} {fields[name]}"
            )


def _time(fields: dict[str, int]) -> tuple[int | None, int]:
    """The time of day, and the number of excess days."""
    if "NanoOfDay" in fields:
        return fields["NanoOfDay"], 0
    if "MilliOfDay" in fields:
        return fields["MilliOfDay"] * 1_000_000 + fields.get("NanoOfSecond", 0) % 1_000_000, 0
    if "HourOfDay" not in fields:
        return None, 0
    given = [name in fields for name in ("MinuteOfHour", "SecondOfMinute", "NanoOfSecond")]
    if given != sorted(given, reverse=True):
        return None, 0  # seconds without minutes are not a time
    nanos = time_of(fields)
    if nanos > DAY_NANOS or (nanos == DAY_NANOS and fields["HourOfDay"] != 24):
        raise ValueError("Invalid value for HourOfDay (valid values 0 - 23): 24")
    return nanos % DAY_NANOS, nanos // DAY_NANOS


def time_of(fields: dict[str, int]) -> int:
    """The time of day in nanoseconds; missing fields are zero."""
    hour = fields.get("HourOfDay")
    if hour is None:
        hour = fields.get("AmPmOfDay", 0) * 12 + fields.get("HourOfAmPm", 0)
    return (
        hour * HOUR_NANOS
        + fields.get("MinuteOfHour", 0) * MINUTE_NANOS
        + fields.get("SecondOfMinute", 0) * SECOND_NANOS
        + fields.get("NanoOfSecond", 0)
    )


def partial_date(fields: dict[str, int]) -> int:
    """The date of incomplete fields; missing ones are those of January 1, 1970."""
    days = 0
    if "DayOfWeek" in fields:
        days += fields["DayOfWeek"] - day_of_week(0)
    year, month, day = date_of(days)
    day = fields.get("DayOfMonth", day)
    if day > length_of_month(year, month):
        raise ValueError(f"Invalid date: the month has no day {day}")
    if "DayOfYear" in fields:
        if fields["DayOfYear"] == 366:
            raise ValueError("Leap day cannot be parsed without supplying the year field")
        year, month, day = date_of(days_of(year, 1, 1) + fields["DayOfYear"] - 1)
    month = fields.get("MonthOfYear", month)
    day = min(day, length_of_month(year, month))
    year = fields.get("Year", year)
    return days_of(year, month, min(day, length_of_month(year, month)))


def lenient_date(fields: dict[str, int]) -> int:
    """The date of fields that may be out of range: month 13 is January of the next year."""
    year = fields.get("Year", 1970)
    if "Era" in fields and not fields["Era"]:
        year = 1 - year
    if abs(year) > YEAR_MAX or fields.get("MonthOfYear", 1) > YEAR_MAX:
        raise ValueError(f"Invalid value for Year: {year}")
    if "DayOfYear" in fields and "MonthOfYear" not in fields:
        return days_of(year, 1, 1) + fields["DayOfYear"] - 1
    years, month = divmod(fields.get("MonthOfYear", 1) - 1, 12)
    return days_of(year + years, month + 1, 1) + fields.get("DayOfMonth", 1) - 1


def length_of_month(year: int, month: int) -> int:
    return DAYS_OF_MONTHS[month - 1] + (month == 2 and is_leap(year))
