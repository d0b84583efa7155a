"""Pull queries: the current rows of a table's stores, or of a stream's topic."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from broker.client.opening import Target
from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.evaluating import predicate, row_function
from sql.backends.native.materialized import Materialized, StoredRow
from sql.backends.native.rows import value_serde
from sql.datatypes import INT, DataType, is_numeric
from sql.engine.insert_records import NotCoercible, coerced, constant_value
from sql.engine.pull_rules import SEE
from sql.engine.results import ResultColumn
from sql.engine.topic_rows import records_to_end, row_reader
from sql.errors import StatementFailed
from sql.expressions import (
    Among,
    Both,
    ColumnValue,
    Comparing,
    Convert,
    Either,
    TypedExpression,
    names_used,
)
from sql.plan import Filter, PlanNode, Project, Scan
from sql.rows.row_format import Row
from sql.schema import WINDOW_BOUNDS
from sql.syntax.queries import Query

ADD_EMIT = f"{SEE}\nAdd EMIT CHANGES if you intended to issue a push query."
KEYS_MAX = 10_000
PROTOBUFS = ("PROTOBUF", "PROTOBUF_NOSR")


def check_pull(query: Query) -> None:
    """Refuse clauses that only push queries support."""
    clauses = (
        ("JOIN", bool(query.joins)),
        ("WINDOW", query.window is not None),
        ("GROUP BY", bool(query.group_by)),
        ("PARTITION BY", bool(query.partition_by)),
        ("HAVING", query.having is not None),
    )
    for name, present in clauses:
        if present:
            raise StatementFailed(f"Pull queries don't support {name} clauses. {ADD_EMIT}")
    if query.limit is not None and query.limit < 0:
        raise StatementFailed(
            f"Pull queries don't support negative integers in the LIMIT clause. {ADD_EMIT}"
        )


@dataclass(frozen=True, slots=True)
class PullPlan:
    """The parts of a query on one source: its scan, the conditions and the projection."""

    scan: Scan
    conditions: tuple[TypedExpression, ...]
    project: Project

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of a table's result, including which ones are key columns."""
        keys = {each.name for each in self.scan.shape.key}
        keys |= {each.name for each in WINDOW_BOUNDS}
        return tuple(
            ResultColumn(
                column.name, column.type, isinstance(value, ColumnValue) and value.name in keys
            )
            for column, (_, value) in zip(self.project.shape.row, self.project.columns, strict=True)
        )

    @property
    def plain_columns(self) -> tuple[ResultColumn, ...]:
        """The columns of a stream's result."""
        return tuple(ResultColumn(each.name, each.type) for each in self.project.shape.row)

    def selecting(self) -> Callable[[Row], Row | None]:
        """A function from the source's rows to those of the query, or None."""
        conditions = [predicate(each, _forget) for each in self.conditions]
        select = row_function([each for _, each in self.project.columns], _forget)

        def selected(row: Row) -> Row | None:
            return select(row) if all(holds(row) for holds in conditions) else None

        return selected


def _forget(error: Exception, row: Row | None) -> None:
    """Do nothing: an expression that fails in a pull query gives null."""


def pull_plan(plan: PlanNode) -> PullPlan:
    """The parts of a planned query."""
    assert isinstance(plan, Project), "a shown query ends with what is selected"
    conditions: list[TypedExpression] = []
    step = plan.input
    while isinstance(step, Filter):
        conditions.append(step.condition)
        step = step.input
    if not isinstance(step, Scan):
        raise StatementFailed(f"Pull queries don't support table functions. {ADD_EMIT}")
    result = PullPlan(step, tuple(conditions), plan)
    _check_columns(result)
    return result


def _check_columns(plan: PullPlan) -> None:
    seen: set[str] = set()
    for each in plan.columns:
        if each.name in seen:
            raise StatementFailed(f"Duplicate value columns found in schema: {each}")
        seen.add(each.name)
    refused = ("ROWPARTITION", "ROWOFFSET")
    for clause, expressions in (
        ("SELECT", [each for _, each in plan.project.columns]),
        ("WHERE", list(plan.conditions)),
    ):
        used = names_used(tuple(expressions))
        wrong = [f"`{name}`" for name in refused if name in used]
        if wrong:
            raise StatementFailed(
                f"Pull queries don't support the following columns in {clause} clauses: "
                f"{', '.join(wrong)}"
            )


# --- keys -------------------------------------------------------------------------------------

