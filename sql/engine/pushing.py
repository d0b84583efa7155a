"""Push queries: a query that runs for one reader, and ends with it.

It is a separate application, which starts at the end or the beginning of its topics, depending on
auto.offset.reset. The end is determined before it starts, so that no record written after the
response's header is missed. With ksql.query.push.v2.enabled, a query on the output of one
persistent query watches that query instead, and needs no application.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, cast

from broker import concurrency
from broker.client.opening import Target
from sql.backends.native.steps import RowStream, StepContext, then
from sql.backends.native.tap import Tap
from sql.backends.native.topology import lower
from sql.engine.pulling import PullPlan
from sql.engine.results import LIMIT_REACHED, ResultColumn, ResultRow, RowQueue
from sql.expressions import ColumnValue
from sql.plan import PlanNode, Project, topics_read
from sql.planner import PlannedQuery
from sql.queries import begin_at_end, discard_applications
from sql.rows.row_format import Row
from sql.schema import WINDOW_BOUNDS
from streams.app import AppState, StreamsApp
from streams.dsl.table import Table
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed

DELIVER = "SQL-DELIVER-"


@dataclass(frozen=True, slots=True)
class DeliverRows:
    """Delivers rows instead of writing them to a topic."""

    deliver: Callable[[object, Row | None], None]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        deliver = self.deliver

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            deliver(key, cast("Row | None", value))

        return process


def add_delivery(
    plan: PlanNode, context: StepContext, deliver: Callable[[object, Row | None], None]
) -> None:
    """Add a query to the topology whose rows are passed to a function."""
    rows = lower(plan, context)
    stream: RowStream = rows.to_stream() if isinstance(rows, Table) else rows
    then(stream, DELIVER, DeliverRows(deliver))


def tombstone_values(plan: PlanNode) -> Callable[[object], Row]:
    """A function from a deleted table key to its row: nulls except for the key's columns."""
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


class RowDelivery(Protocol):
    """Delivers rows to a push query."""

    def start(self) -> None:
        """Start delivering rows."""
        ...

    def stop(self) -> None:
        """Stop delivering rows, and clean up."""
        ...


class PushQuery:
    """A running push query; see QueryResult."""

    def __init__(
        self,
        query_id: str,
        text: str,
        planned: PlannedQuery,
        queue: RowQueue,
        delivery: RowDelivery,
        on_close: Callable[["PushQuery"], None],
    ) -> None:
        """`start` runs it; `on_close` is called once, when it has ended."""
        self.query_id = query_id
        self.text = text
        self.planned = planned
        self._queue = queue
        self._delivery = delivery
        self._on_close = on_close
        self._limit = planned.limit
        self._taken = 0
        self._lock = concurrency.Lock()
        self._closed = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of its rows."""
        return tuple(ResultColumn(each.name, each.type) for each in self.planned.plan.shape.row)

    @property
    def is_push(self) -> bool:
        """Whether it runs until it is stopped."""
        return True

    @property
    def final_message(self) -> str | None:
        """The final message."""
        return LIMIT_REACHED if self._at_limit else None

    @property
    def _at_limit(self) -> bool:
        return self._limit is not None and self._taken >= self._limit

    def start(self) -> None:
        """Start, unless the limit is 0."""
        if not self._at_limit:
            self._delivery.start()

    def poll(self, timeout_ms: int) -> ResultRow | None:
        """The next row, if it arrives in time."""
        return None if self._at_limit else self._counted(self._queue.take(timeout_ms))

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
        """Whether no more rows will arrive."""
        return self._at_limit or self._queue.done

    def close(self) -> None:
        """Stop and clean up."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._queue.drop()
        self._delivery.stop()
        self._on_close(self)


class AppDelivery:
    """Rows from a separate application; see RowDelivery."""

    def __init__(self, app: StreamsApp, queue: RowQueue, plan: PlanNode, target: Target) -> None:
        self._app = app
        self._queue = queue
        self._plan = plan
        self._target = target

    def start(self) -> None:
        """Determine the start position, and run."""
        if self._app.config.auto_offset_reset == "latest":
            topics = topics_read(self._plan)
            begin_at_end(self._target, self._app.config.application_id, topics)
        self._app.on_state_change(self._changed)
        self._app.start()

    def _changed(self, new: AppState, old: AppState) -> None:
        if new is AppState.ERROR:
            self._queue.end(self._app.error)

    def stop(self) -> None:
        """Close, and delete state, offsets and internal topics."""
        self._app.close()
        self._app.clean_up()
        discard_applications(self._target, [self._app.config.application_id])


class TapDelivery:
    """Rows of a persistent query, watched before it writes them; see RowDelivery.

    That query never waits for a reader.
    """

    def __init__(
        self, tap: Tap, queue: RowQueue, planned: PlannedQuery, selecting: PullPlan
    ) -> None:
        """The rows of the tap's query are those of the plan's Scan."""
        self._tap = tap
        self._queue = queue
        self._scan = selecting.scan
        self._selected = selecting.selecting()
        self._tombstone = tombstone_values(planned.plan) if planned.is_table else None

    def start(self) -> None:
        """Watch."""
        self._tap.add(self._watch)

    def stop(self) -> None:
        """Stop watching."""
        self._tap.remove(self._watch)

    def _watch(self, key: object, row: Row | None, timestamp_ms: int) -> None:
        scan = self._scan
        if key is None and scan.shape.key:
            return
        if row is None:
            if self._tombstone is not None:
                self._queue.offer(ResultRow(self._tombstone(key), tombstone=True))
            return
        plain: object = key
        window: Row = ()
        if isinstance(key, Windowed):
            plain, *bounds = key
            window = tuple(bounds)
        place = (timestamp_ms, None, None)
        key_row = () if plain is None else cast("Row", plain)
        found = self._selected((*row, *place, *window, *key_row))
        if found is not None:
            self._queue.offer(ResultRow(found))
