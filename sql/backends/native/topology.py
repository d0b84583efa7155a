"""Lowers plans to topologies: each step becomes calls of the streams DSL."""

from collections import Counter
from typing import assert_never

from sql.backends.native.aggregating import (
    aggregated,
    changed_groups,
    grouped_stream,
    grouped_table,
)
from sql.backends.native.expressions import refusing_depth
from sql.backends.native.joining import (
    joined_by_foreign_key,
    joined_streams,
    joined_tables,
    joined_with_table,
)
from sql.backends.native.row_run import RowRun, ValueIsRow
from sql.backends.native.sinks import written
from sql.backends.native.sources import scanned_rows, scanned_table
from sql.backends.native.stateless import (
    exploded,
    filtered_table,
    projected_table,
    rekeyed,
    with_step,
)
from sql.backends.native.steps import RowStream, RowTable, StepContext
from sql.backends.native.tap import Tap
from sql.expressions import names_used
from sql.plan import (
    Aggregate,
    Explode,
    Filter,
    ForeignKeyJoin,
    PlanNode,
    Project,
    Rekey,
    Scan,
    Sink,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
    all_topics,
)
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.handlers import Failure, FailureKind


def application_id(service_id: str, query_id: str) -> str:
    """The id of a query's application: the prefix of its internal topics."""
    return f"_confluent-ksql-{service_id}query_{query_id}"


def is_internal(failure: Failure, application_id: str) -> bool:
    """Whether an unreadable record is from an internal topic of an application."""
    return (
        failure.kind is FailureKind.DESERIALIZATION
        and failure.position is not None
        and failure.position.topic.startswith(f"{application_id}-")
    )


def add_query(plan: Sink, context: StepContext) -> None:
    """Add a persistent query to the topology of the context's builder."""
    find_used_columns(plan, context)
    written(plan, lower_result(plan.input, context), context)


def find_used_columns(plan: PlanNode, context: StepContext) -> None:
    """Determine the columns that a query uses, so that steps can omit the others."""
    with refusing_depth():
        context.columns_used.update(names_used(plan) or {""})


def lower_result(step: PlanNode, context: StepContext, tap: Tap | None = None) -> RowStream:
    """The stream of a query's results, or of its table's changes; readers may watch `tap`."""
    run = _run_of_groups(step, context)
    if run is None and not step.shape.is_table:
        run = _run(step, context)
    if run is None:
        run = RowRun(_table(step, context).to_stream(), ValueIsRow())
    return (run if tap is None else run.tapped(tap)).added()


def lower(step: PlanNode, context: StepContext) -> RowStream | RowTable:
    """The stream or table of a step's rows."""
    match step:
        case Scan() | Filter() | Project():
            if not step.shape.is_table:
                return _run(step, context).added()
            return _lower_table(step, context)
        case Explode():
            return exploded(step, _stream(step.input, context), context)
        case Rekey():
            return rekeyed(step, lower(step.input, context), context)
        case Aggregate():
            return aggregated(step, _groups(step, context), context)
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            return _joined(step, context)
        case Sink():
            raise AssertionError("a sink is the last step")
        case _:
            assert_never(step)


def _lower_table(step: Scan | Filter | Project, context: StepContext) -> RowTable:
    match step:
        case Scan():
            return scanned_table(step, context)
        case Filter():
            return filtered_table(step, _table(step.input, context), context)
        case Project():
            return projected_table(step, _table(step.input, context), context)


def _run(step: PlanNode, context: StepContext) -> RowRun:
    """The rows of a stream's step, including all previous steps on single rows."""
    match step:
        case Filter() | Project():
            return with_step(_run(step.input, context), step, context)
        case Scan():
            return scanned_rows(step, context)
        case _:
            return RowRun(_stream(step, context), ValueIsRow())


def _groups(step: Aggregate, context: StepContext) -> RowTable:
    """The states of groups."""
    if step.input.shape.is_table:
        return grouped_table(step, _table(step.input, context), context)
    return grouped_stream(step, _run(step.input, context), context)


def _run_of_groups(step: PlanNode, context: StepContext) -> RowRun | None:
    """The changes of groups, if only a projection of columns follows before the results."""
    match step:
        case Project():
            run = _run_of_groups(step.input, context)
            return None if run is None else with_step(run, step, context)
        case Aggregate():
            return changed_groups(step, _groups(step, context), context)
        case _:
            return None


def _joined(
    step: StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin, context: StepContext
) -> RowStream | RowTable:
    counts = Counter(all_topics(step))
    context.shared_topics.update(topic for topic, count in counts.items() if count > 1)
    match step:
        case StreamJoin():
            left, right = _stream(step.left, context), _stream(step.right, context)
            return joined_streams(step, left, right, context)
        case StreamTableJoin():
            stream, table = _stream(step.left, context), _table(step.right, context)
            return joined_with_table(step, stream, table, context)
        case TableJoin():
            tables = _table(step.left, context), _table(step.right, context)
            return joined_tables(step, *tables, context)
        case ForeignKeyJoin():
            tables = _table(step.left, context), _table(step.right, context)
            return joined_by_foreign_key(step, *tables, context)


def _stream(step: PlanNode, context: StepContext) -> RowStream:
    rows = lower(step, context)
    assert isinstance(rows, Stream), f"step {step.name} is not a stream"
    return rows


def _table(step: PlanNode, context: StepContext) -> RowTable:
    rows = lower(step, context)
    assert isinstance(rows, Table), f"step {step.name} is not a table"
    return rows
