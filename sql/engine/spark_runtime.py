"""SparkRuntime: a persistent query on Spark, behind the same interface as a native one.

Starting takes seconds, so it happens in a background thread: the caller does not wait.
A bounded query is only started in its turn; see bounded.py.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker import concurrency
from broker.client.opening import Target
from broker.errors import MillstreamError
from broker.machine import Machine
from sql.engine.sink_rows import SinkRows
from sql.engine.spark_failures import shown_failure
from sql.engine.spark_progress import SparkProgress, spark_progress
from sql.errors import SqlError
from sql.queries import (
    FailureType,
    QueryState,
    RecordedFailure,
    Restarts,
    RetryPolicy,
    Supervisor,
    classified,
    discard_applications,
    remove_folder,
)
from streams.errors import StoreNotReady

if TYPE_CHECKING:
    from sql.backends.spark.query import SparkQuery

logger = logging.getLogger(__name__)

CHECK_MS = 1_000  # the interval of checks whether Spark still runs the query
CATCH_UP_MS = 20_000


@dataclass(frozen=True, slots=True)
class SparkParts:
    """The parts of a query on Spark; `build` is called at each start."""

    application_id: str
    build: "Callable[[], SparkQuery]"
    describe: Callable[[], str]
    checkpoint: Path | str
    rows: SinkRows | None  # of its table, if it creates one
    bounded: bool = False


class SparkRuntime:
    """A query on Spark; see QueryRuntime. Any thread may call it."""

    def __init__(
        self,
        parts: SparkParts,
        *,
        target: Target,
        machine: Machine,
        supervisor: Supervisor,
        retry: RetryPolicy,
    ) -> None:
        self._parts = parts
        self._target = target
        self._clock = machine.clock
        self._files = machine.files
        self._supervisor = supervisor
        self._restarts = Restarts(parts.application_id, machine.clock, supervisor, retry)
        self._changed = concurrency.Condition(concurrency.RLock())
        self._query: SparkQuery | None = None
        self._starting = False
        self._failed = False
        self._paused = False
        self._wanted = False
        self._last: SparkProgress | None = None

    @property
    def application_id(self) -> str:
        """The group whose offsets are committed, and the prefix of internal topics."""
        return self._parts.application_id

    @property
    def state(self) -> QueryState:
        """Its state."""
        if self._failed:
            return QueryState.ERROR
        if self._paused:
            return QueryState.PAUSED
        return QueryState.CREATED if self._query is None else QueryState.RUNNING

    @property
    def failures(self) -> tuple[RecordedFailure, ...]:
        """The latest failures."""
        return self._restarts.failures

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Start, or continue from the checkpoint; a failure is recorded, not raised."""
        with self._changed:
            self._wanted = True
            if self._parts.bounded or not self._may_start:
                return
            self._failed = False
            self._starting = True
        concurrency.Thread(target=self._begin, name="spark-start", daemon=True).start()

    @property
    def _may_start(self) -> bool:
        is_idle = self._query is None and not self._starting
        return is_idle and self._wanted and not self._paused

    def _begin(self) -> None:
        try:
            query = self._parts.build()
            query.start()
        except Exception as error:  # a failure in Spark only affects this query
            with self._changed:
                self._starting = False
                if self._wanted:
                    self._fail(shown_failure(str(error)), classified(error))
                self._changed.notify_all()
            return
        with self._changed:
            if self._wanted and not self._paused:
                self._query = query
                self._starting = False
                self._supervisor.after(CHECK_MS, lambda: self._check(query))
                self._changed.notify_all()
                return
        # It was stopped or paused during its start.
        _stop(query)
        with self._changed:
            self._starting = False
            self._changed.notify_all()
            if self._may_start:  # it was resumed in the meantime
                self.start()

    def _check(self, query: "SparkQuery") -> None:
        """Detect that Spark's query has failed, or that Spark is gone."""
        with self._changed:
            if self._query is not query:
                return
            try:
                active = query.is_active
                message = None if active else query.error
            except Exception as error:  # Py4J has no common error for a dead JVM
                active, message = False, f"Spark does not respond: {error}"
            if active:
                if self.progress is not None:
                    self._restarts.attempts = 0
                self._supervisor.after(CHECK_MS, lambda: self._check(query))
                return
            self._query = None
            shown = shown_failure(message or "Spark ended the query")
            self._fail(shown, FailureType.UNKNOWN)
            self._changed.notify_all()

    def _fail(self, message: str, kind: FailureType) -> None:
        self._failed = True
        self._restarts.failed(message, kind, self._try_again)

    def _try_again(self) -> None:
        with self._changed:
            if self._may_start:
                self.start()

    def stop(self) -> None:
        """Stop; a running batch is aborted, and repeated from the checkpoint."""
        with self._changed:
            self._wanted = False
            self._failed = False
        self._end()
        if self._parts.rows is not None:
            self._parts.rows.close()

    def _end(self) -> None:
        """Stop Spark's query, even if it is still starting."""
        with self._changed:
            while self._starting:
                self._clock.wait(self._changed, None)
            if self._wanted and not self._paused:
                return  # it was resumed in the meantime
            query, self._query = self._query, None
        if query is not None:
            _stop(query)

    def discard(self) -> None:
        """Stop, and delete state, offsets and internal topics."""
        try:
            self.stop()
            if self._parts.rows is not None:
                self._parts.rows.discard()
        except Exception:  # its data is deleted anyway
            logger.exception("query %s did not stop cleanly", self.application_id)
        remove_folder(self._files, Path(self._parts.checkpoint))
        discard_applications(self._target, [self.application_id])

    def pause(self) -> None:
        """Stop Spark's query; the checkpoint is kept."""
        with self._changed:
            self._paused = True
        self._end()

    def resume(self) -> None:
        """Continue from the checkpoint."""
        with self._changed:
            self._paused = False
            if self._wanted:
                self.start()

    def wait_running(self, timeout_ms: int) -> bool:
        """Wait until Spark runs the query."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while self._starting:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    return False
                self._clock.wait(self._changed, left_ms)
            return self._query is not None

    # --- bounded runs -------------------------------------------------------------------------

    @property
    def is_bounded(self) -> bool:
        """Whether it processes the existing records in its turn, and ends."""
        return self._parts.bounded and self._wanted and not self._paused

    def begin_bounded(self) -> None:
        """Start processing the existing records; failures are raised."""
        query = self._parts.build()
        try:
            query.start()
        except MillstreamError:
            raise
        except Exception as error:  # any error of Spark
            raise SqlError(shown_failure(str(error))) from error
        with self._changed:
            self._query = query

    def is_bounded_done(self) -> bool:
        """Whether it has ended; raises its failure."""
        query = self._query
        if query is None or query.is_active:
            return query is None
        progress, message = self.progress, query.error
        _stop(query)  # it has ended; this releases its resources in Spark
        with self._changed:
            self._query, self._last = None, progress
        if message is not None:
            raise SqlError(shown_failure(message))
        return True

    # --- queries on its state -----------------------------------------------------------------

    # Any: SinkRows here, see Materialized.
    def stores(self, name: str) -> list[Any]:
        """The current rows of the query's table, from its topic."""
        rows = self._parts.rows
        if rows is None:
            raise StoreNotReady(f'there is no store "{name}": the query does not create a table')
        rows.catch_up(CATCH_UP_MS)
        return [rows]

    def elsewhere(self, name: str) -> list[str]:
        """No hosts: each server reads the whole topic."""
        return []

    def metrics(self) -> str:
        """Empty: `progress` has Spark's rates."""
        return ""

    @property
    def progress(self) -> SparkProgress | None:
        """Spark's report on the last batch; None before the first, or if Spark has died."""
        query = self._query
        if query is None:
            return self._last
        try:
            return spark_progress(query.progress)
        except Exception as error:  # as in `_check`, which will detect it
            logger.debug("cannot get the progress of %s: %s", self.application_id, error)
            return self._last

    def describe(self) -> str:
        """The topology, as text."""
        return self._parts.describe()


def _stop(query: "SparkQuery") -> None:
    try:
        query.stop()
    except Exception as error:  # if the JVM has died, the query has stopped, too
        logger.warning("Spark did not respond when a query was stopped: %s", error)
