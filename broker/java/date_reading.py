"""Parses strings by the elements of a pattern into fields.

Widths are exact, as in DateTimeFormatter. The lenient mode is that of SimpleDateFormat: numbers of
any width, names of any length, and the rest of the string is ignored.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from zoneinfo import available_timezones

from broker.java.date_names import FIRST_VALUES, NAMES
from broker.java.date_patterns import (
    Element,
    Fraction,
    Literal,
    LocalOffset,
    Name,
    Number,
    Offset,
    Padded,
    Section,
    Sign,
    Style,
    ZoneName,
)
from broker.java.time_zones import FixedZone, Zone, parse_offset, zone_of
from broker.java.zone_names import ZONES_BY_NAME

TEXT_MAX = 10_000
DIGITS = re.compile(r"[0-9]*", re.ASCII)
GMT_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?", re.ASCII)
ZONE_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?", re.ASCII)
SHORT_OFFSET = re.compile(r"[+-][0-9]{1,2}(?::?[0-9]{2}(?::?[0-9]{2})?)?", re.ASCII)
UNIVERSAL = re.compile(r"UTC|GMT|UT", re.IGNORECASE)
REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]*", re.ASCII)
ZONE_NAME = re.compile(
    "|".join(re.escape(each) for each in sorted(ZONES_BY_NAME, key=len, reverse=True)),
    re.IGNORECASE,
)


class NoMatch(ValueError):
    """The string does not match the pattern at an index."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@dataclass(slots=True)
class Fields:
    """The parsed fields: numbers by field, and the zone."""

    numbers: dict[str, int] = field(default_factory=dict)
    zone: Zone | None = None

    def put(self, name: str, value: int, place: int) -> None:
        """Add a number; a repeated field must have the same value."""
        if self.numbers.setdefault(name, value) != value:
            raise NoMatch(place)


# Parses a string at an index into the fields; returns the index after the parsed part.
Read = Callable[[str, int, Fields], int]


@dataclass(frozen=True, slots=True)
class ParseMode:
    """How strings are parsed."""

    lenient: bool = False
    ignore_case: bool = True


def reader(elements: tuple[Element, ...], reading: ParseMode) -> Callable[[str], Fields]:
    """A function that parses whole strings; ValueError names the index of a mismatch."""
    steps = _steps(elements, reading)

    def read(text: str) -> Fields:
        if len(text) > TEXT_MAX:
            raise ValueError(f"the string is longer than {TEXT_MAX} characters")
        fields, place = Fields(), 0
        try:
            for step in steps:
                place = step(text, place, fields)
        except NoMatch as error:
            raise ValueError(f"Text '{text}' could not be parsed at index {error.place}") from None
        if place < len(text) and not reading.lenient:
            raise ValueError(
                f"Text '{text}' could not be parsed, unparsed text found at index {place}"
            )
        return fields

    return read


def _steps(elements: tuple[Element, ...], reading: ParseMode) -> list[Read]:
    following = (*elements[1:], None)
    return [_reader(each, next_, reading) for each, next_ in zip(elements, following, strict=True)]


def _reader(element: Element, following: Element | None, reading: ParseMode) -> Read:
    match element:
        case Literal(text=text):
            return _literal(text, reading)
        case Number() | Fraction():
            return _digits(element, following, reading)
        case Name(field=name, style=style):
            return _name(name, style, reading)
        case Offset():
            return _offset(element)
        case LocalOffset():
            return _local_offset
        case ZoneName(style=style):
            return lambda text, place, fields: _zone(text, place, fields, named=style is not None)
        case Padded(element=inner, width=width):
            return _padded(_reader(inner, None, reading), width)
        case Section(elements=elements):
            return _section(_steps(elements, reading))


def _literal(wanted: str, reading: ParseMode) -> Read:
    lowered = wanted.lower() if reading.ignore_case else wanted

    def read(text: str, place: int, fields: Fields) -> int:
        end = place + len(wanted)
        if not text.startswith(wanted, place) and (
            not reading.ignore_case or text[place:end].lower() != lowered
        ):
            raise NoMatch(place)
        return end

    return read


