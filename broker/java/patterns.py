r"""Translates regular expressions of Java to Python.

Most syntax is the same. The differences are rewritten:

    \d \w \s \b     ASCII only, unless (?U)
    . ^ $ \Z        match all of Java's line terminators
    (?<name>x) \k<name> \Q..\E \h \R \z \x{1F600} \cA \0101 \p{Lu} \p{Alpha}
    [a-z&&[^b]]     intersections and unions of classes
    (?i) in the middle of an expression

Names of scripts and blocks, \G, \X and lookbehinds of variable length have no equivalent: they are
refused. The length of strings and the time are limited: see `broker.linear_patterns`.
"""

import re
from functools import lru_cache

from broker.java.character_classes import (
    ANY_CHARACTER,
    escape_class,
    negated,
    property_class,
    union,
)
from broker.linear_patterns import Pattern

PATTERN_MAX = 10_000
DEPTH_MAX = 50
TEXT_MAX = 1024 * 1024
LINE_ENDS = r"\n\r\x85\u2028\u2029"
LAST_LINE = rf"(?=(?:\r\n|[{LINE_ENDS}])?\Z)"
LINE_START = rf"(?:\A|(?<=[{LINE_ENDS}])(?!(?<=\r)\n)(?!\Z))"
LINE_END = r"(?=[\r\x85\u2028\u2029]|(?<!\r)\n|\Z)"
ANY_LINE_END = r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])"
QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]{1,9}(?:,[0-9]{0,9})?\})[?+]?", re.ASCII)
FLAGS = re.compile(r"\(\?([imsxudU]*)(?:-([imsxudU]+))?([:)])")
GROUP = re.compile(r"\((?:\?(?:<([A-Za-z][A-Za-z0-9]*)>|(:|=|!|>|<=|<!)))?", re.ASCII)
CODE = re.compile(
    r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2})|c(.)",
    re.DOTALL,
)
PROPERTY = re.compile(r"([pP])(?:\{\^?([A-Za-z0-9_=]+)\}|([A-Z]))", re.ASCII)
PLAIN_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


@lru_cache(maxsize=1000)
def compile_pattern(pattern: str) -> Pattern:
    """The compiled expression; ValueError if it is invalid."""
    if len(pattern) > PATTERN_MAX:
        raise ValueError(f"the regular expression is longer than {PATTERN_MAX}")
    try:
        source = _Translator(pattern).translate()
        return Pattern(source, re.ASCII, without_line_ends=_without_line_ends(source))
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        shown = pattern[:200]
        raise ValueError(f"Invalid regular expression pattern: {shown}: {error}") from None


def _without_line_ends(source: str) -> str:
    """A variant for strings without line terminators except line feeds, none at the end."""
    for place, simpler in ((LAST_LINE, r"\Z"), (LINE_START, "(?m:^)"), (LINE_END, "(?m:$)")):
        source = source.replace(place, simpler)
    return source


