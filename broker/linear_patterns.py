r"""Regular expressions from users, evaluated in bounded time.

Python's `re` uses backtracking and holds the GIL meanwhile: `(a+)+$` on 27 letters blocks the whole
process for a minute. So a pattern is compiled for up to three engines, and each string is matched
by the first one that is safe for it:

    re      if the number of backtracking steps, computed from the pattern and the string's
            length, is small; the fastest engine for short strings
    RE2     linear in the string's length; it has no backreferences, no lookaround, no possessive
            quantifiers
    regex   everything else, with a time limit and without the GIL; PatternTimeout after the limit

All three find the same matches; after an empty match the search continues one character later, as
in Java and RE2. Patterns have Python's syntax; `broker.java.patterns` translates Java's.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol, cast

import re2
import regex

from broker.pattern_trees import (
    ALPHABETS,
    LinearSource,
    NotLinear,
    alphabets,
    linear_source,
    work_to_match,
)

PATTERN_MAX = 100_000
STEPS_MAX = 2_000_000  # of `re`: about 10 ms
TIME_LIMIT_SECONDS = 1.0
RE2_MEMORY_BYTES = 8 * 1024 * 1024
LENGTH_MAX = 1 << 30
# RE2 has no line end but \n, and its `$` never matches before the last one.
LINE_ENDS = re.compile("[\r\x85\u2028\u2029]|\n\\Z")


class PatternTimeout(ValueError):
    """A pattern took too long for a string."""


class Match(Protocol):
    """The part of `re.Match` that is used."""

    def group(self, group: int | str = 0, /) -> str | Any:
        """The string of a group."""
        ...

    def groups(self) -> tuple[str | Any, ...]:
        """The strings of all groups except the whole match."""
        ...

    def start(self, group: int | str = 0, /) -> int:
        """The start of a group."""
        ...

    def end(self, group: int | str = 0, /) -> int:
        """The end of a group."""
        ...

    def __getitem__(self, group: int | str, /) -> str | Any:
        """The string of a group."""
        ...


class PatternEngine(Protocol):
    """The common interface of compiled patterns of all three engines."""

    def search(self, text: str, pos: int, /) -> Match | None:
        """The first match from a position on."""
        ...

    def match(self, text: str, pos: int, /) -> Match | None:
        """The match at a position."""
        ...

    def fullmatch(self, text: str, pos: int, /) -> Match | None:
        """The match of the whole string from a position on."""
        ...

    def finditer(self, text: str, pos: int, /) -> Iterator[Match]:
        """All matches from a position on."""
        ...


class Pattern:
    """A compiled pattern, like `re.Pattern`, but with bounded time for any string."""

    def __init__(
        self, source: str, flags: int = 0, *, without_line_ends: str | None = None
    ) -> None:
        r"""Compile; raises `re.error` for an invalid pattern.

        `without_line_ends` is a simpler pattern that is equivalent for strings that have no line
        ends but \n, and none at their end.
        """
        if len(source) > PATTERN_MAX:
            raise re.error(f"the regular expression is longer than {PATTERN_MAX}")
        try:
            compiled = re.compile(source, flags)
            chosen = alphabets(source, flags)
            if len(chosen) == 1:
                flags = flags & ~ALPHABETS | chosen.pop()
                compiled = re.compile(source, flags)
            elif chosen:
                # `re` searches the first character in the alphabet of the whole pattern, even if
                # the part has another one, as in (?u:[^b])a; after an assertion it does not search
                # it.
                compiled = _compiled_after("(?=)", source, flags)
            work = work_to_match(source, flags)
            self._quick_length = _longest(work)
        except RecursionError:
            raise re.error("the groups of the regular expression are nested too deeply") from None
        self.pattern = source
        self.groups = compiled.groups
        self.groupindex = dict(compiled.groupindex)
        self._quick = cast(PatternEngine, compiled)
        self._flags = flags
        self._simpler = without_line_ends or source
        self._engines: tuple[_Linear | None, _Limited] | None = None

    @property
    def quick(self) -> tuple[re.Pattern[str], int]:
        """`re`'s pattern, and the maximum length of strings for it: saves generated code a call."""
        return cast("re.Pattern[str]", self._quick), self._quick_length

    @property
    def is_linear(self) -> bool:
        """Whether RE2 evaluates it where `re` might be slow."""
        return self._prepared()[0] is not None

    def search(self, text: str, pos: int = 0) -> Match | None:
        """The first match from a position on, or None."""
        if len(text) <= self._quick_length:
            return self._quick.search(text, pos)
        return self._engine(text).search(text, pos)

    def match(self, text: str, pos: int = 0) -> Match | None:
        """The match at a position, or None."""
        if len(text) <= self._quick_length:
            return self._quick.match(text, pos)
        return self._engine(text).match(text, pos)

    def fullmatch(self, text: str, pos: int = 0) -> Match | None:
        """The match of everything from a position on, or None."""
        if len(text) <= self._quick_length:
            return self._quick.fullmatch(text, pos)
        return self._engine(text).fullmatch(text, pos)

    def finditer(self, text: str, pos: int = 0) -> Iterator[Match]:
        """All matches, from left to right."""
        if len(text) <= self._quick_length:
            return _iterate(self._quick.search, text, pos)
        return self._engine(text).finditer(text, pos)

    def sub(self, replacement: Callable[[Match], str], text: str) -> str:
        """The string with each match replaced."""
        parts: list[str] = []
        place = 0
        for found in self.finditer(text):
            parts += (text[place : found.start()], replacement(found))
            place = found.end()
        return "".join([*parts, text[place:]])

    def _prepared(self) -> "tuple[_Linear | None, _Limited]":
        if self._engines is None:
            self._engines = (
                _linear(self._simpler, self._flags),
                _Limited(self.pattern, self._flags),
            )
        return self._engines

    def _engine(self, text: str) -> PatternEngine:
        linear, limited = self._prepared()
        plain = self._simpler is self.pattern
        if linear is None or not linear.suits(text, any_line_ends=plain):
            return limited
        return linear


