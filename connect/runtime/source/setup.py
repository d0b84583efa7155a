"""SourceSetup: the parts of one source task, and the interface of its delivery."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
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
    """The parts of one source task."""

    task_id: TaskId
    task: SourceTask
    pipeline: SourcePipeline
    producer: Producer
    offsets: OffsetStore
    handler: ErrorHandler
    metrics: SourceMetrics
    stop: StopSignal
    clock: Clock
    flush_interval_ms: int = 60_000
    flush_timeout_ms: int = 5_000

    @property
    def wants_commit_record(self) -> bool:
        """Whether the task implements `commit_record`."""
        return type(self.task).commit_record is not SourceTask.commit_record

    def commit_records(self, written: Iterable[tuple[SourceRecord, Delivery | None]]) -> None:
        """Call `commit_record` for written records; its errors are only logged."""
        for record, delivery in written:
            try:
                self.task.commit_record(record, None if delivery is None else delivery.result())
            except Exception:
                logger.exception("task %s: commit_record failed", self.task_id)

    def commit_task(self) -> None:
        """Call `commit` after offsets were stored; its errors are only logged."""
        try:
            self.task.commit()
        except Exception:
            logger.exception("task %s: commit failed", self.task_id)


class SourceDelivery(Protocol):
    """Delivers records to topics: at least once, or exactly once."""

    def begin(self) -> None:
        """Prepare, before the task starts."""
        ...

    def before_poll(self) -> None:
        """Do what is due, and raise errors."""
        ...

    def send(self, records: Sequence[SourceRecord]) -> None:
        """Send the records of one poll."""
        ...

    def batch_done(self) -> None:
        """Called after every poll, when its records are sent."""
        ...

    def step(self) -> None:
        """Do what is due during a poll; any thread may call it."""
        ...

    def pause(self) -> None:
        """The task will not be polled for a while."""
        ...

    def finish(self, *, failed: bool) -> None:
        """The last poll has ended: store the offsets of written records."""
        ...


class StoredOffsets:
    """The OffsetReader of a connector: waits while the broker is unavailable."""

    def __init__(self, connector: str, store: Callable[[], OffsetStore], stop: StopSignal) -> None:
        """`store` may have to open the store first."""
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
