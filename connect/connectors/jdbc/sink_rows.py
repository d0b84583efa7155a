"""Operations of a transaction: the rows to write, only the last one per key.

Rows with different keys may be written in any order, so a chunk of records becomes one DELETE and
one UPSERT for each kind of row: deletes come first, and the last record of a key decides whether it
has a row afterwards. Only INSERT keeps every record and their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from connect.connectors.jdbc.dialects.dialect import Action, Conversion, Row, Target
from connect.connectors.jdbc.row_plan import RowPlan
from connect.records import SinkRecord


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """How records with one pair of schemas are written to one table."""

    plan: RowPlan
    target: Target
    conversions: tuple[tuple[int, Conversion], ...]  # of columns that need them


class PreparedRow(NamedTuple):
    """A record and its row; if the row is to be deleted, only its key."""

    record: SinkRecord
    table_plan: TablePlan
    row: tuple[object, ...]
    is_delete: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """Rows that one action writes into one target."""

    action: Action
    target: Target
    rows: Sequence[Row]


def operations(action: Action, rows: Sequence[PreparedRow]) -> Iterator[Operation]:
    """The operations for the rows, in order."""
    made = _in_order(rows) if action is Action.INSERT else _by_key(action, rows)
    for operation_action, table_plan, values in made:
        yield Operation(operation_action, table_plan.target, _converted(table_plan, values))


_Made = tuple[Action, TablePlan, list[Row]]


def _in_order(rows: Sequence[PreparedRow]) -> Iterator[_Made]:
    current: _Made | None = None
    for _, table_plan, row, is_delete in rows:
        action = Action.DELETE if is_delete else Action.INSERT
        if current is None or current[0] is not action or current[1] is not table_plan:
            if current is not None:
                yield current
            current = (action, table_plan, [])
        current[2].append(row)
    if current is not None:
        yield current


@dataclass(slots=True)
class _Pending:
    """The last row or delete of each key."""

    deletes: dict[Row, TablePlan] = field(default_factory=dict)
    rows: dict[Row, tuple[TablePlan, Row]] = field(default_factory=dict)


def _by_key(action: Action, rows: Sequence[PreparedRow]) -> Iterator[_Made]:
    first = rows[0].table_plan
    if all(table_plan is first and not is_delete for _, table_plan, _, is_delete in rows):
        # The common case: rows of one kind; the last one of each key is kept.
        key_count = first.plan.key_count
        latest = {row[:key_count]: row for _, _, row, _ in rows}
        yield action, first, list(latest.values())
        return
    pending = _Pending()
    for _, table_plan, row, is_delete in rows:
        key = row[: table_plan.plan.key_count]
        before = pending.rows.pop(key, None)
        if is_delete:
            pending.deletes[key] = table_plan
            continue
        if before is not None and before[0] is not table_plan:
            # The earlier row has columns that the later one does not set.
            pending.rows[key] = before
            yield from _flushed(action, pending)
            pending = _Pending()
        pending.rows[key] = (table_plan, row)
    yield from _flushed(action, pending)


def _flushed(action: Action, pending: _Pending) -> Iterator[_Made]:
    deletes: dict[TablePlan, list[Row]] = {}
    for key, table_plan in pending.deletes.items():
        deletes.setdefault(table_plan, []).append(key)
    writes: dict[TablePlan, list[Row]] = {}
    for table_plan, row in pending.rows.values():
        writes.setdefault(table_plan, []).append(row)
    for table_plan, keys in deletes.items():
        yield Action.DELETE, table_plan, keys
    for table_plan, values in writes.items():
        yield action, table_plan, values


def _converted(table_plan: TablePlan, rows: list[Row]) -> Sequence[Row]:
    """Rows as the driver accepts them: whole columns are converted at once."""
    if not table_plan.conversions or not rows:
        return rows
    columns: list[Sequence[object]] = list(zip(*rows, strict=True))
    for position, convert in table_plan.conversions:
        column = columns[position]
        if None in column:
            columns[position] = [None if value is None else convert(value) for value in column]
        else:
            columns[position] = list(map(convert, column))
    return list(zip(*columns, strict=True))
