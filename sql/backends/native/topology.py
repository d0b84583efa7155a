"""Plans to topologies: each step becomes calls of the streams DSL."""

from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from sql.backends.native.aggregating import aggregated
from sql.backends.native.joining import (
    joined_by_foreign_key,
    joined_streams,
    joined_tables,
    joined_with_table,
)
from sql.backends.native.sinks import written
from sql.backends.native.sources import scan
from sql.backends.native.stateless import exploded, filtered, projected, rekeyed
from sql.backends.native.steps import QueryContext, RowStream, RowTable
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
)
from streams.dsl.stream import Stream
from streams.dsl.table import Table


def application_id(service_id: str, query_id: str) -> str:
    """The id of a query's application: the beginning of the names of its internal topics."""
    return f"_confluent-ksql-{service_id}query_{query_id}"


def add_query(plan: Sink, context: QueryContext) -> None:
    """Add a persistent query to the topology that the context's builder makes."""
    written(plan, lower(plan.input, context), context)


def lower(step: PlanNode, context: QueryContext) -> RowStream | RowTable:
    """The stream or table of a step's rows."""
    match step:
        case Scan():
            return scan(step, context)
        case Filter():
            return filtered(step, lower(step.input, context), context)
        case Project():
            return projected(step, lower(step.input, context), context)
        case Explode():
            return exploded(step, _stream(step.input, context), context)
        case Rekey():
            return rekeyed(step, lower(step.input, context), context)
        case Aggregate():
            return aggregated(step, lower(step.input, context), context)
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            return _joined(step, context)
        case Sink():
            raise AssertionError("a sink is the last step")
        case _:
            assert_never(step)


def _joined(
    step: StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin, context: QueryContext
) -> RowStream | RowTable:
    counts = Counter(_all_topics(step))
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


def _stream(step: PlanNode, context: QueryContext) -> RowStream:
    rows = lower(step, context)
    assert isinstance(rows, Stream), f"step {step.name} is no stream"
    return rows


def _table(step: PlanNode, context: QueryContext) -> RowTable:
    rows = lower(step, context)
    assert isinstance(rows, Table), f"step {step.name} is no table"
    return rows


def topics_read(step: PlanNode) -> tuple[str, ...]:
    """The topics that a plan reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(_all_topics(step)))


def _all_topics(step: PlanNode) -> Iterator[str]:
    match step:
        case Scan():
            yield step.topic
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            yield from _all_topics(step.left)
            yield from _all_topics(step.right)
        case _:
            yield from _all_topics(step.input)
