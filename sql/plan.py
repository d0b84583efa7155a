"""Plan: what a query means, step by step, without an engine.

A step takes rows and gives rows. A row has a key and values: `shape.key` names the key's columns,
`shape.row` all columns that expressions after this step may use; ColumnValue.index counts in it.
After a Scan a row has the value columns, the header columns, ROWTIME, ROWPARTITION, ROWOFFSET, of a
windowed source WINDOWSTART and WINDOWEND, and the key columns, in this order. After a Join it has
the columns of the left side, then those of the right side, with the names that the join gave them,
and then the key if it is not a column of either (ROWKEY). After a Rekey it has the same columns,
and the whole key after them if an expression of it is not a column. After an Explode the functions'
columns come last (KSQL_SYNTH_0 and so on). After an Aggregate it has the aggregates, WINDOWSTART
and WINDOWEND if there is a window, and the key: the rules of GROUP BY let nothing else be used.
After a Project it has what was selected: without the key if a Sink follows, with it if the rows are
sent to a client. A Project before others has only what the steps after it need (sql/rewrite).

Steps whose rows are a table's (`is_table`) carry updates: a row replaces the one with the same key,
and no row deletes it. Names of steps are the paths of stores and internal topics: changing one is a
breaking change.

A query that replaced another one continues with its stores and internal topics. `earlier_rows` are
the columns of the rows that it may find there, one entry for each version before, oldest first.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sql.catalog import FormatInfo, TimestampColumn, WindowInfo
from sql.datatypes import Column, DataType
from sql.expressions import TypedExpression
from sql.functions.registry import AggregateOverload, TableOverload
from sql.schema import HeaderColumn
from sql.syntax.queries import JoinKind, WindowKind


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a step's rows."""

    key: tuple[Column, ...]
    row: tuple[Column, ...]
    is_table: bool
    window: WindowInfo | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a topic."""

    name: str
    source: str
    topic: str
    shape: Shape
    value: tuple[Column, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    headers: tuple[HeaderColumn, ...] = ()
    timestamp: TimestampColumn | None = None
    # Whether a table is kept in a store of its own, so that it can be asked.
    materialized: bool = False
    earlier_rows: tuple[tuple[Column, ...], ...] = ()  # of a table, in its store
    # The places of the columns that a table keeps in its store; None: all. `shape` has only these.
    kept: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which a condition is true; of a table the others become deletions."""

    name: str
    input: "PlanNode"
    condition: TypedExpression

    @property
    def shape(self) -> Shape:
        """As before."""
        return self.input.shape


@dataclass(frozen=True, slots=True)
class Project:
    """Other columns; the key stays, perhaps under other names."""

    name: str
    input: "PlanNode"
    columns: tuple[tuple[str, TypedExpression], ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Explode:
    """Table functions: one row for each of their rows, their values after the row's columns."""

    name: str
    input: "PlanNode"
    calls: tuple[tuple[TableOverload, tuple[TypedExpression, ...]], ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Rekey:
    """PARTITION BY, or what a join needs: a key of other values; none at all if no expression."""

    name: str
    input: "PlanNode"
    expressions: tuple[TypedExpression, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    shape: Shape


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The window of an aggregate."""

    kind: WindowKind
    size_ms: int
    advance_ms: int | None
    retention_ms: int | None
    grace_ms: int | None


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function of a group's rows."""

    function: AggregateOverload
    arguments: tuple[TypedExpression, ...]
    constants: tuple[object, ...]
    # The types of all arguments, for the function to make its aggregator with.
    types: tuple[DataType, ...]
    column: Column


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY: rows have the aggregates, then what their group is known by."""

    name: str
    input: "PlanNode"
    grouping: tuple[TypedExpression, ...]
    calls: tuple[AggregateCall, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    shape: Shape
    window: WindowSpec | None = None
    # Whether the input's key is the grouping already, so that nothing moves.
    by_key: bool = False
    final: bool = False
    earlier_rows: tuple[tuple[Column, ...], ...] = ()  # of the input, in the repartition topic


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """Two streams, within some time."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    before_ms: int
    after_ms: int
    grace_ms: int | None
    left_formats: tuple[FormatInfo, FormatInfo]
    right_formats: tuple[FormatInfo, FormatInfo]
    shape: Shape


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """A stream with the rows of a table as they are then."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    left_formats: tuple[FormatInfo, FormatInfo]
    shape: Shape


@dataclass(frozen=True, slots=True)
class TableJoin:
    """Two tables by their keys."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    shape: Shape


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin:
    """Two tables, by the key of the right one and an expression of the left one."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    foreign_key: TypedExpression
    left_formats: tuple[FormatInfo, FormatInfo]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Sink:
    """Rows to a topic; `timestamp` is the column that gives a record its time."""

    name: str
    input: "PlanNode"
    topic: str
    key_format: FormatInfo
    value_format: FormatInfo
    timestamp: TimestampColumn | None
    shape: Shape


PlanNode = (
    Scan
    | Filter
    | Project
    | Explode
    | Rekey
    | Aggregate
    | StreamJoin
    | StreamTableJoin
    | TableJoin
    | ForeignKeyJoin
    | Sink
)


def inputs(step: PlanNode) -> tuple[PlanNode, ...]:
    """The steps right before a step."""
    match step:
        case Scan():
            return ()
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            return (step.left, step.right)
        case _:
            return (step.input,)


def topics_read(step: PlanNode) -> tuple[str, ...]:
    """The topics that a plan reads, each once, in the order of the statement."""
    return tuple(dict.fromkeys(all_topics(step)))


def all_topics(step: PlanNode) -> Iterator[str]:
    """The topic of each Scan."""
    if isinstance(step, Scan):
        yield step.topic
    for each in inputs(step):
        yield from all_topics(each)
