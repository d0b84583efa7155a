"""Formats and parses numbers as Java does; ValueError if a string is not a number."""

import re
from base64 import b64decode
from ctypes import c_float
from decimal import (
    Decimal,
)
from math import isfinite

INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
DOUBLE = re.compile(r"([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?")
HEX_DOUBLE = re.compile(
    r"([+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]{1,9})[fFdD]?"
)
SPECIAL_DOUBLES = {
    sign + name: value if sign != "-" else -value
    for sign in ("", "+", "-")
    for name, value in (("NaN", float("nan")), ("Infinity", float("inf")))
}
# The characters that Java's String.trim removes.
CONTROLS_AND_SPACE = "".join(map(chr, range(33)))
# Larger exponents would produce endless zeros in plain notation.
EXPONENT_MAX = 10_000


def double_text(number: float) -> str:
    """A double as Double.toString prints it: 1.0, 1.0E10, 4.9E-324, NaN, -Infinity."""
    return _floating_text(number, repr(number))


def float_text(number: float) -> str:
    """A 32-bit float as Float.toString of Java 19 prints it: 0.1, which no double equals."""
    if not isfinite(number):
        return double_text(number)
    # The fewest digits that identify the 32-bit float.
    candidates = (f"{number:.{digits}g}" for digits in range(1, 10))
    shortest = next(
        (text for text in candidates if c_float(float(text)).value == number), repr(number)
    )
    return _floating_text(number, repr(float(shortest)))


def _floating_text(number: float, text: str) -> str:
    """Java's format of the shortest digits, which are Python's."""
    if 0.001 <= abs(number) < 10_000_000 or number == 0:
        return text
    if not isfinite(number):
        return text.replace("inf", "Infinity").replace("nan", "NaN")
    sign, text = ("-", text[1:]) if number < 0 else ("", text)
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    if len(digits) == 1:
        # Java prints at least two digits: 4.9E-324, not 5.0E-324.
        mantissa, _, power = f"{abs(number):.1e}".partition("e")
        return f"{sign}{mantissa}E{int(power)}"
    return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"


def as_double(value: object) -> float:
    """A column's value as a double; integers are accepted, too."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise ValueError(f"{type(value).__name__} is not DOUBLE")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too large for DOUBLE") from None


def parse_integer(text: str, low: int, high: int) -> int:
    """Like Integer.parseInt and Long.parseLong: only digits and a sign."""
    if INTEGER.fullmatch(text) is None:
        raise ValueError("the string is not an integer")
    return in_range(int(text), low, high)


def in_range(number: int, low: int, high: int) -> int:
    """The number; ValueError if it is out of range."""
    if not low <= number <= high:
        raise ValueError("the number is out of range")
    return number


def parse_double(text: str) -> float:
    """Like Double.parseDouble: surrounding spaces and a type suffix are allowed."""
    if text.isascii() and text[-1:].isdigit() and "_" not in text:
        # Python parses these the same; its names of infinity end with letters.
        try:
            return float(text)
        except ValueError:
            pass
    trimmed = text.strip(CONTROLS_AND_SPACE)
    found = DOUBLE.fullmatch(trimmed)
    if found is not None:
        return float(found[1])
    if trimmed in SPECIAL_DOUBLES:
        return SPECIAL_DOUBLES[trimmed]
    found = HEX_DOUBLE.fullmatch(trimmed)
    if found is None:
        raise ValueError("the string is not a number")
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return float("-inf" if trimmed.startswith("-") else "inf")


def decimal_text(number: Decimal) -> str:
    """A decimal as BigDecimal.toPlainString prints it, including trailing zeros."""
    if not number.is_finite() or abs(number.adjusted()) > EXPONENT_MAX:
        raise ValueError("the number cannot be written with plain digits")
    return format(number if number else number.copy_abs(), "f")


def parse_base64(text: str) -> bytes:
    """Decode standard base64 with padding."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ValueError("the string is not base64") from None
