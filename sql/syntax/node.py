"""Node: what all parts of a syntax tree have."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, counted from 1; 0 when something was made, not read."""

    line: int = 0
    column: int = 0


NOWHERE = Position()


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a text; two are equal wherever they stand."""

    position: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