def _compiled_after(first: str, source: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(first + source, flags)
    except re.error:  # flags like (?i) must be first
        return re.compile(source, flags)


@lru_cache(maxsize=1000)
def compile_pattern(
    source: str, flags: int = 0, *, without_line_ends: str | None = None
) -> Pattern:
    """The compiled pattern, from a cache; raises `re.error` for an invalid pattern."""
    return Pattern(source, flags, without_line_ends=without_line_ends)


def _longest(work: Callable[[int, int], int]) -> int:
    """The maximum length of a string for which `re` needs at most STEPS_MAX steps."""
    length = 1
    while length < LENGTH_MAX and (length + 1) * work(length, STEPS_MAX) <= STEPS_MAX:
        length *= 2
    return length // 2


def _iterate(search: Callable[[str, int], Match | None], text: str, pos: int) -> Iterator[Match]:
    while pos <= len(text):
        found = search(text, pos)
        if found is None:
            return
        yield found
        pos = found.end() + (found.end() == found.start())


class _Linear:
    """RE2."""

    def __init__(self, compiled: Any, written: LinearSource) -> None:
        self._compiled = compiled  # the package has no types
        self._written = written

    def suits(self, text: str, *, any_line_ends: bool) -> bool:
        """Whether it finds the same matches as `re` in this string."""
        if not text.isascii() and (self._written.is_ascii or not _is_valid(text)):
            return False
        free = any_line_ends and not self._written.stands_at_ends
        return free or LINE_ENDS.search(text) is None

    def search(self, text: str, pos: int, /) -> Match | None:
        found: Match | None = self._compiled.search(text, pos)
        return found

    def match(self, text: str, pos: int, /) -> Match | None:
        found: Match | None = self._compiled.match(text, pos)
        return found

    def fullmatch(self, text: str, pos: int, /) -> Match | None:
        found: Match | None = self._compiled.fullmatch(text, pos)
        return found

    def finditer(self, text: str, pos: int, /) -> Iterator[Match]:
        end = -1
        for found in self._compiled.finditer(text, pos):
            # The package returns an empty match twice if it is not at the start of the search.
            if found.start() == found.end() == end:
                continue
            yield found
            end = found.end() if found.start() == found.end() else -1


def _linear(source: str, flags: int) -> _Linear | None:
    options = re2.Options()
    options.max_mem = RE2_MEMORY_BYTES
    options.log_errors = False
    try:
        written = linear_source(source, flags)
        return _Linear(re2.compile(written.source, options), written)
    except (NotLinear, re2.error, UnicodeEncodeError):
        return None


class PatternError(ValueError):
    """A pattern that RE2 does not support."""


class LinearPattern:
    """A pattern in RE2's own syntax, matched against whole strings; it uses no other engine."""

    def __init__(self, source: str, *, memory_bytes: int) -> None:
        """Compile; PatternError if the pattern is invalid or needs more memory."""
        options = re2.Options()
        options.max_mem = memory_bytes
        options.log_errors = False
        options.never_capture = True
        try:
            self._compiled = re2.compile(source, options)
        except re2.error as error:
            told = error.args[0] if error.args else error
            shown = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
            raise PatternError(shown) from None
        except UnicodeEncodeError:
            raise PatternError("it is not valid Unicode") from None

    def matches(self, text: str) -> bool:
        """Whether the whole string matches."""
        try:
            # As bytes: positions in the string are not needed.
            return self._compiled.fullmatch(text.encode()) is not None
        except UnicodeEncodeError:
            return False


def _is_valid(text: str) -> bool:
    """Whether a string can be encoded: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _regex_flags(flags: int) -> int:
    """The same flags, which have other values in the package."""
    names = ("ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "UNICODE", "VERBOSE")
    chosen = int(regex.VERSION0)
    for name in names:
        if flags & getattr(re, name):
            chosen |= int(getattr(regex, name))
    return chosen


class _Limited:
    """The package `regex`, with a time limit."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._compiled: Any = None
        if len(alphabets(source, flags)) > 1:
            return  # a part has another alphabet, which the package ignores
        try:
            self._compiled = regex.compile(source, _regex_flags(flags))
        except (regex.error, RecursionError):
            self._compiled = None

    def search(self, text: str, pos: int, /) -> Match | None:
        return self._timed("search", text, pos)

    def match(self, text: str, pos: int, /) -> Match | None:
        return self._timed("match", text, pos)

    def fullmatch(self, text: str, pos: int, /) -> Match | None:
        return self._timed("fullmatch", text, pos)

    def finditer(self, text: str, pos: int, /) -> Iterator[Match]:
        ends = time.monotonic() + TIME_LIMIT_SECONDS  # for all matches together

        def search(text: str, pos: int) -> Match | None:
            return self._timed("search", text, pos, max(ends - time.monotonic(), 0.001))

        return _iterate(search, text, pos)

    def _timed(
        self, how: str, text: str, pos: int, seconds: float = TIME_LIMIT_SECONDS
    ) -> Match | None:
        if self._compiled is None:
            raise PatternTimeout(
                f"the regular expression {self._source[:200]!r} cannot be evaluated on a string of "
                f"{len(text)} characters in bounded time: simplify it"
            )
        method = getattr(self._compiled, how)
        try:
            found: Match | None = method(text, pos, timeout=seconds, concurrent=True)
        except TimeoutError:
            raise PatternTimeout(
                f"the regular expression {self._source[:200]!r} took longer than "
                f"{TIME_LIMIT_SECONDS} s on a string of {len(text)} characters: simplify it"
            ) from None
        return found
