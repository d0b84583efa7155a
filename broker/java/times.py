"""Formats and parses times as Java does; ValueError if a string is not a time.

    TIMESTAMP 2024-02-29T10:00:00.000, also with a zone (+0200, Z) or partial (2024, 2024-02-29T10)
    DATE      2024-02-29, also partial (2024-02)
    TIME      10:00 or 10:00:30, also with fractions of a second

The calendar is computed here: Java supports years that datetime does not.
"""

import re

DAY_MS = 24 * 60 * 60 * 1000
DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?", re.ASCII)
TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?", re.ASCII)
TIME_OF_TIMESTAMP = re.compile(
    r"(?:([0-9]{2})(?::(?:([0-9]{2})(?::(?:([0-9]{2})(?:\.([0-9]{0,3}))?)?)?)?)?)?Z?", re.ASCII
)
ZONE = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?", re.ASCII)
ZONE_MAX_SECONDS = 18 * 60 * 60
DAYS_OF_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date; ValueError if the date does not exist."""
    if not 1 <= month <= 12:
        raise ValueError("a year has 12 months")
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= DAYS_OF_MONTHS[month - 1] + leap:
        raise ValueError("the month has no such day")
    # Years begin in March here, so that the leap day is the last day.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (
        era * 146_097
        + year_of_era * 365
        + year_of_era // 4
        - year_of_era // 100
        + day_of_year
        - 719_468
    )


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of days since 1970."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def date_text(days: int) -> str:
    """A date as LocalDate.toString prints it."""
    year, month, day = date_of(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def time_text(milliseconds: int) -> str:
    """A time as ksqlDB casts it: without fractions, and without seconds if they are zero."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if not 0 <= hours < 24:
        raise ValueError("a day has 24 hours")
    return f"{hours:02d}:{minutes:02d}" + (f":{seconds:02d}" if seconds else "")


def timestamp_text(milliseconds: int) -> str:
    """A timestamp as ksqlDB casts it, in UTC."""
    days, rest = divmod(milliseconds, DAY_MS)
    seconds, fraction = divmod(rest, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{date_text(days)}T{hours:02d}:{minutes:02d}:{seconds:02d}.{fraction:03d}"


def parse_date(text: str) -> int:
    """Days since 1970 of a date; month and day may be missing."""
    found = DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"Failed to parse date '{text}'")
    year, month, day = (int(each or 1) for each in found.groups())
    return days_of(year, month, day)


def parse_time(text: str) -> int:
    """Milliseconds of the day; seconds may be missing."""
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"Failed to parse time '{text}'")
    hours, minutes, seconds, fraction = found.groups()
    return _milliseconds(hours, minutes, seconds, fraction)


def parse_timestamp(text: str) -> int:
    """Milliseconds since 1970 of a date, or of a date and a time with or without a zone."""
    date, sign, time = text.partition("T")
    if not sign:
        return parse_date(text) * DAY_MS
    place = max(time.find("+"), time.find("-"))
    zone = time[place:] if place >= 0 else ""
    found = TIME_OF_TIMESTAMP.fullmatch(time.removesuffix(zone))
    whole = DATE.fullmatch(date)
    if found is None or whole is None or whole[3] is None:
        raise ValueError(f"Failed to parse timestamp '{text}'")
    is_end_of_day = found[1] == "24" and not any(int(each or 0) for each in found.groups()[1:])
    of_day = DAY_MS if is_end_of_day else _milliseconds(*found.groups())
    return parse_date(date) * DAY_MS + of_day - _zone(zone) * 1000


def _milliseconds(
    hours: str | None, minutes: str | None, seconds: str | None, fraction: str | None
) -> int:
    numbers = int(hours or 0), int(minutes or 0), int(seconds or 0)
    if numbers[0] > 23 or numbers[1] > 59 or numbers[2] > 59:
        raise ValueError("the day has no such time")
    thousandths = int(((fraction or "") + "000")[:3])
    return (numbers[0] * 3600 + numbers[1] * 60 + numbers[2]) * 1000 + thousandths


def _zone(text: str) -> int:
    """The UTC offset of a zone in seconds."""
    if not text.strip():
        return 0
    found = ZONE.fullmatch(text)
    if found is None:
        raise ValueError(f"Failed to parse timezone '{text}'")
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    if seconds > ZONE_MAX_SECONDS:
        raise ValueError(f"Failed to parse timezone '{text}'")
    return -seconds if found[1] == "-" else seconds