# The values of key columns in a condition: alternatives, each with the values of some columns.
Alternatives = list[Mapping[str, object]]


def requested_keys(plan: PullPlan) -> list[Row] | None:
    """The requested keys; None if all rows must be read."""
    columns = {each.name: each.type for each in plan.scan.shape.key}
    names = list(columns)
    found: Alternatives = [{}]
    for each in plan.conditions:
        more = _alternatives(each, columns)
        if more is not None:
            merged = _merged(found, more)
            if merged is None:
                return None
            found = merged
    if not all(set(each) == set(names) for each in found):
        return None
    keys = [tuple(each[name] for name in names) for each in found]
    unique: list[Row] = []
    for key in keys:
        if key not in unique and None not in key:
            unique.append(key)
    return unique


def _alternatives(
    condition: TypedExpression, columns: Mapping[str, DataType]
) -> Alternatives | None:
    match condition:
        case Comparing(operator="=", left=left, right=right):
            for column, other in ((left, right), (right, left)):
                result = _looked_up(column, (other,), columns)
                if result is not None:
                    return result
            return None
        case Among():
            return _looked_up(condition.value, condition.choices, columns)
        case Both(left=left, right=right):
            first, second = _alternatives(left, columns), _alternatives(right, columns)
            if first is None or second is None:
                return first if second is None else second
            return _merged(first, second)
        case Either(left=left, right=right):
            first, second = _alternatives(left, columns), _alternatives(right, columns)
            return None if first is None or second is None else [*first, *second]
        case _:
            return None


def _looked_up(
    value: TypedExpression, others: Sequence[TypedExpression], columns: Mapping[str, DataType]
) -> Alternatives | None:
    """The values of a key column; None if it is not a key column, or its values are not known."""
    if (
        isinstance(value, Convert)
        and is_numeric(value.type)
        and is_numeric(value.value.type or INT)
    ):
        value = value.value
    if not isinstance(value, ColumnValue) or value.name not in columns:
        return None
    if names_used(tuple(others)):
        return None
    try:
        return [
            {value.name: coerced(constant_value(each), each.type, columns[value.name])}
            for each in others
        ]
    except NotCoercible:
        return None


def _merged(first: Alternatives, second: Alternatives) -> Alternatives | None:
    if len(first) * len(second) > KEYS_MAX:
        return None
    return [
        {**one, **two}
        for one, two in product(first, second)
        if all(two[name] == value for name, value in one.items() if name in two)
    ]


# --- tables -----------------------------------------------------------------------------------


# Any: stores of the kind that Materialized has.
def table_rows(plan: PullPlan, where: Materialized, stores: Sequence[Any]) -> Iterator[Row]:
    """The rows of a pull query on a table."""
    keys = requested_keys(plan)
    selected = plan.selecting()
    found = (
        where.all(stores)
        if keys is None
        else (row for key in keys for row in where.get(stores, key))
    )
    as_read = _as_read(plan.scan)
    for each in found:
        row = selected(_row_of(each, plan.scan, as_read))
        if row is not None:
            yield row


def _as_read(scan: Scan) -> Callable[[Row], Row]:
    """A row as read from the topic: by default, Protobuf has no nulls."""
    info = scan.value_format
    if info.name not in PROTOBUFS or info.nullable is not None:
        return lambda row: row
    serde = value_serde(replace(info, name="PROTOBUF_NOSR", schema_id=None), scan.value, None)

    def read_back(row: Row) -> Row:
        return serde.deserialize(scan.topic, serde.serialize(scan.topic, row)) or row

    return read_back


def _row_of(stored: StoredRow, scan: Scan, as_read: Callable[[Row], Row]) -> Row:
    """A stored row in the form of the table's Scan."""
    values = stored.values
    if len(values) == len(scan.shape.row):
        return values  # of a source table, whose store contains whole rows
    values = as_read(values)
    place = (stored.timestamp_ms, None, None)
    return (*values, *(None,) * len(scan.headers), *place, *(stored.window or ()), *stored.key)


# --- streams ----------------------------------------------------------------------------------


def stream_rows(plan: PullPlan, target: Target, registry: SchemaRegistry | None) -> Iterator[Row]:
    """The rows of a pull query on a stream: its topic, up to its current end."""
    selected, read = plan.selecting(), row_reader(plan.scan, registry)
    for record in records_to_end(target, plan.scan.topic):
        row = read(record)
        shown = None if row is None else selected(row)
        if shown is not None:
            yield shown
