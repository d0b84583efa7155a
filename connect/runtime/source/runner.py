"""SourceRunner: the loop of a source task.

    poll -> transforms -> converters -> producer -> offsets of written records

See README.md for the life of a record. The delivery stores offsets: at_least_once.py or
exactly_once.py.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker import concurrency
from connect.api import OffsetReader, TransactionContext
from connect.records import SourceRecord
from connect.retries import RETRY_MS, is_transient
from connect.runtime.metrics import TaskMetrics
from connect.runtime.source.setup import SourceDelivery, SourceSetup

logger = logging.getLogger(__name__)

# A task that returns nothing immediately must not keep a core busy.
IDLE_MS = 10
# Records are delivered by then, or the broker is unavailable and they will be polled again.
CLOSE_TIMEOUT_MS = 1_000


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The SourceTaskContext of a task."""

    config: Mapping[str, str]
    offset_reader: OffsetReader
    transaction_context: TransactionContext | None
    stop_event: concurrency.Event

    def configs(self) -> Mapping[str, str]:
        return self.config

    def stopping(self) -> concurrency.Event:
        """Set when the task must stop."""
        return self.stop_event


class SourceRunner:
    """The TaskBody of a source task."""

    polls_while_paused = False
    has_steps = True

    def __init__(
        self,
        setup: SourceSetup,
        context: TaskContext,
        delivery: SourceDelivery,
        close_others: Callable[[], None],
    ) -> None:
        """`close_others` closes the task's other resources, except its producer."""
        self._setup = setup
        self._context = context
        self._delivery = delivery
        self._close_others = close_others
        self._stopping = (
            concurrency.Lock()
        )  # guards the fields below: `stop` is called at most once
        self._start_ended = False
        self._stopped = False

    @property
    def metrics(self) -> TaskMetrics:
        return self._setup.metrics

    def start(self) -> None:
        """Fence earlier tasks of the same id, then start the task."""
        self._delivery.begin()
        task = self._setup.task
        task.context = self._context
        try:
            task.start(self._context.config)
        finally:
            with self._stopping:
                self._start_ended = True
        if self._setup.stop.is_set():
            self.ask_to_stop()

    def turn(self) -> None:
        """Poll once, and process the records."""
        delivery, metrics = self._delivery, self._setup.metrics
        delivery.before_poll()
        started_ms = self._setup.clock.monotonic_ms()
        records = self._poll()
        if not records:
            delivery.batch_done()
            self._setup.stop.event.wait(IDLE_MS / 1000)
            return
        metrics.polled(len(records), self._setup.clock.monotonic_ms() - started_ms)
        metrics.batch(len(records))
        delivery.send(records)
        delivery.batch_done()

    def _poll(self) -> Sequence[SourceRecord] | None:
        try:
            return self._setup.task.poll()
        except Exception as error:
            if not is_transient(error):
                raise
            logger.warning("task %s cannot poll, will retry: %s", self._setup.task_id, error)
        self._setup.stop.wait(RETRY_MS)
        return None

    def pause(self) -> None:
        """End what must not stay open during a pause."""
        self._delivery.pause()

    def resume(self) -> None:
        """Do nothing: the next turn polls."""

    def finish(self, *, failed: bool) -> None:
        """Store the offsets of written records."""
        self._delivery.finish(failed=failed)

    def close(self) -> None:
        """Stop the task, unless it was stopped before, and close its clients."""
        try:
            self.ask_to_stop()
        finally:
            try:
                self._setup.producer.close(CLOSE_TIMEOUT_MS)
            finally:
                self._close_others()

    def wake(self) -> None:
        """Do nothing: a poll ends when the task is stopped."""

    def ask_to_stop(self) -> None:
        """Stop the task once, and not before `start` has returned."""
        with self._stopping:
            if self._stopped or not self._start_ended:
                return
            self._stopped = True
        try:
            self._setup.task.stop()
        except Exception:
            logger.exception("task %s: stop failed", self._setup.task_id)

    def step(self) -> None:
        """Store offsets during a poll."""
        self._delivery.step()

    def abandon(self) -> None:
        """Close the clients, which ends a blocked send."""
        self._setup.producer.close(0)
        self._close_others()
