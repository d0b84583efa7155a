"""SparkRuntime: a persistent query on Spark, behind the same interface as a native one."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.client.opening import Target
from broker.clock import Clock
from broker.errors import MillstreamError
from sql.backends.native.topology import topics_read
from sql.backends.spark.job import Job
from sql.backends.spark.session import open_session
from sql.engine.settings import SqlConfig
from sql.errors import SqlError
from sql.plan import PlanNode, Sink
from sql.planner import plan_to_json
from sql.queries import (
    FailureType,
    QueryState,
    RecordedFailure,
    RetryPolicy,
    Supervisor,
    classified,
    discard_application,
)
from streams.errors import StoreNotReady

if TYPE_CHECKING:
    from sql.backends.spark.query import SparkQuery

logger = logging.getLogger(__name__)

LOOK_MS = 1_000  # how often it is looked whether Spark still runs the query


class SparkRuntime:
    """A query on Spark; see QueryRuntime. Any thread may call it."""

    def __init__(  # noqa: PLR0913 - what a query must be given
        self,
        application_id: str,
        build: "Callable[[], SparkQuery]",
        describe: Callable[[], str],
        *,
        target: Target,
        clock: Clock,
        supervisor: Supervisor,
        retry: RetryPolicy,
    ) -> None:
        """Nothing runs before `start`; `build` is called at each start."""
        self._application_id = application_id
        self._build = build
        self._describe = describe
        self._target = target
        self._clock = clock
        self._supervisor = supervisor
        self._retry = retry
        self._lock = threading.RLock()
        self._query: SparkQuery | None = None
        self._failures: list[RecordedFailure] = []
        self._attempts = 0
        self._failed = False
        self._paused = False
        self._wanted = False

    @property
    def application_id(self) -> str:
        """The group whose offsets are committed, and the beginning of internal topics' names."""
        return self._application_id

    @property
    def state(self) -> QueryState:
        """Where it stands."""
        if self._failed:
            return QueryState.ERROR
        if self._paused:
            return QueryState.PAUSED
        return QueryState.CREATED if self._query is None else QueryState.RUNNING

    @property
    def failures(self) -> tuple[RecordedFailure, ...]:
        """The latest failures."""
        return tuple(self._failures)

    def start(self) -> None:
        """Begin, or go on from the checkpoint; a failure is recorded, not raised."""
        with self._lock:
            self._wanted = True
            if self._query is not None or self._paused:
                return
            self._failed = False
            try:
                query = self._build()
                query.start()
            except Exception as error:  # whatever Spark raises is a failure of this query alone
                self._fail(str(error), classified(error))
                return
            self._query = query
            self._supervisor.after(LOOK_MS, self._look)

    def _look(self) -> None:
        """Notice that Spark has given the query up."""
        with self._lock:
            query = self._query
            if query is None or not self._wanted:
                return
            if query.is_active:
                self._attempts = 0
                self._supervisor.after(LOOK_MS, self._look)
                return
            self._query = None
            self._fail(query.error or "Spark ended the query", FailureType.UNKNOWN)

    def _fail(self, message: str, kind: FailureType) -> None:
        self._failed = True
        self._failures.append(RecordedFailure(self._clock.now_ms(), message, kind))
        del self._failures[: -self._retry.failures_kept]
        wait_ms = self._retry.wait_ms(self._attempts)
        self._attempts += 1
        logger.error(
            "query %s on Spark failed (%s), and starts again in %d ms: %s",
            self._application_id,
            kind.value,
            wait_ms,
            message,
        )
        self._supervisor.after(wait_ms, self._try_again)

    def _try_again(self) -> None:
        with self._lock:
            if self._wanted and self._query is None:
                self.start()

    def stop(self) -> None:
        """End after the batch that runs; state and offsets stay in the checkpoint."""
        with self._lock:
            self._wanted = False
            self._failed = False
            query, self._query = self._query, None
        if query is not None:
            query.stop()

    def discard(self) -> None:
        """Stop, and delete state, offsets and internal topics."""
        with self._lock:
            query = self._query
        self.stop()
        try:
            (query or self._build()).discard_state()
        except (MillstreamError, OSError) as error:
            logger.warning("%s left its checkpoint behind: %s", self._application_id, error)
        discard_application(self._target, self._application_id)

    def pause(self) -> None:
        """Stop Spark's query; the checkpoint stays."""
        with self._lock:
            self._paused = True
            query, self._query = self._query, None
        if query is not None:
            query.stop()

    def resume(self) -> None:
        """Go on from the checkpoint."""
        with self._lock:
            self._paused = False
            if self._wanted:
                self.start()

    def wait_running(self, timeout_ms: int) -> bool:
        """Whether Spark runs the query; it does when it was started."""
        query = self._query
        return query is not None and query.is_active

    # Any: there are none.
    def stores(self, name: str) -> list[Any]:
        """Refused: the stores are in Spark's checkpoint."""
        raise StoreNotReady(
            f'store "{name}" cannot be read: its query runs on Spark',
            hint="ask with a push query, or run the query on the native engine",
        )

    def elsewhere(self, name: str) -> list[str]:
        """Nobody has them."""
        return []

    def metrics(self) -> str:
        """Rates are Spark's; see `progress`."""
        return ""

    @property
    def progress(self) -> dict[str, object]:
        """Spark's report of the last batch."""
        query = self._query
        return {} if query is None else dict(query.progress)

    def describe(self) -> str:
        """The topology, as text."""
        return self._describe()


def spark_query(
    application_id: str,
    plan: PlanNode,
    config: SqlConfig,
    *,
    servers: str,
    checkpoints: Path,
    functions: tuple[str, ...],
) -> "SparkQuery":
    """A query as Spark will run it; PySpark is imported here and nowhere before."""
    if not isinstance(plan, Sink):
        raise SqlError(
            "a table that is only kept cannot run on Spark", hint="SET 'engine'='native'"
        )
    session = open_session(config.text("spark.master"))
    from sql.backends.spark.query import SparkPlace, SparkQuery

    job = Job(
        application_id,
        plan_to_json(plan),
        dict.fromkeys((*topics_read(plan), plan.topic), 0),
        dict(config),
        config.text("ksql.schema.registry.url") or None,
        functions,
    )
    place = SparkPlace(session, servers, checkpoints)
    return SparkQuery(job, place, starting=config.text("auto.offset.reset"))


def check_servers(target: Target) -> str:
    """Where Spark's workers reach the broker."""
    if isinstance(target, str):
        return target
    raise SqlError(
        "Spark's workers are other processes and cannot reach a broker inside of this one",
        hint="serve the broker, and give its address: --bootstrap host:port",
    )
