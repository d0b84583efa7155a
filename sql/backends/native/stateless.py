"""Filter, Project, Explode and Rekey: steps on single rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from sql.backends.native.evaluating import predicate, row_function, table_function
from sql.backends.native.expressions import Log
from sql.backends.native.row_run import RowRun
from sql.backends.native.rows import internal_key_serde, stored_rows
from sql.backends.native.steps import RowStream, RowTable, StepContext, then
from sql.expressions import Constant, names_used
from sql.plan import Explode, Filter, Project, Rekey
from sql.rows.row_format import Row
from streams.dsl.table import Table
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed

REKEY = "SQL-REKEY-"


def filtered_table(step: Filter, rows: RowTable, context: StepContext) -> RowTable:
    """Rows for which the condition is true."""
    condition = predicate(step.condition, context.log_of(step.name))
    return rows.filter(lambda key, row: condition(row))


def projected_table(step: Project, rows: RowTable, context: StepContext) -> RowTable:
    """Other columns."""
    return rows.map_values(
        row_function([each for _, each in step.columns], context.log_of(step.name))
    )


def with_step(run: RowRun, step: Filter | Project, context: StepContext) -> RowRun:
    """Add a filter or a projection to a stream's run."""
    log = context.log_of(step.name)
    if isinstance(step, Filter):
        return run.kept(step.condition, log)
    return run.selected([each for _, each in step.columns], log)


def exploded(step: Explode, rows: RowStream, context: StepContext) -> RowStream:
    """One row for each row of the table functions; shorter results are filled with nulls."""
    log = context.log_of(step.name)
    calls = [table_function(overload, given, log) for overload, given in step.calls]

    def explode(row: Row | None) -> Iterator[Row]:
        if row is None:
            return
        lists = [call(row) for call in calls]
        for index in range(max(map(len, lists), default=0)):
            yield (*row, *(each[index] if index < len(each) else None for each in lists))

    return rows.flat_map_values(explode)


def rekeyed(step: Rekey, rows: RowStream | RowTable, context: StepContext) -> RowStream | RowTable:
    """Rows with another key; new key columns are added to the row."""
    key = internal_key_serde(step.key_format, step.shape.key, context.registry)
    operator = rekeying(step, context.log_of(step.name))
    if not isinstance(rows, Table):
        moved = then(rows, REKEY, operator, new_key=True)
        moved.node.key_serde = key
        return moved
    moved = then(rows.to_stream(), REKEY, operator, new_key=True)
    moved.node.key_serde = key
    return moved.to_table(
        name=context.name_of(step, "-SelectKey"),
        store=context.name_of(step, "-Materialize"),
        key=key,
        value=stored_rows(step.shape.row),
        caching=False,
    )


def rekeying(step: Rekey, log: Log) -> "RekeyRows":
    """The function that gives records another key."""
    values = row_function(step.expressions, log)
    return RekeyRows(values, _row_of_new_key(step), _key_of_no_values(step, log))


@dataclass(frozen=True, slots=True)
class RekeyRows:
    """Gives records another key; for rows without values, from the columns of the old key."""

    key_values: Callable[[Row], Row]
    make_row: Callable[[Row, Row], Row]
    key_of_no_values: Callable[[object], Row]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, rekey = context.forward, self.rekey

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(*rekey(key, cast("Row | None", value)), timestamp_ms, headers)

        return process

    def rekey(self, key: object, row: Row | None) -> tuple[Row | None, Row | None]:
        """The other key, and the row with it."""
        if row is None:
            return as_key(self.key_of_no_values(key)), None
        values = self.key_values(row)
        return as_key(values), self.make_row(row, values)


def as_key(values: Row) -> Row | None:
    """The key of some values; a single null means no key."""
    return None if not values or (len(values) == 1 and values[0] is None) else values


def _row_of_new_key(step: Rekey) -> Callable[[Row, Row], Row]:
    added = [each.name for each in step.shape.row[len(step.input.shape.row) :]]
    if not added:
        return lambda row, key: row
    names = [each.name for each in step.shape.key]
    places = [names.index(each) for each in added]
    return lambda row, key: (*row, *(key[place] for place in places))


def _key_of_no_values(step: Rekey, log: Log) -> Callable[[object], Row]:
    """The new key of a row of which only the old key is known; expressions of values are null."""
    shape = step.input.shape
    names = [each.name for each in shape.key]
    places = [names.index(each.name) if each.name in names else None for each in shape.row]
    values = row_function(
        [
            each if names_used(each) <= set(names) else Constant(None, each.type)
            for each in step.expressions
        ],
        log,
    )

    def key_of(key: object) -> Row:
        plain = key.key if isinstance(key, Windowed) else key
        known = (None,) * len(names) if plain is None else cast("Row", plain)
        return values(tuple(None if place is None else known[place] for place in places))

    return key_of
