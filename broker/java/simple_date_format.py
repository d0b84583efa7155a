"""SimpleDateFormat: Java's older, lenient date patterns, in UTC and English.

    G era            y year           Y year of the week   M L month           w week of year
    W week of month  D day of year    d day                F weekday's number  E weekday
    u 1 is Monday    a AM, PM         H 0-23  k 1-24       K 0-11  h 1-12      m s S
    z UTC, GMT+1:00  Z +0100          X +01  XX +0100  XXX +01:00, or Z        'text'

Parsing skips spaces before numbers, lets numbers overflow, and ignores the rest of the string.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.clock import Clock, SystemClock
from broker.java.lenient_dates import CalendarFields, day_of_week, milliseconds_of, week_of_year
from broker.java.times import DAY_MS, date_of, days_of

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ERAS = ("BC", "AD")
HALF_DAYS = ("AM", "PM")
LETTERS = "GyMdkHmsSEDFwWahKzZYuXL"
# Two-digit years are from 80 years ago to 20 years ahead.
YEARS_BACK = 80


class InvalidDate(ValueError):
    """A string that does not match the pattern."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A run of one letter or, with an empty `letter`, a literal."""

    letter: str
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        return self.letter in "yYdkHmsSDFwWhKu" or (self.letter in "ML" and self.count <= 2)


def _items(pattern: str) -> list[_Item]:
    """The parts of a pattern; ValueError, in Java's words, if it is invalid."""
    items: list[_Item] = []
    place = 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        assert found is not None
        place = found.end()
        token = found[0]
        if token == "'":
            raise ValueError("Unterminated quote")
        if token[0] == "'":
            items.append(_Item("", 0, token[1:-1].replace("''", "'") or "'"))
        elif not (token[0].isascii() and token[0].isalpha()):
            items.append(_Item("", 0, token))
        elif token[0] not in LETTERS:
            raise ValueError(f"Illegal pattern character '{token[0]}'")
        elif token[0] == "X" and len(token) > 3:
            raise ValueError(f"invalid ISO 8601 format: length={len(token)}")
        else:
            items.append(_Item(token[0], len(token)))
    return items


# A quote, a quoted string, an unterminated quote, a run of one letter, or other characters.
_TOKEN = re.compile(r"''|'(?:[^']|'')+'|'|([A-Za-z])\1*|[^A-Za-z']+", re.DOTALL)


class SimpleDateFormat:
    """Formats and parses dates with one pattern."""

    def __init__(self, pattern: str, clock: Clock | None = None) -> None:
        """ValueError for an invalid pattern; the clock determines the century of short years."""
        self.pattern = pattern
        items = _items(pattern)
        self._writers = [_writer(item) for item in items]
        following = [*items[1:], _Item("", 0)]
        self._century = _century((clock or SystemClock()).now_ms())
        self._readers = [
            _reader(item, _width(item, after), self._century)
            for item, after in zip(items, following, strict=True)
        ]

    def format(self, milliseconds: int) -> str:
        """Format milliseconds since 1970."""
        moment = _Moment(milliseconds)
        return "".join([write(moment) for write in self._writers])

    def parse(self, text: str) -> int:
        """Parse a string to milliseconds since 1970; InvalidDate if it does not match."""
        fields = CalendarFields()
        place = 0
        for read in self._readers:
            place = read(text, place, fields)
        result = milliseconds_of(fields)
        if fields.ambiguous_year is not None and result < self._century.start_ms:
            fields.add(fields.ambiguous_year, 100)
            result = milliseconds_of(fields)
        return result


@dataclass(frozen=True, slots=True)
class _Century:
    """The hundred years of two-digit years."""

    start_ms: int
    start_year: int

    def year(self, digits: int) -> int:
        """The year with these last two digits."""
        century, start = divmod(self.start_year, 100)
        return 100 * century + digits + (100 if digits < start else 0)


def _century(now_ms: int) -> _Century:
    days, of_day = divmod(now_ms, DAY_MS)
    year, month, day = date_of(days)
    start_year = year - YEARS_BACK
    start = days_of(start_year, month, 1) + day - 1
    return _Century(start * DAY_MS + of_day, start_year)


class _Moment:
    """The fields of a point in time."""

    __slots__ = ("day", "days", "month", "of_day", "year")

    def __init__(self, milliseconds: int) -> None:
        self.days, self.of_day = divmod(milliseconds, DAY_MS)
        self.year, self.month, self.day = date_of(self.days)

    @property
    def year_of_era(self) -> int:
        return self.year if self.year > 0 else 1 - self.year

    @property
    def hour(self) -> int:
        return self.of_day // 3_600_000

    @property
    def week_of_month(self) -> int:
        return (self.day - 1 + day_of_week(self.days - self.day + 1)) // 7 + 1


