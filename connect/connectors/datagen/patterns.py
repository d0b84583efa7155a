r"""Generates random strings that match a regular expression.

Supported are literals, `.`, `\d` `\w` `\s` and escaped characters, classes such as `[a-z_]` and
`[^0-9]`, groups, `|`, and the repetitions `?` `*` `+` `{2}` `{2,}` `{2,5}`. Open-ended repetitions
stop after 16. Anything else is refused when the pattern is parsed.
"""

import math
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from connect.errors import ConfigError

REPEATS_MAX = 16
_PRINTABLE = "".join(chr(code) for code in range(32, 127))
_ESCAPED_SETS = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
}
_UNSUPPORTED_ESCAPES = set("bBAZzGDWSpPk") | set(string.digits)


@dataclass(frozen=True, slots=True)
class Choice:
    """One character of a set."""

    characters: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Several parts in a row."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several parts."""

    options: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated part."""

    part: "Part"
    least: int
    most: int


Part = Choice | Sequence | Either | Repeat


def read_pattern(text: str) -> Part:
    """Parse a pattern; ConfigError if it is not supported."""
    return _Reader(text).read()


def count_strings(part: Part) -> int:
    """The number of strings that the part can generate; repeated ones count several times."""
    match part:
        case Choice(characters):
            return len(characters)
        case Sequence(parts):
            return math.prod(map(count_strings, parts))
        case Either(options):
            return sum(map(count_strings, options))
        case Repeat(inner, least, most):
            count = count_strings(inner)
            return sum(count**times for times in range(least, most + 1))


def all_strings(part: Part) -> Iterator[str]:
    """Every string that the part can generate, in a fixed order."""
    match part:
        case Choice(characters):
            yield from characters
        case Sequence(parts):
            yield from map("".join, product(*[list(all_strings(inner)) for inner in parts]))
        case Either(options):
            for option in options:
                yield from all_strings(option)
        case Repeat(inner, least, most):
            strings = list(all_strings(inner))
            for times in range(least, most + 1):
                yield from map("".join, product(strings, repeat=times))


def string_generator(part: Part) -> Callable[[Random], str]:
    """A function that generates a random string of the part."""
    match part:
        case Choice(characters):
            return lambda random: random.choice(characters)
        case Sequence(parts):
            makers = [string_generator(inner) for inner in parts]
            return lambda random: "".join([make(random) for make in makers])
        case Either(options):
            choices = [string_generator(option) for option in options]
            return lambda random: random.choice(choices)(random)
        case Repeat(inner, least, most):
            make_one = string_generator(inner)
            return lambda random: "".join(
                [make_one(random) for _ in range(random.randint(least, most))]
            )


def literal_prefix(part: Part) -> str:
    """The literal prefix of all strings of the part."""
    match part:
        case Choice(characters) if len(characters) == 1:
            return characters
        case Sequence(parts):
            prefix = ""
            for inner in parts:
                prefix += literal_prefix(inner)
                if count_strings(inner) != 1:
                    break
            return prefix
        case _:
            return ""


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def read(self) -> Part:
        part = self._either()
        if self._position < len(self._text):
            raise self._error("there is no open group here")
        return part

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise self._error("it ends too early")
        self._position += 1
        return character

    def _error(self, why: str) -> ConfigError:
        return ConfigError(
            f'cannot generate strings for the pattern "{self._text}": {why}',
            at=f"position {self._position} of the pattern",
            hint="use literals, classes, groups, | and repetitions",
        )

    def _either(self) -> Part:
        options = [self._sequence()]
        while self._peek() == "|":
            self._take()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            if self._peek() in "^$":  # anchors have no effect: the whole string always matches
                self._take()
                continue
            parts.append(self._repeated(self._single()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _single(self) -> Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == ".":
            return Choice(_PRINTABLE)
        if character == "\\":
            return Choice(self._escaped())
        if character in "*+?{":
            raise self._error(f'there is nothing to repeat before "{character}"')
        return Choice(character)

    def _group(self) -> Part:
        if self._peek() == "?":
            self._take()
            if self._take() != ":":
                raise self._error("only the groups (...) and (?:...) are supported")
        part = self._either()
        if self._peek() != ")":
            raise self._error("a group is not closed")
        self._take()
        return part

    def _escaped(self) -> str:
        character = self._take()
        if character in _UNSUPPORTED_ESCAPES:
            raise self._error(f"\\{character} is not supported")
        return _ESCAPED_SETS.get(character) or {"t": "\t", "n": "\n", "r": "\r"}.get(
            character, character
        )

    def _class(self) -> Part:
        negated = self._peek() == "^"
        if negated:
            self._take()
        characters: list[str] = []
        while self._peek() != "]" or not characters:
            character = self._take()
            if character == "\\":
                characters.extend(self._escaped())
            elif character == "-" and characters and self._peek() not in ("]", ""):
                characters.extend(self._rest_of_range(characters[-1]))
            else:
                characters.append(character)
        self._take()
        kept = characters
        if negated:
            kept = [each for each in _PRINTABLE if each not in characters]
        if not kept:
            raise self._error("the character class is empty")
        return Choice("".join(dict.fromkeys(kept)))

    def _rest_of_range(self, first: str) -> list[str]:
        last = self._take()
        if last == "\\":
            last = self._take()
        if ord(last) < ord(first):
            raise self._error(f'the range "{first}-{last}" is empty')
        return [chr(code) for code in range(ord(first) + 1, ord(last) + 1)]

    def _repeated(self, part: Part) -> Part:
        character = self._peek()
        if character == "" or character not in "?*+{":
            return part
        self._take()
        if character == "{":
            least, most = self._counts()
        else:
            least, most = {"?": (0, 1), "*": (0, REPEATS_MAX), "+": (1, 1 + REPEATS_MAX)}[character]
        if self._peek() == "?":  # a lazy quantifier matches the same strings
            self._take()
        return Repeat(part, least, most)

    def _counts(self) -> tuple[int, int]:
        text = ""
        while self._peek() != "}":
            text += self._take()
        self._take()
        least, comma, most = text.partition(",")
        if not least.isdecimal() or not (most == "" or most.isdecimal()):
            raise self._error(f"{{{text}}} is not a valid repetition")
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else int(least) + REPEATS_MAX