def _digits(element: Number | Fraction, following: Element | None, reading: ParseMode) -> Read:
    if isinstance(element, Fraction):
        return _lenient_fraction if reading.lenient else _fraction(element.width)
    if reading.lenient:
        return _lenient_number(element, isinstance(following, Number | Fraction))
    return _number(element)


def _number(element: Number) -> Read:
    """The maximum number of digits, except those of adjacent numbers."""
    name, low, base = element.field, element.low, element.base or 0
    reserved, high = element.reserved, element.high + element.reserved
    allowed = _SIGN_CHARACTERS[element.sign]
    exceeds = element.sign is Sign.WHEN_WIDER

    def read(text: str, place: int, fields: Fields) -> int:
        start, sign = place, text[place : place + 1]
        signed = sign in allowed and sign != ""
        place += signed
        end = DIGITS.match(text, place, place + high).end()  # type: ignore[union-attr]
        if reserved:
            end = min(end, place + max(low, end - place - reserved))
        width = end - place
        if width < low:
            raise NoMatch(start)
        value = int(text[place:end])
        if signed and sign == "-":
            if value == 0:
                raise NoMatch(start)
            value = -value
        elif exceeds and (width > low) != signed:
            raise NoMatch(start)
        fields.put(name, value + base, start)
        return end

    return read


_SIGN_CHARACTERS = {Sign.NORMAL: "-", Sign.NEVER_NEGATIVE: "", Sign.WHEN_WIDER: "+-"}


def _lenient_number(element: Number, before_number: bool) -> Read:
    name = element.field
    # In SimpleDateFormat, y and u are YEAR, and two-digit years are near today.
    year = "LooseYear" if element.base is not None or element.low < 3 else "Year"
    if name in ("YearOfEra", "Year"):
        name = year
    width = element.low if before_number else 18

    def read(text: str, place: int, fields: Fields) -> int:
        start = place
        while text[place : place + 1].isspace():
            place += 1
        end = DIGITS.match(text, place, place + width).end()  # type: ignore[union-attr]
        if end == place:
            raise NoMatch(start)
        fields.numbers[name] = int(text[place:end])
        return end

    return read


def _fraction(width: int) -> Read:
    def read(text: str, place: int, fields: Fields) -> int:
        end = DIGITS.match(text, place, place + width).end()  # type: ignore[union-attr]
        if end - place < width:
            raise NoMatch(place)
        fields.put("NanoOfSecond", int(text[place:end]) * 10 ** (9 - width), place)
        return end

    return read


def _lenient_fraction(text: str, place: int, fields: Fields) -> int:
    end = DIGITS.match(text, place, place + 9).end()  # type: ignore[union-attr]
    if end == place:
        raise NoMatch(place)
    fields.numbers["NanoOfSecond"] = int(text[place:end]) * 1_000_000
    return end


def _name(name: str, style: Style, reading: ParseMode) -> Read:
    first = FIRST_VALUES[name]
    if style is Style.NARROW and name != "Era" and not reading.lenient:
        return _number(Number(name))  # J may be January, June or July
    styles = (Style.FULL, Style.SHORT) if reading.lenient else (style,)
    values = {
        each: number + first
        for wanted in styles
        for number, each in enumerate(NAMES.get((name, wanted), ()))
    }
    longest_first = sorted(values, key=len, reverse=True)
    flags = re.IGNORECASE if reading.ignore_case else 0
    names = re.compile("|".join(map(re.escape, longest_first)), flags)
    numbers = {each.lower(): value for each, value in values.items()}

    def read(text: str, place: int, fields: Fields) -> int:
        found = names.match(text, place)
        if found is None:
            raise NoMatch(place)
        fields.put(name, numbers[found[0].lower()], place)
        return found.end()

    return read


