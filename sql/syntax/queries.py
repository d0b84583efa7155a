"""Syntax trees of SELECT."""

from dataclasses import dataclass
from enum import Enum

from sql.syntax.expressions import Expression
from sql.syntax.node import Node


@dataclass(frozen=True, slots=True)
class SelectExpression(Node):
    """expression [AS alias]."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SelectAll(Node):
    """* or source.*"""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class SelectFields(Node):
    """struct->*"""

    struct: Expression


SelectItem = SelectExpression | SelectAll | SelectFields


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A number and its unit: 5 MINUTES; the unit as written, in upper case."""

    count: int
    unit: str


class WindowKind(Enum):
    """Kinds of windows."""

    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"


@dataclass(frozen=True, slots=True)
class Window(Node):
    """WINDOW [name] kind (...); a session's size is its gap."""

    kind: WindowKind
    size: Duration
    advance: Duration | None = None
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A stream or table in FROM; the default alias is its own name."""

    name: str
    alias: str


class JoinKind(Enum):
    """The kind of a join, which determines the rows without a match that are kept."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    OUTER = "FULL OUTER"


@dataclass(frozen=True, slots=True)
class Within(Node):
    """WITHIN before [, after] [GRACE PERIOD grace]."""

    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """One JOIN in FROM, with the source that is joined."""

    kind: JoinKind
    right: Source
    on: Expression
    within: Within | None = None


class EmitClause(Enum):
    """The results of a query: none given (a pull query), every change, or final results."""

    NOTHING = ""
    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Query(Node):
    """SELECT items FROM source joins WINDOW ... EMIT ... LIMIT n."""

    items: tuple[SelectItem, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    # PARTITION BY NULL is the single expression Null; empty without PARTITION BY.
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: EmitClause = EmitClause.NOTHING
    limit: int | None = None
