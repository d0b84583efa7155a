"""Formats dates and times by the elements of a pattern."""

from collections.abc import Callable

from broker.java.date_moments import DATE_FIELDS, TIME_FIELDS, Getter, Moment
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
from broker.java.time_zones import Zone, localized_offset
from broker.java.zone_names import long_name

Write = Callable[[Moment], str]


class Unsupported(ValueError):
    """A field that the value does not have."""


def writer(elements: tuple[Element, ...]) -> Write:
    """A function that formats all elements."""
    parts = [_writer(each) for each in elements]

    def write(moment: Moment) -> str:
        return "".join([part(moment) for part in parts])

    return write


def _writer(element: Element) -> Write:
    match element:
        case Literal(text=text):
            return lambda moment: text
        case Number():
            return _number(element)
        case Fraction(width=width):
            nano = _getter("NanoOfSecond")
            return lambda moment: f"{nano(moment):09d}"[:width]
        case Name(field=field, style=style):
            return _name(field, style)
        case Offset():
            return lambda moment: _offset(element, _offset_of(moment))
        case LocalOffset(full=full):
            return lambda moment: localized_offset(_offset_of(moment), full=full)
        case ZoneName(style=style):
            return _zone_name(style)
        case Padded(element=inner, width=width):
            return _padded(_writer(inner), width)
        case Section(elements=elements):
            return _section(writer(elements))


def _getter(field: str) -> Getter:
    if field in DATE_FIELDS:
        of_date = DATE_FIELDS[field]

        def get(moment: Moment) -> int:
            if moment.days is None:
                raise Unsupported(f"Unsupported field: {field}")
            return of_date(moment)

        return get
    of_time = TIME_FIELDS[field]

    def get_time(moment: Moment) -> int:
        if moment.nanos is None:
            raise Unsupported(f"Unsupported field: {field}")
        return of_time(moment)

    return get_time


def _number(element: Number) -> Write:
    get, low, high, sign = _getter(element.field), element.low, element.high, element.sign
    if element.base is not None:
        return lambda moment: f"{abs(get(moment)) % 100:02d}"
    if sign is Sign.NEVER_NEGATIVE and low == high == 2:
        return lambda moment: f"{get(moment):02d}"

    def write(moment: Moment) -> str:
        value = get(moment)
        digits = str(abs(value)).zfill(low)
        if len(digits) > high or (value < 0 and sign is Sign.NEVER_NEGATIVE):
            raise ValueError(f"Field {element.field} cannot be printed as the value is {value}")
        if value < 0:
            return "-" + digits
        return "+" + digits if sign is Sign.WHEN_WIDER and len(digits) > low else digits

    return write


def _name(field: str, style: Style) -> Write:
    get, names, first = _getter(field), NAMES[field, style], FIRST_VALUES[field]
    return lambda moment: names[get(moment) - first]


def _zone(moment: Moment) -> Zone:
    if moment.zone is None:
        raise Unsupported("Unable to extract ZoneId from temporal")
    return moment.zone


def _offset_of(moment: Moment) -> int:
    if moment.zone is None:
        raise Unsupported("Unsupported field: OffsetSeconds")
    return moment.zone.offset_at(moment.instant)


def _offset(element: Offset, offset: int) -> str:
    minutes, seconds = divmod(abs(offset), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours and not minutes and not (seconds and element.seconds):
        return element.zero
    colon = ":" if element.colon else ""
    text = f"{'-' if offset < 0 else '+'}{hours:02d}"
    if element.minutes or minutes:
        text += f"{colon}{minutes:02d}"
    return text + (f"{colon}{seconds:02d}" if element.seconds and seconds else "")


def _zone_name(style: Style | None) -> Write:
    if style is None:
        return lambda moment: _zone(moment).name
    if style is Style.FULL:
        return lambda moment: long_name(_zone(moment), moment.instant)
    return lambda moment: _zone(moment).short_name(moment.instant)


def _padded(inner: Write, width: int) -> Write:
    def write(moment: Moment) -> str:
        text = inner(moment)
        if len(text) > width:
            raise ValueError(f"Cannot print as output of {len(text)} characters exceeds {width}")
        return text.rjust(width)

    return write


def _section(inner: Write) -> Write:
    def write(moment: Moment) -> str:
        try:
            return inner(moment)
        except Unsupported:
            return ""

    return write
