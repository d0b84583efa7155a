"""Time zones by the names that java.time.ZoneId knows: regions, UTC, GMT+2, +02:00, Z.

Local times are seconds since 1970 in the zone. A local time in a gap is moved forward by the length
of the gap; an ambiguous one is the earlier, unless a preferred offset is valid.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

from broker.java.times import date_of, days_of

DAY_SECONDS = 24 * 60 * 60
OFFSET_MAX_SECONDS = 18 * 60 * 60
# The years of datetime, except the first and last: offsets must not exceed its range.
YEAR_MIN, YEAR_MAX = 2, 9998
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_LOCAL = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone
# Since 1973, offsets and their changes are in whole minutes.
WHOLE_MINUTES_SINCE = 94_694_400
OFFSET = re.compile(
    r"([+-])(?:([0-9])|([0-9]{2})(?::?([0-9]{2}))?|([0-9]{2})([0-9]{2})([0-9]{2})"
    r"|([0-9]{2}):([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
PREFIXED = re.compile(r"(UTC|GMT|UT)([+-].*)?", re.DOTALL)
REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)


class Zone(Protocol):
    """A time zone."""

    @property
    def name(self) -> str:
        """The name of the zone."""
        ...

    def offset_at(self, instant: int) -> int:
        """The UTC offset in seconds at an instant, which is in seconds since 1970."""
        ...

    def instant_of(self, local: int, preferred: int | None = None) -> int:
        """The instant of a local time."""
        ...

    def short_name(self, instant: int) -> str:
        """The zone's abbreviation at an instant."""
        ...


@dataclass(frozen=True, slots=True)
class FixedZone:
    """A zone with a fixed offset."""

    name: str
    seconds: int

    def offset_at(self, instant: int) -> int:
        return self.seconds

    def instant_of(self, local: int, preferred: int | None = None) -> int:
        return local - self.seconds

    def short_name(self, instant: int) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class RegionZone:
    """A zone of the time zone database."""

    name: str
    rules: ZoneInfo

    def offset_at(self, instant: int) -> int:
        """From the time zone database; its last rules continue forever."""
        if instant >= WHOLE_MINUTES_SINCE:
            return _offset_in_minute(self.rules, instant // 60)
        return _offset(self.rules, instant)

    def instant_of(self, local: int, preferred: int | None = None) -> int:
        """The instant of a local time; see the module for gaps and ambiguous times."""
        if local >= WHOLE_MINUTES_SINCE:
            first, second = _offsets_in_local_minute(self.rules, local // 60)
        else:
            first, second = _local_offsets(self.rules, local)
        # In a gap, the first offset is the one before it: the result is later by the gap.
        return local - (second if second < first and preferred == second else first)

    def short_name(self, instant: int) -> str:
        """The abbreviation, or the offset if there is none."""
        found = _at(self.rules, instant).tzname() or ""
        return found if found.isalpha() else localized_offset(self.offset_at(instant), full=True)


def _at(rules: ZoneInfo, instant: int) -> datetime:
    return (EPOCH + timedelta(seconds=_near(instant))).astimezone(rules)


def _offset(rules: ZoneInfo, instant: int) -> int:
    offset = _at(rules, instant).utcoffset()
    assert offset is not None, "regions always have an offset"
    return offset // timedelta(seconds=1)


def _local_offsets(rules: ZoneInfo, local: int) -> tuple[int, int]:
    """The possible offsets of a local time, or those around a gap."""
    moment = (EPOCH_LOCAL + timedelta(seconds=_near(local))).replace(tzinfo=rules)
    first, second = moment.utcoffset(), moment.replace(fold=1).utcoffset()
    assert first is not None, "regions always have an offset"
    assert second is not None, "regions always have an offset"
    return first // timedelta(seconds=1), second // timedelta(seconds=1)


@lru_cache(maxsize=16_384)
def _offset_in_minute(rules: ZoneInfo, minute: int) -> int:
    return _offset(rules, minute * 60)


@lru_cache(maxsize=16_384)
def _offsets_in_local_minute(rules: ZoneInfo, minute: int) -> tuple[int, int]:
    return _local_offsets(rules, minute * 60)


def _near(seconds: int) -> int:
    """The same second in a year of datetime with the same rules."""
    year = date_of(seconds // DAY_SECONDS)[0]
    if YEAR_MIN <= year <= YEAR_MAX:
        return seconds
    if year > YEAR_MAX:
        # The calendar repeats after 400 years.
        return seconds - ((year - 2400) // 400) * 146_097 * DAY_SECONDS
    return days_of(YEAR_MIN, 1, 1) * DAY_SECONDS


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Zone:
    """The zone of an id; ValueError if it is invalid."""
    if name == "Z":
        return FixedZone("Z", 0)
    if name[:1] in ("+", "-"):
        seconds = parse_offset(name)
        return FixedZone(offset_name(seconds), seconds)
    prefixed = PREFIXED.fullmatch(name)
    if prefixed is not None:
        seconds = parse_offset(prefixed[2]) if prefixed[2] else 0
        return FixedZone(prefixed[1] + (offset_name(seconds) if seconds else ""), seconds)
    if len(name) > 100 or REGION.fullmatch(name) is None:
        raise ValueError(f"Invalid ID for region-based ZoneId, invalid format: {name[:100]}")
    try:
        return RegionZone(name, ZoneInfo(name))
    except (KeyError, ValueError, OSError):
        raise ValueError(f"Unknown time-zone ID: {name}") from None


def parse_offset(text: str) -> int:
    """Seconds of +h, +hh, +hh:mm, +hhmm, +hh:mm:ss or +hhmmss."""
    found = OFFSET.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid ID for ZoneOffset, invalid format: {text[:100]}")
    numbers = [int(each) for each in found.groups()[1:] if each is not None]
    hours, minutes, seconds = (*numbers, 0, 0)[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > OFFSET_MAX_SECONDS:
        raise ValueError(f"Zone offset not in valid range: {text}")
    return -total if found[1] == "-" else total


def offset_name(seconds: int) -> str:
    """An offset as Java names it: +02:00, -03:30, Z."""
    return offset_text(seconds) if seconds else "Z"


def offset_text(seconds: int) -> str:
    """+hh:mm, with seconds if they are not zero."""
    sign = "-" if seconds < 0 else "+"
    minutes, rest = divmod(abs(seconds), 60)
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" + (f":{rest:02d}" if rest else "")


def localized_offset(seconds: int, *, full: bool) -> str:
    """GMT+2 or GMT+02:00; GMT for the offset 0."""
    if not seconds:
        return "GMT"
    if full:
        return "GMT" + offset_text(seconds)
    sign = "-" if seconds < 0 else "+"
    minutes, rest = divmod(abs(seconds), 60)
    text = f"GMT{sign}{minutes // 60}"
    if minutes % 60 or rest:
        text += f":{minutes % 60:02d}"
    return text + (f":{rest:02d}" if rest else "")
