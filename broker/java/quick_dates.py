"""A fast path for common patterns: numbers of fixed width, literals, and an offset at the end.

Strings and values that it does not support are left to the general code; the results are the same.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from broker.java.date_patterns import Element, Fraction, Literal, Number, Offset
from broker.java.time_zones import DAY_SECONDS, parse_offset
from broker.java.times import date_of, days_of

# Local seconds since 1970, milliseconds, and the offset if the string has one.
QuickRead = Callable[[str], tuple[int, int, int | None] | None]
# From days since 1970 and milliseconds of the day.
QuickWrite = Callable[[int, int], str | None]

# In the order of the combined numbers.
WIDTHS = {
    "Year": 4,
    "MonthOfYear": 2,
    "DayOfMonth": 2,
    "HourOfDay": 2,
    "MinuteOfHour": 2,
    "SecondOfMinute": 2,
    "NanoOfSecond": 0,
}
DATE = {"Year", "MonthOfYear", "DayOfMonth"}

cached_days = lru_cache(maxsize=4096)(days_of)
cached_date = lru_cache(maxsize=4096)(date_of)


def _field(element: Element) -> str | None:
    """The field of a number of its usual width."""
    if isinstance(element, Fraction):
        return "NanoOfSecond"
    if not isinstance(element, Number) or element.base is not None:
        return None
    name = "Year" if element.field == "YearOfEra" else element.field
    return name if WIDTHS.get(name) == element.low else None


@lru_cache(maxsize=4096)
def _seconds(offset: str) -> int | None:
    try:
        return 0 if offset == "Z" else parse_offset(offset)
    except ValueError:
        return None


def quick_reader(elements: tuple[Element, ...]) -> QuickRead | None:
    """A fast timestamp parser; None if the pattern is not supported."""
    form, names = "", []
    fraction = 0
    *body, last = elements or (Literal(""),)
    if not isinstance(last, Offset):
        body.append(last)
    for element in body:
        name = _field(element)
        if isinstance(element, Literal):
            form += re.escape(element.text)
        elif name is None or name in names:
            return None
        else:
            fraction = element.width if isinstance(element, Fraction) else fraction
            form += rf"([0-9]{{{WIDTHS[name] or fraction}}})"
            names.append(name)
    if not set(names) >= DATE or (isinstance(last, Offset) and last.zero == "+00"):
        return None
    has_offset = isinstance(last, Offset)
    if isinstance(last, Offset):
        form += _offset_form(last)
    return _reader(re.compile(form, re.ASCII), names, fraction, has_offset=has_offset)


def _offset_form(offset: Offset) -> str:
    colon = ":" if offset.colon else ""
    minutes = f"{colon}[0-9]{{2}}"
    return f"({'Z|' if offset.zero == 'Z' else ''}[+-][0-9]{{2}}{minutes})"


def _reader(
    form: re.Pattern[str], names: list[str], fraction: int, *, has_offset: bool
) -> QuickRead:
    count = len(names)
    # Missing numbers are the zero that is appended to the parsed ones.
    order = [names.index(each) if each in names else count for each in WIDTHS]
    at_year, at_month, at_day, at_hour, at_minute, at_second, at_fraction = order
    scale = 10**fraction

    def read(text: str) -> tuple[int, int, int | None] | None:
        found = form.fullmatch(text)
        if found is None:
            return None
        offset: int | None = None
        if has_offset:
            *digits, last = found.groups()
            offset = _seconds(last)
            if offset is None:
                return None
            numbers = [*map(int, digits), 0]
        else:
            numbers = [*map(int, found.groups()), 0]
        hour, minute, second = numbers[at_hour], numbers[at_minute], numbers[at_second]
        if hour > 23 or minute > 59 or second > 59 or not numbers[at_year]:
            return None
        try:
            days = cached_days(numbers[at_year], numbers[at_month], numbers[at_day])
        except ValueError:
            return None
        local = days * DAY_SECONDS + hour * 3600 + minute * 60 + second
        return local, numbers[at_fraction] * 1000 // scale, offset

    return read


def quick_writer(elements: tuple[Element, ...]) -> QuickWrite | None:
    """A fast formatter for the years 1 to 9999; None if the pattern is not supported."""
    form, names = "", []
    scale = 1
    for element in elements:
        name = _field(element)
        if isinstance(element, Literal):
            form += element.text.replace("%", "%%")
        elif name is None:
            return None
        elif isinstance(element, Fraction):
            if element.width > 3 or "NanoOfSecond" in names:
                return None
            form += f"%0{element.width}d"
            scale = 10 ** (3 - element.width)
            names.append(name)
        else:
            form += f"%0{WIDTHS[name]}d"
            names.append(name)
    order = [list(WIDTHS).index(each) for each in names]

    def write(days: int, milliseconds: int) -> str | None:
        date = cached_date(days)
        if not 0 < date[0] < 10_000:
            return None
        seconds, fraction = divmod(milliseconds, 1000)
        minutes, second = divmod(seconds, 60)
        parts = (*date, minutes // 60, minutes % 60, second, fraction // scale)
        return form % tuple([parts[each] for each in order])

    return write