def _offset(element: Offset) -> Read:
    colon = ":" if element.colon else ""
    minutes = rf"{colon}([0-9]{{2}})"
    seconds = rf"(?:{colon}([0-9]{{2}}))?" if element.seconds else "()"
    form = re.compile(
        rf"([+-])([0-9]{{2}})(?:{minutes}{seconds})" + ("" if element.minutes else "?"), re.ASCII
    )
    zero = re.compile(re.escape(element.zero), re.IGNORECASE)

    def read(text: str, place: int, fields: Fields) -> int:
        found = zero.match(text, place)
        if found is not None:
            fields.put("OffsetSeconds", 0, place)
            return found.end()
        found = form.match(text, place)
        if found is None:
            raise NoMatch(place)
        fields.put("OffsetSeconds", _seconds(found, place), place)
        return found.end()

    return read


def _seconds(found: re.Match[str], place: int) -> int:
    hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:])
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or hours > 18 or total > 18 * 3600:
        raise NoMatch(place)
    return -total if found[1] == "-" else total


def _local_offset(text: str, place: int, fields: Fields) -> int:
    if text[place : place + 3].upper() != "GMT":
        raise NoMatch(place)
    found = GMT_OFFSET.match(text, place + 3)
    fields.put("OffsetSeconds", _seconds(found, place) if found else 0, place)
    return found.end() if found else place + 3


def _zone(text: str, place: int, fields: Fields, *, named: bool) -> int:
    zone, end = _zone_at(text, place, named=named)
    if fields.zone is not None and fields.zone != zone:
        raise NoMatch(place)
    fields.zone = zone
    return end


def _zone_at(text: str, place: int, *, named: bool) -> tuple[Zone, int]:
    fixed = ZONE_OFFSET.match(text, place)
    if fixed is not None:
        return _fixed(fixed[0], "", place), fixed.end()
    universal = UNIVERSAL.match(text, place)
    if universal is not None:
        offset = SHORT_OFFSET.match(text, universal.end())
        if offset is not None:
            return _fixed(offset[0], universal[0].upper(), place), offset.end()
        if not text[universal.end() : universal.end() + 1].isalpha():
            return zone_of(universal[0].upper()), universal.end()
    name = ZONE_NAME.match(text, place) if named else None
    region = _region_at(text, place)
    if name is not None and (region is None or name.end() >= region[1]):
        return zone_of(ZONES_BY_NAME[name[0].lower()]), name.end()
    if region is not None:
        return region
    if text[place : place + 1] in ("Z", "z"):
        return zone_of("Z"), place + 1
    raise NoMatch(place)


def _fixed(offset: str, prefix: str, place: int) -> Zone:
    try:
        seconds = parse_offset(offset)
    except ValueError:
        raise NoMatch(place) from None
    return zone_of(prefix + offset) if not prefix or seconds else FixedZone(prefix, 0)


def _region_at(text: str, place: int) -> tuple[Zone, int] | None:
    """The longest region name at an index of the string."""
    found = REGION.match(text, place, place + 60)
    if found is None:
        return None
    known = _regions()
    for end in range(found.end(), place + 1, -1):
        name = known.get(text[place:end].lower())
        if name is not None:
            return zone_of(name), end
    return None


@cache
def _regions() -> dict[str, str]:
    """All regions by lower-case names."""
    return {name.lower(): name for name in available_timezones() if len(name) > 1}


def _padded(inner: Read, width: int) -> Read:
    def read(text: str, place: int, fields: Fields) -> int:
        end = place + width
        start = place
        while start < end and text[start : start + 1] == " ":
            start += 1
        if end > len(text) or inner(text[:end], start, fields) != end:
            raise NoMatch(place)
        return end

    return read


def _section(steps: list[Read]) -> Read:
    def read(text: str, place: int, fields: Fields) -> int:
        tried = Fields(dict(fields.numbers), fields.zone)
        end = place
        try:
            for step in steps:
                end = step(text, end, tried)
        except NoMatch:
            return place
        fields.numbers, fields.zone = tried.numbers, tried.zone
        return end

    return read
