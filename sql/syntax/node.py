"""Node: the base class of all parts of a syntax tree."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, starting at 1; 0 for nodes that were not parsed."""

    line: int = 0
    column: int = 0


NOWHERE = Position()


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a statement; equality ignores the position."""

    position: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
