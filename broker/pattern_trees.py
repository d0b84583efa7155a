r"""Parsed patterns: the maximum work of `re` for a pattern, and the pattern in RE2's syntax.

Both walk the tree of Python's own parser, so they match the behaviour of `re` exactly. RE2 differs
in a few details, which are expanded: its `\s` does not include \v, its `$` never matches before a
last \n, and its named classes are ASCII only.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Python's parser of patterns is not public.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")

REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
SINGLES = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
CHARACTERS_PER_STEP = 16  # of a repeat of one character, which is a tight loop
RE2_REPEAT_MAX = 1000  # RE2's own limit
CODE_MAX = 0x10FFFF
ALPHABETS = int(re.ASCII | re.UNICODE | re.LOCALE)
SURROGATES = (0xD800, 0xDFFF)
SPACES = ((9, 13), (28, 31), (32, 32))  # 28 to 31 are not spaces in ASCII mode
RANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "DIGIT": ((48, 57),),
    "WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "SPACE": ((9, 13), (32, 32)),
}


class NotLinear(Exception):
    """RE2 has no equivalent for a part of the pattern."""


@dataclass(frozen=True, slots=True)
class LinearSource:
    """A pattern in RE2's syntax, and where it is equivalent."""

    source: str
    stands_at_ends: bool  # only for strings that do not end with a line end
    is_ascii: bool  # only for ASCII strings


# -- the work of `re`


def work_to_match(source: str, flags: int = 0) -> Callable[[int, int], int]:
    """A function of a string's length: the maximum number of steps of `re` from one position.

    Its second argument is the number at which counting may stop.
    """
    tree = _parser.parse(source, flags)

    def work(length: int, limit: int) -> int:
        return _sequence(tree, length, limit)[1]

    return work


def _sequence(nodes: Iterable[Any], length: int, limit: int) -> tuple[int, int]:
    """The number of ways a part can match at a position, and the steps to try them all."""
    ways, work = 1, 0
    for node in nodes:
        more, cost = _node(node, length, limit)
        work += ways * cost
        ways *= more
        if ways > limit or work > limit:
            return limit + 1, limit + 1
    return ways, max(work, 1)


