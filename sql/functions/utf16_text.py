"""Strings as in Java: sequences of 16-bit units, where a character beyond U+FFFF counts twice.

Functions that count positions work on strings where each character is one unit. Most strings are;
the others are split into units and joined again.
"""

from array import array


def is_plain(text: str) -> bool:
    """Whether every character is one unit."""
    return text.isascii() or max(text) <= "\uffff"


def units_of(text: str) -> str:
    """The text with one character for each unit."""
    if is_plain(text):
        return text
    return "".join(map(chr, array("H", text.encode("utf-16", "surrogatepass")[2:])))


def text_of(units: str) -> str:
    """The text of units; half a character that lost its other half becomes a question mark."""
    if units.isascii():
        return units
    joined = units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return joined.encode("utf-8", "replace").decode("utf-8")


def length_of(text: str) -> int:
    """How many units a string has."""
    if text.isascii():
        return len(text)
    return len(text) + sum(each > "\uffff" for each in text)