_Write = Callable[[_Moment], str]

_NUMBERS: dict[str, Callable[[_Moment], int]] = {
    "y": lambda moment: moment.year_of_era,
    "Y": lambda moment: week_of_year(moment.days)[0],
    "M": lambda moment: moment.month,
    "L": lambda moment: moment.month,
    "w": lambda moment: week_of_year(moment.days)[1],
    "W": lambda moment: moment.week_of_month,
    "D": lambda moment: moment.days - days_of(moment.year, 1, 1) + 1,
    "d": lambda moment: moment.day,
    "F": lambda moment: (moment.day - 1) // 7 + 1,
    "u": lambda moment: day_of_week(moment.days) or 7,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "m": lambda moment: moment.of_day // 60_000 % 60,
    "s": lambda moment: moment.of_day // 1000 % 60,
    "S": lambda moment: moment.of_day % 1000,
}


def _writer(item: _Item) -> _Write:
    match item:
        case _Item(letter="", text=text):
            return lambda moment: text
        case _Item(letter="y" | "Y", count=2):
            year = _NUMBERS[item.letter]
            return lambda moment: f"{year(moment) % 100:02d}"
        case _Item(letter="M" | "L", count=count) if count > 2:
            length = 3 if count == 3 else None
            return lambda moment: MONTHS[moment.month - 1][:length]
        case _Item(letter="E", count=count):
            length = 3 if count <= 3 else None
            return lambda moment: WEEKDAYS[day_of_week(moment.days)][:length]
        case _Item(letter="G"):
            return lambda moment: ERAS[moment.year > 0]
        case _Item(letter="a"):
            return lambda moment: HALF_DAYS[moment.hour >= 12]
        case _Item(letter="z" | "Z" | "X"):
            zone = _zone_name(item)
            return lambda moment: zone
        case _:
            number, padded = _NUMBERS[item.letter], f"%0{item.count}d"
            return lambda moment: padded % number(moment)


def _zone_name(item: _Item) -> str:
    if item.letter == "z":
        return "UTC" if item.count <= 3 else "Coordinated Universal Time"
    return "+0000" if item.letter == "Z" else "Z"


# Parses a string at an index, and returns the index after the parsed part.
_Read = Callable[[str, int, CalendarFields], int]

_INTEGER = re.compile(r"-?[0-9]+")
_OFFSETS = {
    "Z": re.compile(r"([+-])([0-9]{2})([0-9]{2})"),
    "X": re.compile(r"([+-])([0-9]{2})"),
    "XX": re.compile(r"([+-])([0-9]{2})([0-9]{2})"),
    "XXX": re.compile(r"([+-])([0-9]{2}):([0-9]{2})"),
}
_GMT = re.compile(r"GMT(?:([+-])([0-9]{1,2}):([0-9]{2}))?", re.IGNORECASE)
# UTC offsets in hours of zone names in strings; Java supports more names.
_ZONES = {
    "UTC": 0.0,
    "UT": 0.0,
    "WET": 0.0,
    "BST": 1.0,
    "CET": 1.0,
    "WEST": 1.0,
    "CEST": 2.0,
    "EET": 2.0,
    "EEST": 3.0,
    "MSK": 3.0,
    "IST": 5.5,
    "JST": 9.0,
    "AEST": 10.0,
    "AEDT": 11.0,
    "EST": -5.0,
    "EDT": -4.0,
    "CST": -6.0,
    "CDT": -5.0,
    "MST": -7.0,
    "MDT": -6.0,
    "PST": -8.0,
    "PDT": -7.0,
    "AKST": -9.0,
    "AKDT": -8.0,
    "HST": -10.0,
    "COORDINATED UNIVERSAL TIME": 0.0,
    "GREENWICH MEAN TIME": 0.0,
}
_NAMES: dict[str, Sequence[str]] = {"M": MONTHS, "L": MONTHS, "E": WEEKDAYS}
_WHOLE_NAMES: dict[str, Sequence[str]] = {"G": ERAS, "a": HALF_DAYS}


def _width(item: _Item, following: _Item) -> int | None:
    """The width of a number: exact if another number follows immediately."""
    return item.count if following.letter and following.is_number else None