def _node(node: tuple[Any, Any], length: int, limit: int) -> tuple[int, int]:
    name, value = str(node[0]), node[1]
    if name in REPEATS:
        return _repeat(value, length, limit)
    if name == "IN":
        return 1, len(value)
    parts = [_sequence(each, length, limit) for each in _inner(name, value)]
    if not parts:
        # Comparing with a group's match is one tight loop.
        return 1, 1 + (length // CHARACTERS_PER_STEP if name == "GROUPREF" else 0)
    return sum(ways for ways, _ in parts), sum(work for _, work in parts)


def _inner(name: str, value: Any) -> Sequence[Any]:
    """The parts of a node that is not a repetition."""
    if name == "BRANCH":
        return list(value[1])
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "ATOMIC_GROUP":
        return [value]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if name == "GROUPREF_EXISTS":
        return [each for each in value[1:] if each is not None]
    return []


def _repeat(value: tuple[Any, Any, Any], length: int, limit: int) -> tuple[int, int]:
    least, most, body = int(value[0]), int(value[1]), value[2]
    width = body.getwidth()[0]
    times = min(most, length // width if width else length + 1)
    ways, work = _sequence(body, length, limit)
    if ways == 1:
        if len(body) == 1 and str(body[0][0]) in SINGLES:
            work = 1 + work * times // CHARACTERS_PER_STEP
        else:
            work = 1 + work * times
        return max(1, times - least + 1), work
    total, paths = 1, 1
    for _ in range(times):
        paths *= ways
        total += paths
        if total > limit:
            return limit + 1, limit + 1
    return total, total * work


# -- RE2's syntax


def linear_source(source: str, flags: int = 0) -> LinearSource:
    """The pattern in RE2's syntax; NotLinear if a part has no equivalent."""
    tree = _parser.parse(source, flags)
    writer = _Writer({number: name for name, number in tree.state.groupdict.items()})
    written = writer.sequence(tree, int(tree.state.flags))
    return LinearSource(written, writer.stands_at_ends, writer.is_ascii)


class _Writer:
    """Writes a tree in RE2's syntax."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names
        self.stands_at_ends = False
        self.is_ascii = False

    def sequence(self, nodes: Iterable[Any], flags: int) -> str:
        return "".join(self._node(str(op), value, flags) for op, value in nodes)

    def _node(self, name: str, value: Any, flags: int) -> str:
        if name in SINGLES:
            return self._single(name, value, flags)
        if name == "AT":
            return self._position(str(value), flags)
        if name == "BRANCH":
            return "(?:" + "|".join(self.sequence(each, flags) for each in value[1]) + ")"
        if name == "SUBPATTERN":
            return self._group(value, flags)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(value, flags) + ("?" if name == "MIN_REPEAT" else "")
        raise NotLinear(name)

    def _group(self, value: tuple[int | None, int, int, Any], flags: int) -> str:
        number, added, removed, body = value
        inner = self.sequence(body, _switched(flags, added, removed))
        if number is None:
            return f"(?:{inner})"
        name = self._names.get(number)
        return f"({inner})" if name is None else f"(?P<{name}>{inner})"

    def _repeat(self, value: tuple[Any, Any, Any], flags: int) -> str:
        least, most, body = int(value[0]), value[1], value[2]
        endless = most == _constants.MAXREPEAT
        if least > RE2_REPEAT_MAX or (not endless and int(most) > RE2_REPEAT_MAX):
            raise NotLinear("a repeat is too large")
        if body.getwidth()[0] == 0 and _has_groups(body):
            raise NotLinear("groups of empty repeats differ")
        if endless and not _prefers_characters(body):
            raise NotLinear("repeats that prefer an empty string differ")
        most = "" if endless else int(most)
        return f"(?:{self.sequence(body, flags)}){{{least},{most}}}"

    def _position(self, name: str, flags: int) -> str:
        lines = flags & re.MULTILINE
        if name in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            # RE2's \B also matches between the bytes of one character.
            self.is_ascii |= name == "AT_NON_BOUNDARY" or not flags & re.ASCII
            return r"\b" if name == "AT_BOUNDARY" else r"\B"
        if name == "AT_END" and not lines:
            self.stands_at_ends = True
        if lines and name in ("AT_BEGINNING", "AT_END"):
            return "(?m:^)" if name == "AT_BEGINNING" else "(?m:$)"
        return r"\A" if name in ("AT_BEGINNING", "AT_BEGINNING_STRING") else r"\z"

    def _single(self, name: str, value: Any, flags: int) -> str:
        folds = bool(flags & re.IGNORECASE)
        # Case folding differs: K is also the Kelvin sign, in RE2 even in ASCII mode.
        self.is_ascii |= folds
        if name == "ANY":
            ranges = [] if flags & re.DOTALL else [(10, 10)]
            return _class(ranges, negated=True, folds=False)
        if name == "IN":
            negated = str(value[0][0]) == "NEGATE"
            ranges = [each for item in value[negated:] for each in self._item(item, flags)]
        else:
            negated = name == "NOT_LITERAL"
            ranges = [(int(value), int(value))]
        if folds and max((high for low, high in ranges if low == high), default=0) > 127:
            raise NotLinear("folding of other alphabets")
        return _class(ranges, negated=negated, folds=folds)

    def _item(self, item: tuple[Any, Any], flags: int) -> list[tuple[int, int]]:
        name, value = str(item[0]), item[1]
        if name == "LITERAL":
            return [(int(value), int(value))]
        if name == "RANGE":
            return [(int(value[0]), int(value[1]))]
        kind = str(value).removeprefix("CATEGORY_")
        self.is_ascii |= not flags & re.ASCII
        ranges = list(RANGES[kind.removeprefix("NOT_")])
        if kind.endswith("SPACE") and not flags & re.ASCII:
            ranges = list(SPACES)
        return _others(ranges) if kind.startswith("NOT_") else ranges


def alphabets(source: str, flags: int = 0) -> set[int]:
    """ASCII, UNICODE or both: the alphabets of the pattern's classes, case folds and boundaries.

    Parts of a pattern may change it, as (?u:x) does; the package `regex` has one for the whole.
    """
    tree = _parser.parse(source, flags)
    found: set[int] = set()
    _note_alphabets(tree, int(tree.state.flags), found)
    return found


def _note_alphabets(nodes: Iterable[Any], flags: int, found: set[int]) -> None:
    for op, value in nodes:
        name = str(op)
        if name == "SUBPATTERN":
            _note_alphabets(value[3], _switched(flags, value[1], value[2]), found)
        elif name in SINGLES or name == "AT":
            if _needs_alphabet(name, value, flags):
                found.add(flags & ALPHABETS)
        else:
            for each in [value[2]] if name in REPEATS else _inner(name, value):
                _note_alphabets(each, flags, found)


def _needs_alphabet(name: str, value: Any, flags: int) -> bool:
    if name == "AT":
        return str(value).endswith("BOUNDARY")
    if name == "IN" and any(str(each) == "CATEGORY" for each, _ in value):
        return True
    return name != "ANY" and bool(flags & re.IGNORECASE)


def _switched(flags: int, added: int, removed: int) -> int:
    if added & ALPHABETS:
        flags &= ~ALPHABETS
    return (flags | added) & ~removed


def _has_groups(nodes: Iterable[Any]) -> bool:
    for op, value in nodes:
        name = str(op)
        if name == "SUBPATTERN" and value[0] is not None:
            return True
        inner = [value[2]] if name in REPEATS else _inner(name, value)
        if any(_has_groups(each) for each in inner):
            return True
    return False


def _prefers_characters(nodes: Any) -> bool:
    """Whether a part that may be empty matches as many characters as possible."""
    if nodes.getwidth()[0]:
        return True
    return all(str(op) == "MAX_REPEAT" and _prefers_characters(value[2]) for op, value in nodes)


def _others(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    others, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            others.append((start, low - 1))
        start = max(start, high + 1)
    return others if start > CODE_MAX else [*others, (start, CODE_MAX)]


def _class(ranges: Iterable[tuple[int, int]], *, negated: bool, folds: bool) -> str:
    inside = "".join(_shown(low, high) for low, high in ranges)
    if not inside:
        return r"[\x{0}-\x{10FFFF}]" if negated else r"[^\x{0}-\x{10FFFF}]"
    written = f"[{'^' if negated else ''}{inside}]"
    return f"(?i:{written})" if folds else written


def _shown(low: int, high: int) -> str:
    if low >= SURROGATES[0] and high <= SURROGATES[1]:
        raise NotLinear("a surrogate is not a character")
    return f"\\x{{{low:X}}}-\\x{{{high:X}}}"
