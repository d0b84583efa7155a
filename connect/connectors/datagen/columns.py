"""Columns of random values: each generates the values of one field for a run of records.

A column is a function of a `Run`. The same run gives the same values: a task that restarts within a
run generates it again and skips the rows that it has already sent.
"""

import string
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from connect.connectors.datagen.patterns import (
    all_strings,
    count_strings,
    read_pattern,
    string_generator,
)
from connect.data import ConnectSchema, Struct

# A pattern with at most this many strings becomes a choice between all of them, which is faster.
TEXTS_KEPT_MAX = 10_000
_LETTERS_AND_DIGITS = string.ascii_letters + string.digits


class Run(NamedTuple):
    """Consecutive records: their numbers in the stream, and the random generator."""

    random: Random
    indexes: range


Column: TypeAlias = Callable[[Run], Sequence[object]]
IntegerColumn: TypeAlias = Callable[[Run], Sequence[int]]


def constant(value: object) -> Column:
    """Always the same value."""
    return lambda run: [value] * len(run.indexes)


def one_of(options: Sequence[object]) -> Column:
    """A random choice from some values."""
    return lambda run: run.random.choices(options, k=len(run.indexes))


def integers(low: int, end: int) -> IntegerColumn:
    """Whole numbers from `low` to just below `end`."""
    span = end - low
    if span.bit_length() > 53:  # a float has no more bits
        return lambda run: [run.random.randrange(low, end) for _ in run.indexes]

    def column(run: Run) -> list[int]:
        chance = run.random.random
        return [low + int(chance() * span) for _ in run.indexes]

    return column


def numbers(low: float, end: float) -> Column:
    """Numbers with a fraction from `low` to just below `end`."""

    def column(run: Run) -> list[object]:
        chance = run.random.random
        span = end - low
        return [low + chance() * span for _ in run.indexes]

    return column


def flags(odds: float) -> Column:
    """True with this probability."""

    def column(run: Run) -> list[object]:
        chance = run.random.random
        return [chance() < odds for _ in run.indexes]

    return column


def iteration(start: float, step: float, *, length: int, ahead: int) -> Column:
    """Values that change by `step` with every record; after `length` values they restart."""
    return lambda run: [start + step * ((index + ahead) % length) for index in run.indexes]


def numbered(prefix: str, count: int) -> Column:
    """Strings such as "User_7", with numbers from 1 to `count`."""
    if count <= TEXTS_KEPT_MAX:
        return one_of([f"{prefix}{number}" for number in range(1, count + 1)])
    of_numbers = integers(1, count + 1)
    return lambda run: [f"{prefix}{number}" for number in of_numbers(run)]


def matching(pattern: str) -> Column:
    """Strings that match a regular expression."""
    part = read_pattern(pattern)
    if count_strings(part) <= TEXTS_KEPT_MAX:
        return one_of(list(all_strings(part)))
    make = string_generator(part)
    return lambda run: [make(run.random) for _ in run.indexes]


def letters(least: int, end: int) -> Column:
    """Strings of letters and digits, with lengths from `least` to below `end`."""
    lengths = integers(least, end)

    def column(run: Run) -> list[object]:
        choices = run.random.choices
        return ["".join(choices(_LETTERS_AND_DIGITS, k=n)) for n in lengths(run)]

    return column


def random_bytes(least: int, end: int) -> Column:
    """Bytes, from `least` to just below `end` of them."""
    lengths = integers(least, end)
    return lambda run: [run.random.randbytes(length) for length in lengths(run)]


def surrounded(inner: Column, prefix: str, suffix: str) -> Column:
    """Strings of another column with a prefix and a suffix."""
    return lambda run: [f"{prefix}{text}{suffix}" for text in inner(run)]


def sometimes_null(inner: Column, null_odds: float) -> Column:
    """Values of another column, some of them replaced by null."""

    def column(run: Run) -> list[object]:
        chance = run.random.random
        return [None if chance() < null_odds else value for value in inner(run)]

    return column


def lists(inner: Column, least: int, end: int) -> Column:
    """Lists of another column's values."""
    lengths = integers(least, end)

    def column(run: Run) -> list[object]:
        return [list(_some(inner, run, length)) for length in lengths(run)]

    return column


def maps(keys: Column, values: Column, least: int, end: int) -> Column:
    """Dicts of two other columns' values; equal keys make them shorter."""
    lengths = integers(least, end)

    def column(run: Run) -> list[object]:
        return [
            dict(zip(_some(keys, run, n), _some(values, run, n), strict=True)) for n in lengths(run)
        ]

    return column


def structs(schema: ConnectSchema, fields: Sequence[Column]) -> Column:
    """Structs of values of other columns."""

    def column(run: Run) -> list[object]:
        if not fields:
            return [Struct(schema, []) for _ in run.indexes]
        rows = zip(*[field(run) for field in fields], strict=True)
        return [Struct(schema, list(row)) for row in rows]

    return column


def _some(inner: Column, run: Run, count: int) -> Sequence[object]:
    return inner(Run(run.random, range(run.indexes.start, run.indexes.start + count)))
