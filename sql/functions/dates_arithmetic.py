"""Functions that add durations to dates and times; units are those of java.util.concurrent."""

from broker.java.times import DAY_MS
from sql.functions.registry import Family

durations = Family("DATE / TIME")

# Nanoseconds per unit.
UNITS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "DAYS": 86_400_000_000_000,
}
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DAY_NANOS = DAY_MS * 1_000_000


def _nanoseconds(unit: str, count: int) -> int:
    size = UNITS.get(unit) or UNITS.get(unit + "S")
    if size is None:
        raise ValueError(f"{unit} is not a unit of time: use one of {', '.join(UNITS)}")
    return size * count


def _milliseconds(unit: str, count: int) -> int:
    """Whole milliseconds, truncated towards zero."""
    nanoseconds = _nanoseconds(unit, count)
    return nanoseconds // 1_000_000 if nanoseconds >= 0 else -(-nanoseconds // 1_000_000)


def _wrapped(milliseconds: int) -> int:
    """With the overflow of 64-bit sums in Java."""
    return (milliseconds - LONG_MIN) % 2**64 + LONG_MIN


@durations.scalar(
    "timestampadd(unit INTERVALUNIT, count INT, timestamp TIMESTAMP) -> TIMESTAMP",
    "Adds a number of units to a timestamp.",
)
def timestamp_add(unit: str, count: int, milliseconds: int) -> int:
    return _wrapped(milliseconds + _milliseconds(unit, count))


@durations.scalar(
    "timestampsub(unit INTERVALUNIT, count INT, timestamp TIMESTAMP) -> TIMESTAMP",
    "Subtracts a number of units from a timestamp.",
)
def timestamp_subtract(unit: str, count: int, milliseconds: int) -> int:
    return _wrapped(milliseconds - _milliseconds(unit, count))


@durations.scalar(
    "dateadd(unit INTERVALUNIT, count INT, date DATE) -> DATE", "Adds a number of units to a date."
)
def date_add(unit: str, count: int, days: int) -> int:
    """A fraction of a day is truncated towards 1970."""
    milliseconds = days * DAY_MS + _milliseconds(unit, count)
    return milliseconds // DAY_MS if milliseconds >= 0 else -(-milliseconds // DAY_MS)


@durations.scalar(
    "datesub(unit INTERVALUNIT, count INT, date DATE) -> DATE",
    "Subtracts a number of units from a date.",
)
def date_subtract(unit: str, count: int, days: int) -> int:
    """A fraction of a day is truncated towards 1970."""
    return date_add(unit, -count, days)


@durations.scalar(
    "timeadd(unit INTERVALUNIT, count INT, time TIME) -> TIME",
    "Adds a number of units to a time; it wraps around at midnight.",
)
def time_add(unit: str, count: int, milliseconds: int) -> int:
    nanoseconds = min(max(_nanoseconds(unit, count), LONG_MIN), LONG_MAX)
    return (milliseconds * 1_000_000 + nanoseconds) % DAY_NANOS // 1_000_000


@durations.scalar(
    "timesub(unit INTERVALUNIT, count INT, time TIME) -> TIME",
    "Subtracts a number of units from a time; it wraps around at midnight.",
)
def time_subtract(unit: str, count: int, milliseconds: int) -> int:
    return time_add(unit, -count, milliseconds)
