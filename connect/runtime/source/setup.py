"""SourceSetup: all that belongs to one source task, and what its deliveries have in common."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.client.api import Delivery
from broker.client.bulk import BulkProducer
from broker.clock import Clock
from connect.api import SourceTask
from connect.records import SourceRecord
from connect.retries import retry_until_stopped
from connect.runtime.error_handling import ErrorHandler
from connect.runtime.metrics import SourceMetrics
from connect.runtime.source.pipeline import SourcePipeline
from connect.state.offsets import OffsetStore
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceSetup:
    """One source task, the way its records go, and whom it serves."""

    task_id: TaskId
    task: SourceTask
    pipeline: SourcePipeline
    producer: BulkProducer
    offsets: OffsetStore
    handler: ErrorHandler
    metrics: SourceMetrics
    stop: StopSignal
    clock: Clock
    flush_interval_ms: int = 60_000
    flush_timeout_ms: int = 5_000

    @property
    def wants_commit_record(self) -> bool:
        """Whether the task's author cares for single records that were written."""
        return type(self.task).commit_record is not SourceTask.commit_record

    def commit_records(self, written: Iterable[tuple[SourceRecord, Delivery | None]]) -> None:
        """Tell the task of records; what it raises is logged, for the records are written."""
        for record, delivery in written:
            try:
                self.task.commit_record(record, None if delivery is None else delivery.result())
            except Exception:
                logger.exception("task %s: commit_record failed", self.task_id)

    def commit_task(self) -> None:
        """Tell the task that offsets are stored; what it raises is logged, for they are."""
        try:
            self.task.commit()
        except Exception:
            logger.exception("task %s: commit failed", self.task_id)


class SourceDelivery(Protocol):
    """How records get into topics: at least once, or exactly once."""

    def begin(self) -> None:
        """Get ready, before the task starts."""
        ...

    def before_poll(self) -> None:
        """Do what is due, and raise what has failed."""
        ...

    def send(self, records: Sequence[SourceRecord]) -> None:
        """Send what one poll gave."""
        ...

    def batch_done(self) -> None:
        """What a poll gave is sent; called after polls that gave nothing, too."""
        ...

    def step(self) -> None:
        """Do what is due while a poll waits; from any thread."""
        ...

    def pause(self) -> None:
        """No poll comes for a while."""
        ...

    def finish(self, *, failed: bool) -> None:
        """No poll comes any more: store the offsets of what was written."""
        ...


class StoredOffsets:
    """The OffsetReader of a connector: waits while the broker is away."""

    def __init__(self, connector: str, store: Callable[[], OffsetStore], stop: StopSignal) -> None:
        """Of one connector, whose store may have to be opened."""
        self._connector = connector
        self._store = store
        self._stop = stop

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        """The last stored offset of one partition of the source."""
        return self.offsets([partition])[0]

    def offsets(
        self, partitions: Iterable[Mapping[str, object]]
    ) -> Sequence[Mapping[str, object] | None]:
        """The last stored offsets of several partitions, in their order."""
        asked = list(partitions)
        return retry_until_stopped(
            f'read the offsets of connector "{self._connector}"',
            lambda: self._store().get(self._connector, asked),
            self._stop,
        )
