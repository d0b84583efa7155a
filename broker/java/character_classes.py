"""Character classes of Java's regular expressions, in Python's syntax."""

import re
import sys
from functools import cache
from unicodedata import category

ANY_CHARACTER = r"[\x00-\U0010ffff]"
_HORIZONTAL = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL = r"\n\x0b\f\r\x85\u2028\u2029"
_PUNCTUATION = r"!-/:-@\[-`{-~"
# Without the brackets.
_ASCII = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_ALWAYS = {"h": _HORIZONTAL, "v": _VERTICAL}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": _PUNCTUATION,
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_BINARY = {
    "ALPHABETIC": ("L", "Nl"),
    "LETTER": ("L",),
    "IDEOGRAPHIC": (),
    "LOWERCASE": ("Ll",),
    "UPPERCASE": ("Lu",),
    "TITLECASE": ("Lt",),
    "PUNCTUATION": ("P",),
    "CONTROL": ("Cc",),
    "WHITE_SPACE": ("Z",),
    "DIGIT": ("Nd",),
    "ASSIGNED": ("L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cs"),
}
_JAVA = {
    "javaLowerCase": ("Ll",),
    "javaUpperCase": ("Lu",),
    "javaLetter": ("L",),
    "javaDigit": ("Nd",),
    "javaLetterOrDigit": ("L", "Nd"),
    "javaAlphabetic": ("L", "Nl"),
}
_UNICODE_POSIX = {
    "Lower": ("Ll",),
    "Upper": ("Lu",),
    "Alpha": ("L", "Nl"),
    "Digit": ("Nd",),
    "Alnum": ("L", "Nl", "Nd"),
    "Punct": ("P",),
}


def escape_class(letter: str, *, unicode: bool) -> str | None:
    r"""The class of \d, \W and similar escapes; None for other letters."""
    small = letter.lower()
    if small in _ALWAYS and len(letter) == 1:
        inside = _ALWAYS[small]
    elif small in _ASCII:
        inside = f"\\{small}" if unicode else _ASCII[small]
    else:
        return None
    return f"[{'^' if letter != small else ''}{inside}]"


def property_class(name: str, *, unicode: bool) -> str:
    r"""The class of \p{name}; ValueError if it is not supported."""
    if unicode and name in _UNICODE_POSIX:
        return _of_categories(_UNICODE_POSIX[name])
    if name in _POSIX:
        return f"[{_POSIX[name]}]"
    if name in _JAVA:
        return _of_categories(_JAVA[name])
    if name == "L1":
        return r"[\x00-\xff]"
    if name in ("LC", "L_"):
        return _of_categories(("Lu", "Ll", "Lt"))
    key, _, value = name.rpartition("=")
    if key.lower() in ("general_category", "gc"):
        name = value
    binary = _BINARY.get(name[2:].upper()) if name[:2] == "Is" else None
    if binary:
        return _of_categories(binary)
    return _of_categories((name.removeprefix("Is"),))


def _of_categories(wanted: tuple[str, ...]) -> str:
    known = _ranges_of_categories()
    ranges: list[tuple[int, int]] = []
    for each in wanted:
        found = [name for name in known if name == each or (len(each) == 1 and name[0] == each)]
        if not found:
            raise ValueError(f"Unknown character property name {{{each}}}")
        for name in found:
            ranges += known[name]
    return "[" + "".join(_shown(low, high) for low, high in sorted(ranges)) + "]"


def _shown(low: int, high: int) -> str:
    first = re.escape(chr(low))
    return first if low == high else f"{first}-{re.escape(chr(high))}"


@cache
def _ranges_of_categories() -> dict[str, list[tuple[int, int]]]:
    """All characters by category; computed on first use, as it takes a moment."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    start, kind = 0, category("\0")
    for code in range(1, sys.maxunicode + 1):
        now = category(chr(code))
        if now != kind:
            ranges.setdefault(kind, []).append((start, code - 1))
            start, kind = code, now
    ranges.setdefault(kind, []).append((start, sys.maxunicode))
    return ranges


def _is_simple(text: str) -> bool:
    """Whether it is one class in brackets, without alternatives."""
    return text.startswith("[")


def union(parts: list[str]) -> str:
    """A class of all characters in any of the parts."""
    if len(parts) == 1:
        return parts[0]
    positive = [each for each in parts if _is_simple(each) and not each.startswith("[^")]
    others = [each for each in parts if each not in positive]
    merged = ["[" + "".join(each[1:-1] for each in positive) + "]"] if positive else []
    together = [*merged, *others]
    return together[0] if len(together) == 1 else f"(?:{'|'.join(together)})"


def negated(text: str) -> str:
    """A class of all other characters."""
    if text.startswith("[^"):
        return "[" + text[2:]
    if _is_simple(text):
        return "[^" + text[1:]
    return f"(?:(?!{text}){ANY_CHARACTER})"
