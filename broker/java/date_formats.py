"""Parsers and formatters of dates and times, created once per pattern.

    parse = timestamp_parser("yyyy-MM-dd HH:mm", "Europe/Paris")
    parse("2024-02-29 10:00")     milliseconds since 1970

Patterns are those of java.time.format.DateTimeFormatter; names are English, in any case. Fields
that a pattern does not have are those of 1970-01-01T00:00. ValueError describes an invalid pattern,
zone or string.

Strings without a pattern, in (possibly partial) ISO 8601, are parsed by broker/java/times.py.
"""

from collections.abc import Callable
from functools import lru_cache

from broker.java.date_moments import DATE_FIELDS, DAY_NANOS, Moment
from broker.java.date_patterns import read_pattern
from broker.java.date_reading import Fields, ParseMode, reader
from broker.java.date_resolving import Resolved, lenient_date, partial_date, resolve, time_of
from broker.java.date_writing import writer
from broker.java.quick_dates import quick_reader, quick_writer
from broker.java.time_zones import DAY_SECONDS, FixedZone, Zone, zone_of
from broker.java.times import DAY_MS, date_of

PATTERNS_MAX = 1000
TIMESTAMP_MIN, TIMESTAMP_MAX = -(2**63), 2**63 - 1

Parser = Callable[[str], int]
# The current time determines the century of two-digit years.
LenientParser = Callable[[str, Callable[[], int]], int]
Formatter = Callable[[int], str]


