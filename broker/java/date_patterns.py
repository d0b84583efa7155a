"""Parses patterns of dates and times of java.time.format.DateTimeFormatter.

    yyyy-MM-dd'T'HH:mm:ss.SSS[X]

A run of one letter is a field, a quoted string is a literal, [...] is optional, ppp before a field
pads it. A number of variable width leaves the digits of adjacent numbers of fixed width to them, so
that yyyyMMdd can be parsed. Weeks begin on Sunday, and the first one has January 1.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

PATTERN_MAX = 1000
DEPTH_MAX = 20
TOKENS = re.compile(r"([A-Za-z])\1*|'+|\[|\]|[{}#]|[^A-Za-z'\[\]{}#]+")


class Sign(Enum):
    """Whether a number may have a plus or minus sign."""

    NORMAL = "only minus"
    NEVER_NEGATIVE = "none"
    WHEN_WIDER = "minus, and plus if it is wider than its minimum width"


class Style(Enum):
    """The length of a name."""

    SHORT = 0
    FULL = 1
    NARROW = 2


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal string."""

    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A field as a number; `reserved` digits belong to the adjacent numbers after it."""

    field: str
    low: int = 1
    high: int = 19
    sign: Sign = Sign.NORMAL
    reserved: int = 0
    # For two-digit years: the first possible year.
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Fraction:
    """The fraction of a second."""

    width: int


@dataclass(frozen=True, slots=True)
class Name:
    """A field as a name."""

    field: str
    style: Style


@dataclass(frozen=True, slots=True)
class Offset:
    """+hh, +hhmm, +hh:mm and similar; `zero` is the offset 0."""

    colon: bool
    minutes: bool  # whether minutes are required
    seconds: bool  # whether seconds are allowed
    zero: str


@dataclass(frozen=True, slots=True)
class LocalOffset:
    """GMT+2 or GMT+02:00."""

    full: bool


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A zone id or, with a style, a zone name."""

    style: Style | None = None


@dataclass(frozen=True, slots=True)
class Padded:
    """An element that is padded with spaces."""

    element: "Element"
    width: int


@dataclass(frozen=True, slots=True)
class Section:
    """Optional elements."""

    elements: tuple["Element", ...]


Element = Literal | Number | Fraction | Name | Offset | LocalOffset | ZoneName | Padded | Section


