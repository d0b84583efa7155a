"""Materialized: looks up the rows of a persistent query's table in its stores.

A table's rows are computed from the nearest store below: that of an aggregation, or of a source
table. A table without one, such as the result of a join, gets its own store when it is written.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sql.backends.native.aggregating import group_row
from sql.backends.native.evaluating import predicate, row_function
from sql.backends.native.rows import stored_rows, windowed
from sql.backends.native.sinks import written
from sql.backends.native.steps import RowTable, StepContext, then
from sql.backends.native.tap import Tap
from sql.backends.native.topology import find_used_columns, lower, lower_result
from sql.plan import Aggregate, Filter, PlanNode, Project, Scan, Shape, Sink
from sql.rows.row_format import Row
from sql.syntax.queries import WindowKind
from streams.dsl.table import Table
from streams.record import Windowed

FOREVER_MS = (1 << 63) - 1
TAP = "SQL-TAP-"
MATERIALIZED_SUFFIX = "-Materialize"  # the suffix of stores that only hold results

# The row of a key and its stored value; None if the table has no such row.
RowOf = Callable[[object, Row], Row | None]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of a table: its key, the bounds of its window if it has one, its values and time."""

    key: Row
    window: tuple[int, int] | None
    values: Row
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Materialized:
    """The stored rows of a table."""

    store: str
    shape: Shape
    row_of: RowOf
    # The windows of an aggregation, which its store handles separately from keys.
    windows: WindowKind | None = None

    # Any: queries of streams.state.query, of the kind of the store.
    def all(self, partitions: Sequence[Any]) -> Iterator[StoredRow]:
        """All rows of some partitions."""
        for store in partitions:
            yield from self._rows(store.all())

    def get(self, partitions: Sequence[Any], key: Row) -> Iterator[StoredRow]:
        """The rows of a key: one, or one for each window."""
        for store in partitions:
            yield from self._of_key(store, key)

    def _of_key(self, store: Any, key: Row) -> Iterator[StoredRow]:
        if self.windows is WindowKind.SESSION:
            return self._rows(store.fetch(key))
        if self.windows is not None:
            return self._rows(_windows_of(key, store, self._size_ms))
        if self.shape.window is not None:
            return (each for each in self._rows(store.all()) if each.key == key)
        found = store.get(key)
        return self._rows(iter(() if found is None else ((key, found),)))

    @property
    def _size_ms(self) -> int:
        window = self.shape.window
        return 0 if window is None or window.size_ms is None else window.size_ms

    def _rows(self, entries: Iterator[tuple[Any, Any]]) -> Iterator[StoredRow]:
        size_ms = self._size_ms
        for key, found in entries:
            window, plain = None, key
            if isinstance(key, Windowed):
                plain, start_ms, end_ms = key
                window = (start_ms, start_ms + size_ms if size_ms else end_ms)
            if self.windows is WindowKind.SESSION:
                assert window is not None, "sessions have bounds"
                stored, timestamp_ms = found, window[1]
            else:
                stored, timestamp_ms = found
            row = self.row_of(key, stored)
            if row is not None:
                yield StoredRow(cast("Row", plain), window, row, timestamp_ms)


# Any: as above.
def _windows_of(key: Row, store: Any, size_ms: int) -> Iterator[tuple[Windowed[Row], Any]]:
    for start_ms, found in store.fetch(key, 0, FOREVER_MS):
        yield Windowed(key, start_ms, start_ms + size_ms), found


def materialized(step: PlanNode, context: StepContext) -> Materialized | None:
    """The stored rows of a table's step; None if no store contains them."""
    match step:
        case Scan():
            store = context.name_of(step, "-Reduce")
            return Materialized(store, step.shape, lambda key, row: row)
        case Aggregate():
            kind = None if step.window is None else step.window.kind
            row_of = group_row(step, context)
            return Materialized(
                context.name_of(step, "-Aggregate-Materialize"), step.shape, row_of, kind
            )
        case Filter():
            return _filtered(step, context)
        case Project():
            return _projected(step, context)
        case _:
            return None


def _filtered(step: Filter, context: StepContext) -> Materialized | None:
    below = materialized(step.input, context)
    if below is None:
        return None
    condition, row_below = predicate(step.condition, context.log_of(step.name)), below.row_of

    def row_of(key: object, stored: Row) -> Row | None:
        row = row_below(key, stored)
        return row if row is not None and condition(row) else None

    return Materialized(below.store, step.shape, row_of, below.windows)


def _projected(step: Project, context: StepContext) -> Materialized | None:
    below = materialized(step.input, context)
    if below is None:
        return None
    select = row_function([each for _, each in step.columns], context.log_of(step.name))
    row_below = below.row_of

    def row_of(key: object, stored: Row) -> Row | None:
        row = row_below(key, stored)
        return None if row is None else select(row)

    return Materialized(below.store, step.shape, row_of, below.windows)


def stored_rows_of(plan: PlanNode, context: StepContext) -> Materialized | None:
    """The stored rows of a query that `add_queryable` adds, if it is a table."""
    if not isinstance(plan, Sink):
        return materialized(plan, context)
    if not plan.input.shape.is_table:
        return None
    result = materialized(plan.input, context)
    if result is None:
        store = context.name_of(plan, MATERIALIZED_SUFFIX)
        result = Materialized(store, plan.input.shape, lambda key, row: row)
    return result


def add_queryable(
    plan: PlanNode, context: StepContext, tap: Tap | None = None
) -> Materialized | None:
    """Add a persistent query to the topology; returns its stored rows, if it is a table."""
    result = stored_rows_of(plan, context)
    if not isinstance(plan, Sink):
        assert isinstance(plan, Scan), "only source tables are kept without being written"
        lower(plan, context)
        return result
    find_used_columns(plan, context)
    if result is not None and result.store == context.name_of(plan, MATERIALIZED_SUFFIX):
        changes = _stored_table(plan, result, context).to_stream()
        written(plan, changes if tap is None else then(changes, TAP, tap), context)
    else:
        written(plan, lower_result(plan.input, context, tap), context)
    return result


def _stored_table(plan: Sink, found: Materialized, context: StepContext) -> RowTable:
    """The table in its own store."""
    rows, shape = lower(plan.input, context), found.shape
    assert isinstance(rows, Table), "a table's step gives a table"
    return rows.map_values(
        lambda row: row,
        store=found.store,
        key=windowed(stored_rows(shape.key), shape.window),
        value=stored_rows(shape.row),
        caching=False,
    )
