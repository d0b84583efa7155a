"""Moment: a date, a time or both, with the values of all fields."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.java.time_zones import DAY_SECONDS, Zone
from broker.java.times import date_of, days_of

DAY_NANOS = DAY_SECONDS * 1_000_000_000
# Day 0 of the modified Julian calendar is 40587 days before 1970.
JULIAN_EPOCH = 40_587


@dataclass(slots=True)
class Moment:
    """A local date and time; unknown parts are None."""

    days: int | None
    nanos: int | None
    zone: Zone | None = None
    instant: int = 0  # seconds since 1970, if there is a zone
    year: int = 0
    month: int = 0
    day: int = 0

    def __post_init__(self) -> None:
        if self.days is not None:
            self.year, self.month, self.day = date_of(self.days)


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def day_of_week(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def local_day_of_week(days: int) -> int:
    """1 for Sunday to 7 for Saturday."""
    return (days + 4) % 7 + 1


def first_week(days_of_first: int) -> int:
    """The Sunday of the week with the first day of a month or year."""
    return days_of_first - (local_day_of_week(days_of_first) - 1)


def week_based_year(days: int) -> int:
    """The year of the week of a day."""
    # The first week has January 1, so the year is that of the week's last day.
    return date_of(days + 7 - local_day_of_week(days))[0]


def week_of_year(days: int) -> int:
    """The number of the week in its week-based year."""
    return (days - first_week(days_of(week_based_year(days), 1, 1))) // 7 + 1


def _of_day(moment: Moment) -> int:
    assert moment.nanos is not None
    return moment.nanos


def _days(moment: Moment) -> int:
    assert moment.days is not None
    return moment.days


Getter = Callable[[Moment], int]

DATE_FIELDS: dict[str, Getter] = {
    "Era": lambda each: int(each.year > 0),
    "Year": lambda each: each.year,
    "YearOfEra": lambda each: each.year if each.year > 0 else 1 - each.year,
    "MonthOfYear": lambda each: each.month,
    "DayOfMonth": lambda each: each.day,
    "DayOfYear": lambda each: _days(each) - days_of(each.year, 1, 1) + 1,
    "DayOfWeek": lambda each: day_of_week(_days(each)),
    "QuarterOfYear": lambda each: (each.month + 2) // 3,
    "AlignedWeekOfMonth": lambda each: (each.day - 1) // 7 + 1,
    "LocalDayOfWeek": lambda each: local_day_of_week(_days(each)),
    "WeekBasedYear": lambda each: week_based_year(_days(each)),
    "WeekOfWeekBasedYear": lambda each: week_of_year(_days(each)),
    "WeekOfMonth": lambda each: (_days(each) - first_week(_days(each) - each.day + 1)) // 7 + 1,
    "ModifiedJulianDay": lambda each: _days(each) + JULIAN_EPOCH,
}
TIME_FIELDS: dict[str, Getter] = {
    "HourOfDay": lambda each: _of_day(each) // 3_600_000_000_000,
    "ClockHourOfDay": lambda each: _of_day(each) // 3_600_000_000_000 or 24,
    "HourOfAmPm": lambda each: _of_day(each) // 3_600_000_000_000 % 12,
    "ClockHourOfAmPm": lambda each: _of_day(each) // 3_600_000_000_000 % 12 or 12,
    "AmPmOfDay": lambda each: _of_day(each) // 43_200_000_000_000,
    "MinuteOfHour": lambda each: _of_day(each) // 60_000_000_000 % 60,
    "SecondOfMinute": lambda each: _of_day(each) // 1_000_000_000 % 60,
    "NanoOfSecond": lambda each: _of_day(each) % 1_000_000_000,
    "NanoOfDay": _of_day,
    "MilliOfDay": lambda each: _of_day(each) // 1_000_000,
}