def read_pattern(pattern: str) -> tuple[Element, ...]:
    """The elements of a pattern; ValueError if it is invalid."""
    if len(pattern) > PATTERN_MAX:
        raise ValueError(f"the pattern is longer than {PATTERN_MAX} characters")
    return _Reader(pattern).read()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._tokens = [found[0] for found in TOKENS.finditer(pattern)]
        self._place = 0

    def read(self) -> tuple[Element, ...]:
        """All elements; a missing closing bracket is added."""
        levels: list[list[Element]] = [[]]
        while (token := self._next()) is not None:
            if token == "[":
                levels.append([])
                if len(levels) > DEPTH_MAX:
                    raise ValueError(f"the pattern is nested deeper than {DEPTH_MAX} levels")
            elif token == "]":
                if len(levels) == 1:
                    raise ValueError("Pattern invalid as it contains ] without previous [")
                self._close(levels)
            else:
                levels[-1].append(self._element(token))
        while len(levels) > 1:
            self._close(levels)
        return _with_reserved_digits(levels[0])

    def _close(self, levels: list[list[Element]]) -> None:
        inner = levels.pop()
        if inner:
            levels[-1].append(Section(_with_reserved_digits(inner)))

    def _next(self) -> str | None:
        if self._place == len(self._tokens):
            return None
        self._place += 1
        return self._tokens[self._place - 1]

    def _element(self, token: str) -> Element:
        if token[0] == "'":
            return self._quoted(len(token))
        if token in "{}#":
            raise ValueError(f"Pattern includes reserved character: '{token}'")
        if not token.isalpha():
            return Literal(token)
        if token[0] == "p":
            following = self._next()
            if following is None or not following.isalpha() or following[0] == "p":
                raise ValueError("Pad letter 'p' must be followed by valid pad pattern")
            return Padded(_field(following), len(token))
        return _field(token)

    def _quoted(self, quotes: int) -> Literal:
        """The string after opening quotes: two quotes are a literal one, one quote ends it."""
        if quotes == 2:
            return Literal("'")
        if quotes % 2 == 0:
            return Literal("'" * (quotes // 2 - 1))
        parts = ["'" * (quotes // 2)]
        while (token := self._next()) is not None:
            if token[0] != "'":
                parts.append(token)
                continue
            parts.append("'" * (len(token) // 2))
            if len(token) % 2:
                return Literal("".join(parts))
        raise ValueError("Pattern ends with an incomplete string literal")


def _with_reserved_digits(elements: list[Element]) -> tuple[Element, ...]:
    found = list(elements)
    active: int | None = None  # a number that leaves digits to the next ones
    for place, element in enumerate(found):
        width = _exact_width(element)
        if isinstance(element, Number | Fraction):
            leading = None if active is None else found[active]
            if active is not None and isinstance(leading, Number) and width is not None:
                found[active] = replace(leading, reserved=leading.reserved + width)
                continue
            active = place
        else:
            active = None
    return tuple(found)


def _exact_width(element: Element) -> int | None:
    if isinstance(element, Fraction):
        return element.width
    if isinstance(element, Number) and element.sign is Sign.NEVER_NEGATIVE:
        return element.low if element.low == element.high else None
    return None


def _field(token: str) -> Element:
    letter, count = token[0], len(token)
    make = _FIELDS.get(letter)
    if make is None:
        raise ValueError(f"Unknown pattern letter: {letter}")
    return make(letter, count)


def _too_many(letter: str) -> ValueError:
    return ValueError(f"Too many pattern letters: {letter}")


def _year(field: str) -> Callable[[str, int], Element]:
    def make(letter: str, count: int) -> Element:
        if count > 19:
            raise _too_many(letter)
        if count == 2:
            return Number(field, 2, 2, Sign.NEVER_NEGATIVE, base=2000)
        return Number(field, count, 19, Sign.NORMAL if count < 4 else Sign.WHEN_WIDER)

    return make


def _number(field: str, widest: int = 2) -> Callable[[str, int], Element]:
    def make(letter: str, count: int) -> Element:
        if count > widest:
            raise _too_many(letter)
        if count == 1:
            return Number(field)
        return Number(field, count, widest, Sign.NEVER_NEGATIVE)

    return make


def _long_number(field: str, sign: Sign = Sign.NEVER_NEGATIVE) -> Callable[[str, int], Element]:
    def make(letter: str, count: int) -> Element:
        if count > 19:
            raise _too_many(letter)
        return Number(field, count, 19, sign)

    return make


def _number_or_name(field: str) -> Callable[[str, int], Element]:
    number = _number(field)

    def make(letter: str, count: int) -> Element:
        return number(letter, count) if count <= 2 else _name(field)(letter, count)

    return make


def _name(field: str) -> Callable[[str, int], Element]:
    def make(letter: str, count: int) -> Element:
        if count > 5:
            raise _too_many(letter)
        return Name(field, Style.SHORT if count <= 3 else Style(count - 3))

    return make


def _half_day(letter: str, count: int) -> Element:
    if count > 1:
        raise _too_many(letter)
    return Name("AmPmOfDay", Style.SHORT)


def _standalone_day(letter: str, count: int) -> Element:
    if count == 2:
        raise ValueError(f'Invalid pattern "{letter * 2}"')
    return _number_or_name("DayOfWeek")(letter, count) if count > 2 else Number("LocalDayOfWeek")


def _local_day(letter: str, count: int) -> Element:
    return (
        _name("DayOfWeek")(letter, count) if count > 2 else _number("LocalDayOfWeek")(letter, count)
    )


def _fraction(letter: str, count: int) -> Element:
    if count > 9:
        raise _too_many(letter)
    return Fraction(count)


def _offset(letter: str, count: int) -> Element:
    if letter == "Z":
        if count == 4:
            return LocalOffset(full=True)
        if count > 5:
            raise _too_many(letter)
        return Offset(True, True, True, "Z") if count == 5 else Offset(False, True, False, "+0000")
    if count > 5:
        raise _too_many(letter)
    colon = count in (3, 5)
    zero = "Z" if letter == "X" else "+00" if count == 1 else "+00:00" if colon else "+0000"
    return Offset(colon, count > 1, count > 3, zero)


def _local_offset(letter: str, count: int) -> Element:
    if count not in (1, 4):
        raise ValueError(f"Pattern letter count must be 1 or 4: {letter}")
    return LocalOffset(full=count == 4)


def _zone_id(letter: str, count: int) -> Element:
    if count != 2:
        raise ValueError(f"Pattern letter count must be 2: {letter}")
    return ZoneName()


def _zone_name(letter: str, count: int) -> Element:
    if count > 4:
        raise _too_many(letter)
    return ZoneName(Style.FULL if count == 4 else Style.SHORT)


_FIELDS: dict[str, Callable[[str, int], Element]] = {
    "G": _name("Era"),
    "u": _year("Year"),
    "y": _year("YearOfEra"),
    "Y": _year("WeekBasedYear"),
    "Q": _number_or_name("QuarterOfYear"),
    "q": _number_or_name("QuarterOfYear"),
    "M": _number_or_name("MonthOfYear"),
    "L": _number_or_name("MonthOfYear"),
    "w": _number("WeekOfWeekBasedYear"),
    "W": _number("WeekOfMonth", widest=1),
    "d": _number("DayOfMonth"),
    "D": _number("DayOfYear", widest=3),
    "F": _number("AlignedWeekOfMonth", widest=1),
    "g": _long_number("ModifiedJulianDay", Sign.NORMAL),
    "E": _name("DayOfWeek"),
    "e": _local_day,
    "c": _standalone_day,
    "a": _half_day,
    "H": _number("HourOfDay"),
    "k": _number("ClockHourOfDay"),
    "K": _number("HourOfAmPm"),
    "h": _number("ClockHourOfAmPm"),
    "m": _number("MinuteOfHour"),
    "s": _number("SecondOfMinute"),
    "S": _fraction,
    "A": _long_number("MilliOfDay"),
    "n": _long_number("NanoOfSecond"),
    "N": _long_number("NanoOfDay"),
    "V": _zone_id,
    "v": _zone_name,
    "z": _zone_name,
    "O": _local_offset,
    "X": _offset,
    "x": _offset,
    "Z": _offset,
}