@lru_cache(maxsize=PATTERNS_MAX)
def timestamp_parser(pattern: str, zone: str = "UTC") -> Parser:
    """Parses strings to milliseconds since 1970; the zone is the default."""
    elements, default = read_pattern(pattern), zone_of(zone)
    read, quick = reader(elements, ParseMode()), quick_reader(elements)
    # An ambiguous local time has the offset of 1970.
    usual = default.offset_at(default.instant_of(0))

    def parse(text: str) -> int:
        if quick is not None and (found := quick(text)) is not None:
            local, milliseconds, offset = found
            instant = default.instant_of(local, usual) if offset is None else local - offset
            return instant * 1000 + milliseconds
        return parse_slowly(text)

    def parse_slowly(text: str) -> int:
        fields = read(text)
        resolved = resolve(fields.numbers)
        days, nanos = _completed(resolved)
        local = days * DAY_SECONDS + nanos // 1_000_000_000
        offset = fields.numbers.get("OffsetSeconds")
        if offset is not None:
            instant = local - offset
        elif fields.zone is not None:
            instant = fields.zone.instant_of(local)
        else:
            instant = default.instant_of(local, usual)
        return _in_range(instant * 1000 + nanos // 1_000_000 % 1000)

    return parse


def _completed(resolved: Resolved) -> tuple[int, int]:
    days = partial_date(resolved.fields) if resolved.days is None else resolved.days
    nanos = time_of(resolved.fields) if resolved.nanos is None else resolved.nanos
    if not 0 <= nanos < DAY_NANOS:
        raise ValueError("Invalid value for HourOfDay (valid values 0 - 23): 24")
    return days, nanos


def _in_range(milliseconds: int) -> int:
    if not TIMESTAMP_MIN <= milliseconds <= TIMESTAMP_MAX:
        raise ValueError("the time is out of range for TIMESTAMP")
    return milliseconds


@lru_cache(maxsize=PATTERNS_MAX)
def date_parser(pattern: str) -> Parser:
    """Parses strings with a whole date to days since 1970."""
    read = reader(read_pattern(pattern), ParseMode())

    def parse(text: str) -> int:
        days = resolve(read(text).numbers).days
        if days is None:
            raise ValueError(f"Text '{text}' could not be parsed: Unable to obtain LocalDate")
        return days

    return parse


@lru_cache(maxsize=PATTERNS_MAX)
def lenient_date_parser(pattern: str) -> LenientParser:
    """Parses strings to days since 1970, like SimpleDateFormat; times must be midnight."""
    elements = read_pattern(pattern)
    read, quick = reader(elements, ParseMode(lenient=True)), quick_reader(elements)

    def parse(text: str, now_ms: Callable[[], int]) -> int:
        if quick is not None and (found := quick(text)) is not None:
            local, milliseconds, offset = found
            return _whole_days(local - (offset or 0), milliseconds)
        return parse_slowly(text, now_ms)

    def parse_slowly(text: str, now_ms: Callable[[], int]) -> int:
        fields = read(text)
        numbers = _with_year(fields.numbers, now_ms)
        days = resolve(numbers).days if "WeekBasedYear" in numbers else None
        if days is None:
            days = lenient_date(numbers)
        clock = {name: number for name, number in numbers.items() if name not in DATE_FIELDS}
        clock.pop("OffsetSeconds", None)
        nanos = time_of(resolve(clock).fields)
        local = days * DAY_SECONDS + nanos // 1_000_000_000
        return _whole_days(_zone_of(fields).instant_of(local), nanos % 1_000_000_000)

    return parse


def _whole_days(instant: int, fraction: int) -> int:
    days, seconds = divmod(instant, DAY_SECONDS)
    if seconds or fraction:
        raise ValueError("Date format contains time field.")
    return days


def _zone_of(fields: Fields) -> Zone:
    if "OffsetSeconds" in fields.numbers:
        return FixedZone("", fields.numbers["OffsetSeconds"])
    return fields.zone or zone_of("GMT")


def _with_year(numbers: dict[str, int], now_ms: Callable[[], int]) -> dict[str, int]:
    """Two-digit years are between 80 years ago and 20 years ahead."""
    result = dict(numbers)
    year = result.pop("LooseYear", None)
    if year is not None:
        if year < 100:
            first = date_of(now_ms() // DAY_MS)[0] - 80
            year = first + (year - first) % 100
        result["Year"] = year
    return result


@lru_cache(maxsize=PATTERNS_MAX)
def time_parser(pattern: str) -> Parser:
    """Parses strings to milliseconds of the day; the pattern must not have date fields."""
    read = reader(read_pattern(pattern), ParseMode())

    def parse(text: str) -> int:
        resolved = resolve(read(text).numbers)
        if resolved.fields.keys() & DATE_FIELDS.keys():
            raise ValueError("Time format contains date field.")
        if resolved.nanos is None:
            raise ValueError(f"Text '{text}' could not be parsed: Unable to obtain LocalTime")
        return resolved.nanos // 1_000_000

    return parse


@lru_cache(maxsize=PATTERNS_MAX)
def timestamp_formatter(pattern: str, zone: str = "UTC") -> Formatter:
    """Formats milliseconds since 1970."""
    elements, place = read_pattern(pattern), zone_of(zone)
    write, quick = writer(elements), quick_writer(elements)

    def form(milliseconds: int) -> str:
        instant, fraction = divmod(milliseconds, 1000)
        days, seconds = divmod(instant + place.offset_at(instant), DAY_SECONDS)
        if quick is not None and (text := quick(days, seconds * 1000 + fraction)) is not None:
            return text
        nanos = seconds * 1_000_000_000 + fraction * 1_000_000
        return write(Moment(days, nanos, place, instant))

    return form


@lru_cache(maxsize=PATTERNS_MAX)
def date_formatter(pattern: str) -> Formatter:
    """Formats days since 1970."""
    write = writer(read_pattern(pattern))
    return lambda days: write(Moment(days, None))


@lru_cache(maxsize=PATTERNS_MAX)
def time_formatter(pattern: str) -> Formatter:
    """Formats milliseconds of the day."""
    write = writer(read_pattern(pattern))

    def form(milliseconds: int) -> str:
        if not 0 <= milliseconds < DAY_MS:
            raise ValueError(f"Invalid value for NanoOfDay: {milliseconds * 1_000_000}")
        return write(Moment(None, milliseconds * 1_000_000))

    return form
