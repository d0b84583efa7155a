"""Strings as in Java: sequences of 16-bit units; a character beyond U+FFFF has two.

Functions with positions work on strings where each character is one unit. Most strings are like
that; the others are split into units and joined again.
"""

from array import array


def is_plain(text: str) -> bool:
    """Whether every character is one unit."""
    return text.isascii() or max(text) <= "\uffff"


def units_of(text: str) -> str:
    """The string with one character per unit."""
    if is_plain(text):
        return text
    return "".join(map(chr, array("H", text.encode("utf-16", "surrogatepass")[2:])))


def text_of(units: str) -> str:
    """The string of units; an unpaired surrogate becomes a question mark."""
    if units.isascii():
        return units
    joined = units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return joined.encode("utf-8", "replace").decode("utf-8")


def length_of(text: str) -> int:
    """The number of units in a string."""
    if text.isascii():
        return len(text)
    return len(text) + sum(each > "\uffff" for each in text)
