"""Push queries: a query that runs for one reader, and ends with it.

It is an application of its own, from the end of its topics or their beginning as auto.offset.reset
says. Where "the end" is, is decided before it starts, so that nothing written after the answer's
header is missed.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from broker.client.opening import Target, admin
from broker.client.serde.rows.row_format import Row
from broker.errors import MillstreamError
from broker.model import TopicPartition
from sql.backends.native.steps import QueryContext, RowStream, then
from sql.backends.native.topology import lower
from sql.engine.results import LIMIT_REACHED, ResultColumn, ResultRow, RowQueue
from sql.expressions import ColumnValue
from sql.plan import PlanNode, Project, Scan
from sql.planner import PlannedQuery
from sql.schema import WINDOW_BOUNDS
from streams.app import AppState, StreamsApp
from streams.dsl.table import Table
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed

DELIVER = "SQL-DELIVER-"
LATEST = -1


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hands rows over instead of writing them."""

    deliver: Callable[[object, Row | None], None]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        deliver = self.deliver

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            deliver(key, cast("Row | None", value))

        return process


def add_delivery(
    plan: PlanNode, context: QueryContext, deliver: Callable[[object, Row | None], None]
) -> None:
    """Add a query to the topology whose rows are handed over."""
    rows = lower(plan, context)
    stream: RowStream = rows.to_stream() if isinstance(rows, Table) else rows
    then(stream, DELIVER, Deliver(deliver))


def tombstone_values(plan: PlanNode) -> Callable[[object], Row]:
    """From a table's key to the row that says it is gone: nulls but for the key's columns."""
    assert isinstance(plan, Project), "a shown query ends with what is selected"
    names = [each.name for each in plan.input.shape.key]
    bounds = [each.name for each in WINDOW_BOUNDS]
    places: list[tuple[str, int] | None] = []
    for _, value in plan.columns:
        if isinstance(value, ColumnValue) and value.name in names:
            places.append(("key", names.index(value.name)))
        elif isinstance(value, ColumnValue) and value.name in bounds:
            places.append(("window", bounds.index(value.name)))
        else:
            places.append(None)

    def values(key: object) -> Row:
        plain: object = key
        window: Row = (None, None)
        if isinstance(key, Windowed):
            plain, *found = key
            window = tuple(found)
        parts = {"key": cast("Row", plain), "window": window}
        return tuple(None if each is None else parts[each[0]][each[1]] for each in places)

    return values


class PushQuery:
    """A running push query; see QueryResult."""

    def __init__(  # noqa: PLR0913 - what a query must be given
        self,
        query_id: str,
        text: str,
        planned: PlannedQuery,
        app: StreamsApp,
        queue: RowQueue,
        *,
        target: Target,
        on_close: Callable[["PushQuery"], None],
    ) -> None:
        """`start` runs it; `on_close` is called once, when it has ended."""
        self.query_id = query_id
        self.text = text
        self.planned = planned
        self._app = app
        self._queue = queue
        self._target = target
        self._on_close = on_close
        self._limit = planned.limit
        self._taken = 0
        self._lock = threading.Lock()
        self._closed = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """What its rows have."""
        return tuple(ResultColumn(each.name, each.type) for each in self.planned.plan.shape.row)

    @property
    def is_push(self) -> bool:
        """Rows come until someone stops it."""
        return True

    @property
    def final_message(self) -> str | None:
        """What is said at the end."""
        return LIMIT_REACHED if self._at_limit else None

    @property
    def application_id(self) -> str:
        """The group that reads for it."""
        return self._app.config.application_id

    @property
    def _at_limit(self) -> bool:
        return self._limit is not None and self._taken >= self._limit

    def start(self) -> None:
        """Decide where to begin, and run."""
        if self._at_limit:
            return
        if self._app.config.auto_offset_reset == "latest":
            self._begin_at_end()
        self._app.on_state_change(self._changed)
        self._app.start()

    def _begin_at_end(self) -> None:
        topics = scanned_topics(self.planned.plan)
        with admin(self._target) as administration:
            described = administration.describe_topics(topics).values
            places = [
                TopicPartition(name, number)
                for name, info in described.items()
                for number in info.partitions
            ]
            administration.reset_group_offsets(
                self.application_id, dict.fromkeys(places, LATEST)
            ).all()

    def _changed(self, new: AppState, old: AppState) -> None:
        if new is AppState.ERROR:
            self._queue.end(self._app.error)

    def poll(self, timeout_ms: int) -> ResultRow | None:
        """The next row if it comes in time."""
        if self._at_limit:
            return None
        row = self._queue.take(timeout_ms)
        return self._counted(row)

    def rows(self) -> Iterator[ResultRow]:
        """Rows until the limit, or until it is closed."""
        while not self._at_limit:
            row = self._counted(self._queue.take())
            if row is None:
                break
            yield row
        self.close()

    def _counted(self, row: ResultRow | None) -> ResultRow | None:
        if row is not None:
            self._taken += 1
        return row

    @property
    def done(self) -> bool:
        """Whether no more rows will come."""
        return self._at_limit or self._queue.done

    def close(self) -> None:
        """Stop, and leave nothing behind."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._queue.drop()
        self._app.close()
        self._app.clean_up()
        try:
            with admin(self._target) as administration:
                prefix = f"{self.application_id}-"
                internal = [
                    each for each in administration.list_topics() if each.startswith(prefix)
                ]
                if internal:
                    administration.delete_topics(internal)
                administration.delete_groups([self.application_id])
        except MillstreamError:
            pass  # a broker that has gone away has nothing to clean up
        self._on_close(self)


def scanned_topics(step: PlanNode) -> list[str]:
    """The topics that a plan reads."""
    if isinstance(step, Scan):
        return [step.topic]
    found: list[str] = []
    for part in ("input", "left", "right"):
        below = getattr(step, part, None)
        if below is not None:
            found += [each for each in scanned_topics(below) if each not in found]
    return found