def bounded(text: str) -> str:
    """The string; ValueError if it is too long to search."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"the string to search is longer than {TEXT_MAX}")
    return text


class _Translator:
    """Translates an expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._groups = 0
        self._depth = 0

    def translate(self) -> str:
        written = self._alternatives(frozenset())
        if self._place < len(self._pattern):
            raise ValueError(f"Unmatched closing ')' near index {self._place}")
        return written

    def _looking_at(self, text: str) -> bool:
        return self._pattern.startswith(text, self._place)

    def _alternatives(self, flags: frozenset[str]) -> str:
        """Alternatives up to the end of a group. Flags set inside apply up to there."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"groups are nested deeper than {DEPTH_MAX}")
        branches, branch = [], ""
        outer = flags
        while self._place < len(self._pattern) and not self._looking_at(")"):
            if self._looking_at("|"):
                self._place += 1
                branches.append(branch)
                branch = ""
                continue
            switch = FLAGS.match(self._pattern, self._place)
            if switch is not None and switch[3] == ")":
                self._place = switch.end()
                flags = _switched(flags, switch)
            else:
                branch += self._piece(flags, outer)
        self._depth -= 1
        return "|".join([*branches, branch])

    def _piece(self, flags: frozenset[str], outer: frozenset[str]) -> str:
        """One atom with its quantifier, and the flags for Python."""
        atom = self._atom(flags)
        if atom is None:
            return ""
        found = QUANTIFIER.match(self._pattern, self._place)
        if found is not None:
            self._place = found.end()
            atom += found[0]
        elif self._looking_at("{"):
            raise ValueError(f"Illegal repetition near index {self._place}")
        return _scoped(atom, flags, outer)

    def _atom(self, flags: frozenset[str]) -> str | None:
        character = self._pattern[self._place]
        if "x" in flags and (character.isspace() or character == "#"):
            self._skip_comment(character)
            return None
        if character == "(":
            return self._group(flags)
        if character == "[":
            self._place += 1
            return self._class(flags)
        if character == "\\":
            self._place += 1
            return self._escape(flags)
        if character in "*+?{":
            raise ValueError(f"Dangling meta character '{character}' near index {self._place}")
        self._place += 1
        if character == ".":
            if "s" in flags:
                return ANY_CHARACTER
            return "." if "d" in flags else f"[^{LINE_ENDS}]"
        if character == "^":
            return LINE_START if "m" in flags else r"\A"
        if character == "$":
            return LINE_END if "m" in flags else LAST_LINE
        return re.escape(character)

    def _skip_comment(self, character: str) -> None:
        end = self._place + 1
        if character == "#":
            end = self._pattern.find("\n", self._place)
            end = len(self._pattern) if end < 0 else end
        self._place = end

    def _group(self, flags: frozenset[str]) -> str:
        switch = FLAGS.match(self._pattern, self._place)
        if switch is not None:
            self._place = switch.end()
            inner = _switched(flags, switch)
            return self._closed(_opened(inner, flags), inner)
        found = GROUP.match(self._pattern, self._place)
        unknown = self._looking_at("(?") and found is not None and found.end() == self._place + 1
        if found is None or unknown:
            raise ValueError(f"Unknown group type near index {self._place}")
        self._place = found.end()
        if found[1] is not None:
            self._groups += 1
            return self._closed(f"(?P<{found[1]}>", flags)
        if found[2] is not None:
            return self._closed(f"(?{found[2]}", flags)
        self._groups += 1
        return self._closed("(", flags)

    def _closed(self, opening: str, flags: frozenset[str]) -> str:
        written = self._alternatives(flags)
        if not self._looking_at(")"):
            raise ValueError("Unclosed group")
        self._place += 1
        return f"{opening}{written})"

    def _escape(self, flags: frozenset[str]) -> str | None:
        """The rest of an escape outside of classes."""
        character = self._next_character()
        anchors = {"A": r"\A", "z": r"\Z", "Z": LAST_LINE, "R": ANY_LINE_END}
        if character in anchors:
            self._place += 1
            return anchors[character]
        if character in "bB":
            self._place += 1
            return f"\\{character}"
        if character == "Q":
            return self._literal()
        if character == "E":
            self._place += 1
            return None
        if character == "k":
            return self._named_reference()
        if character in "123456789":
            return self._reference()
        return self._shared_escape(flags)

    def _next_character(self) -> str:
        if self._place >= len(self._pattern):
            raise ValueError("a backslash ends the expression")
        return self._pattern[self._place]

    def _literal(self) -> str | None:
        start = self._place + 1
        end = self._pattern.find("\\E", start)
        text = self._pattern[start:] if end < 0 else self._pattern[start:end]
        self._place = len(self._pattern) if end < 0 else end + 2
        if not text:
            return None
        # A quantifier after it is for its last character only.
        return re.escape(text[:-1]) + re.escape(text[-1])

    def _named_reference(self) -> str:
        found = re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>", re.ASCII).match(self._pattern, self._place)
        if found is None:
            raise ValueError(f"\\k is not followed by '<name>' near index {self._place}")
        self._place = found.end()
        return f"(?P={found[1]})"

    def _reference(self) -> str:
        """A numbered group: more digits belong to the number while there is such a group."""
        number = int(self._pattern[self._place])
        self._place += 1
        while self._place < len(self._pattern) and self._pattern[self._place] in "0123456789":
            longer = number * 10 + int(self._pattern[self._place])
            if longer > self._groups:
                break
            number = longer
            self._place += 1
        return rf"(?:\{number})"

    def _shared_escape(self, flags: frozenset[str]) -> str:
        """The rest of an escape: a class or a character."""
        character = self._next_character()
        known = escape_class(character, unicode="U" in flags)
        if known is not None:
            self._place += 1
            return known
        found = PROPERTY.match(self._pattern, self._place)
        if found is not None:
            self._place = found.end()
            chosen = property_class(found[2] or found[3], unicode="U" in flags)
            return negated(chosen) if found[1] == "P" else chosen
        return re.escape(self._character())

    def _character(self) -> str:
        """The character of an escape."""
        found = CODE.match(self._pattern, self._place)
        if found is not None:
            self._place = found.end()
            if found[5] is not None:
                return chr(ord(found[5]) ^ 64)
            digits = found[1] or found[2] or found[3]
            return chr(int(found[4], 8) if digits is None else int(digits, 16))
        character = self._next_character()
        if character.isascii() and character.isalpha() and character not in PLAIN_ESCAPES:
            raise ValueError(f"Illegal/unsupported escape sequence near index {self._place}")
        self._place += 1
        return PLAIN_ESCAPES.get(character, character)

    def _class(self, flags: frozenset[str]) -> str:
        """A class after its opening bracket: unions, separated by intersections."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"classes are nested deeper than {DEPTH_MAX}")
        negate = self._looking_at("^")
        self._place += negate
        wholes: list[str] = []
        parts: list[str] = []
        first = True
        while not self._looking_at("]") or first:
            if self._place >= len(self._pattern):
                raise ValueError("Unclosed character class")
            if self._looking_at("&&"):
                self._place += 2
                if parts:
                    wholes.append(union(parts))
                parts = []
            elif self._looking_at("["):
                self._place += 1
                parts.append(self._class(flags))
            else:
                parts.append(self._range(flags))
            first = False
        self._place += 1
        self._depth -= 1
        if parts:
            wholes.append(union(parts))
        if not wholes:
            raise ValueError("a character class is empty")
        *before, last = wholes
        whole = "".join(f"(?={each})" for each in before) + last
        whole = f"(?:{whole})" if before else whole
        return negated(whole) if negate else whole

    def _range(self, flags: frozenset[str]) -> str:
        """A character, a range, or the class of an escape."""
        low = self._member(flags)
        if len(low) > 1:
            return low
        following = self._pattern[self._place : self._place + 2]
        if following[:1] != "-" or following[1:] in ("", "]", "["):
            return f"[{re.escape(low)}]"
        self._place += 1
        high = self._member(flags)
        if len(high) > 1 or high < low:
            raise ValueError(f"Illegal character range near index {self._place}")
        return f"[{re.escape(low)}-{re.escape(high)}]"

    def _member(self, flags: frozenset[str]) -> str:
        """A character, or a nested class."""
        character = self._pattern[self._place]
        if character != "\\":
            self._place += 1
            return character
        self._place += 1
        following = self._next_character()
        if following == "Q":
            literal = self._pattern.find("\\E", self._place)
            text = self._pattern[self._place + 1 : literal if literal >= 0 else None]
            self._place = len(self._pattern) if literal < 0 else literal + 2
            if not text:
                raise ValueError("a quoted string in a class is empty")
            return "[" + "".join(map(re.escape, text)) + "]"
        known = escape_class(following, unicode="U" in flags)
        if known is not None or PROPERTY.match(self._pattern, self._place):
            return self._shared_escape(flags)
        return self._character()


def _switched(flags: frozenset[str], switch: re.Match[str]) -> frozenset[str]:
    return (flags | set(switch[1])) - set(switch[2] or "")


def _python_flags(flags: frozenset[str]) -> str:
    """The flags for Python's engine; all others are expanded."""
    return ("i" if "i" in flags else "") + ("u" if flags & {"u", "U"} else "")


def _opened(flags: frozenset[str], outer: frozenset[str]) -> str:
    now, before = _python_flags(flags), _python_flags(outer)
    if now == before:
        return "(?:"
    off = "-i" if "i" in before and "i" not in now else ""
    kind = "u" if "u" in now else "a" if "u" in before else ""
    return f"(?{kind}{'i' if 'i' in now else ''}{off}:"


def _scoped(atom: str, flags: frozenset[str], outer: frozenset[str]) -> str:
    if _python_flags(flags) == _python_flags(outer):
        return atom
    return f"{_opened(flags, outer)}{atom})"
