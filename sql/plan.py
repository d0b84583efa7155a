"""Plan: the steps of a query, independent of the engine.

A step has input rows and output rows. A row has a key and values: `shape.key` lists the key
columns, `shape.row` all columns that expressions of later steps may use; ColumnValue.index is an
index in it. After a Scan a row has the value columns, the header columns, ROWTIME, ROWPARTITION,
ROWOFFSET, of a windowed source WINDOWSTART and WINDOWEND, and the key columns, in this order. After
a Join it has the columns of the left side, then those of the right side, with the names from the
join, and then the key if it is not a column of either side (ROWKEY). After a Rekey it has the same
columns, followed by the whole key if one of its expressions is not a column. After an Explode the
functions' columns come last (KSQL_SYNTH_0 and so on). After an Aggregate it has the aggregates,
WINDOWSTART and WINDOWEND if there is a window, and the key: GROUP BY does not allow any others.
After a Project it has the selected columns: without the key if a Sink follows, with it if the rows
are sent to a client. A Project before other steps only has the columns that they need
(sql/rewrite).

Steps with table rows (`is_table`) have updates: a row replaces the one with the same key, and a
tombstone deletes it. Names of steps are part of the names of stores and internal topics: changing
one is a breaking change.

A query that replaced another one continues with its stores and internal topics. `earlier_rows` are
the columns of rows that it may find there, one entry per previous version, oldest first.
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
    # Whether a table has its own store, for pull queries.
    materialized: bool = False
    earlier_rows: tuple[tuple[Column, ...], ...] = ()  # of a table, in its store
    # The indexes of the columns in a table's store; None: all. `shape` has only these.
    kept: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which a condition is true; rows of a table that do not match become tombstones."""

    name: str
    input: "PlanNode"
    condition: TypedExpression

    @property
    def shape(self) -> Shape:
        """The shape of the input."""
        return self.input.shape


@dataclass(frozen=True, slots=True)
class Project:
    """Other columns; the key columns are kept, possibly renamed."""

    name: str
    input: "PlanNode"
    columns: tuple[tuple[str, TypedExpression], ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Explode:
    """Table functions: one row for each of their rows, whose values follow the row's columns."""

    name: str
    input: "PlanNode"
    calls: tuple[tuple[TableOverload, tuple[TypedExpression, ...]], ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Rekey:
    """PARTITION BY, or the repartitioning of a join: a new key; no key without expressions."""

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
    # The types of all arguments, from which the function creates its aggregator.
    types: tuple[DataType, ...]
    column: Column


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY: rows have the aggregates, then the columns that identify the group."""

    name: str
    input: "PlanNode"
    grouping: tuple[TypedExpression, ...]
    calls: tuple[AggregateCall, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    shape: Shape
    window: WindowSpec | None = None
    # Whether the input's key is already the grouping, so that no repartitioning is needed.
    by_key: bool = False
    final: bool = False
    earlier_rows: tuple[tuple[Column, ...], ...] = ()  # of the input, in the repartition topic


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """Two streams, joined within a time span."""

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
    """A stream, joined with the current rows of a table."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    left_formats: tuple[FormatInfo, FormatInfo]
    shape: Shape


@dataclass(frozen=True, slots=True)
class TableJoin:
    """Two tables, joined by their keys."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    shape: Shape


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin:
    """Two tables, joined by the key of the right one and an expression of the left one."""

    name: str
    kind: JoinKind
    left: "PlanNode"
    right: "PlanNode"
    foreign_key: TypedExpression
    left_formats: tuple[FormatInfo, FormatInfo]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Sink:
    """Writes rows to a topic; `timestamp` is the column with the timestamps of records."""

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
    """The direct inputs of a step."""
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