def _reader(item: _Item, width: int | None, century: _Century) -> _Read:
    match item.letter:
        case "":
            return _literal_reader(item.text)
        case "z" | "Z" | "X":
            return _zone_reader(item)
        case letter if letter in _NAMES and not item.is_number:
            names = _NAMES[letter]
            numbers_by_name = {name: at for at, name in enumerate(names)}
            numbers_by_name |= {name[:3]: at for at, name in enumerate(names)}
            first = 1 if letter in "ML" else 0
            return _name_reader("M" if letter == "L" else letter, numbers_by_name, first)
        case "G" | "a":
            numbers_by_name = {name: at for at, name in enumerate(_WHOLE_NAMES[item.letter])}
            return _name_reader(item.letter, numbers_by_name, 0)
        case _:
            return _number_reader(item, width, century)


def _literal_reader(wanted: str) -> _Read:
    def read(text: str, place: int, fields: CalendarFields) -> int:
        if not text.startswith(wanted, place):
            raise InvalidDate(text)
        return place + len(wanted)

    return read


def _skip_spaces(text: str, place: int) -> int:
    while text.startswith((" ", "\t"), place):
        place += 1
    return place


def _name_reader(letter: str, names: dict[str, int], first: int) -> _Read:
    longest_first = sorted(names, key=len, reverse=True)

    def read(text: str, place: int, fields: CalendarFields) -> int:
        for name in longest_first:
            end = place + len(name)
            if text[place:end].lower() == name.lower():
                fields.put(letter, names[name] + first)
                return end
        raise InvalidDate(text)

    return read


def _number_reader(item: _Item, width: int | None, century: _Century) -> _Read:
    put = _putter(item, century)

    def read(text: str, place: int, fields: CalendarFields) -> int:
        end = len(text) if width is None else place + width
        if end > len(text):
            raise InvalidDate(text)
        start = _skip_spaces(text, place)
        found = _INTEGER.match(text, start, end)
        if found is None:
            raise InvalidDate(text)
        put(found[0], fields)
        return found.end()

    return read


def _putter(item: _Item, century: _Century) -> Callable[[str, CalendarFields], None]:
    """A function that stores the digits of a field."""
    match item.letter:
        case "y" | "Y" if item.count <= 2:
            return lambda digits, fields: _put_year(item.letter, digits, century, fields)
        case "k":
            return lambda digits, fields: fields.put("H", 0 if digits == "24" else int(digits))
        case "h":
            return lambda digits, fields: fields.put("h", 0 if digits == "12" else int(digits))
        case "K":
            return lambda digits, fields: fields.put("h", int(digits))
        case "u":
            return lambda digits, fields: fields.put("E", _weekday(int(digits)))
        case "L":
            return lambda digits, fields: fields.put("M", int(digits))
        case letter:
            return lambda digits, fields: fields.put(letter, int(digits))


def _weekday(number: int) -> int:
    """The weekday counted from Sunday; other numbers are kept."""
    return number % 7 if 1 <= number <= 7 else (number - 1) % 7


def _put_year(letter: str, digits: str, century: _Century, fields: CalendarFields) -> None:
    if len(digits) != 2 or digits[0] == "-":
        fields.put(letter, int(digits))
        return
    year = century.year(int(digits))
    fields.put(letter, year)
    fields.ambiguous_year = letter if year == century.start_year else None


def _zone_reader(item: _Item) -> _Read:
    offset = _OFFSETS["X" * item.count if item.letter == "X" else "Z"]

    def read(text: str, place: int, fields: CalendarFields) -> int:
        found = None if item.letter == "X" else _GMT.match(text, place)
        place = _skip_spaces(text, place)
        found = found or offset.match(text, place)
        if found is not None:
            fields.put("Z", _seconds(found, text))
            return found.end()
        if item.letter == "X":
            return _utc(text, place, fields)
        return _named_zone(text, place, fields)

    return read


def _utc(text: str, place: int, fields: CalendarFields) -> int:
    if not text.startswith("Z", place):
        raise InvalidDate(text)
    fields.put("Z", 0)
    return place + 1


def _seconds(found: re.Match[str], text: str) -> int:
    sign, hours, minutes = found[1], found[2], found[3] if found.re.groups > 2 else None
    if sign is None:
        return 0
    if int(hours) > 23 or int(minutes or 0) > 59:
        raise InvalidDate(text)
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    return -seconds if sign == "-" else seconds


def _named_zone(text: str, place: int, fields: CalendarFields) -> int:
    for name in sorted(_ZONES, key=len, reverse=True):
        end = place + len(name)
        if text[place:end].upper() == name:
            fields.put("Z", int(_ZONES[name] * 3600))
            return end
    raise InvalidDate(text)
