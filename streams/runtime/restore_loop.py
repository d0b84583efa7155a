"""Restorer: restores the stores of a runner's tasks from their changelogs.

Tasks are restored up to the end offsets that their changelogs have when the restore begins.
Standbys follow their changelogs continuously, but pause while tasks are restored. Each step applies
the records of one poll, so that the runner continues with its other tasks and stays in its group.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from broker.client.api import FetchedBatch
from broker.client.record_consumer import Consumer
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.errors import StreamsError
from streams.runtime.owned_task import OwnedTask, Phase

logger = logging.getLogger(__name__)

EVERYTHING = 1 << 62


@dataclass(slots=True, eq=False)
class _Changelog:
    """One changelog partition that is being read."""

    owned: OwnedTask
    store: str
    tp: TopicPartition
    end: int  # restore up to here; the current limit of a standby
    position: int

    @property
    def done(self) -> bool:
        return self.position >= self.end


class Restorer:
    """Restores the tasks of one runner; only the runner's thread uses it."""

    def __init__(
        self,
        open_consumer: Callable[[], Consumer],
        log_bounds: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, tuple[int, int]]],
    ) -> None:
        """`log_bounds` returns first and end offsets, including open transactions."""
        self._open_consumer = open_consumer
        self._log_bounds = log_bounds
        self._consumer: Consumer | None = None
        self._reading: dict[TopicPartition, _Changelog] = {}
        self.restored_records = 0

    def add(self, owned: OwnedTask, limits: Mapping[TopicPartition, int]) -> bool:
        """Start to restore a task; returns False if a store is invalid: ahead of its changelog.

        `limits` are the committed offsets of source topics that are changelogs: a store must not be
        ahead of the task, which processes the records after them.
        """
        bounds = self._log_bounds(owned.changelogs.values()) if owned.changelogs else {}
        changelogs = []
        for store, tp in owned.changelogs.items():
            first, end = bounds[tp]
            position = owned.positions.get(store, first)
            if position > end:
                return False
            if store in owned.source_stores:
                end = limits.get(tp, 0)
            elif owned.phase is Phase.STANDBY:
                end = EVERYTHING
            if owned.phase is Phase.RESTORING:
                owned.restore_ends[store] = end
            changelogs.append(_Changelog(owned, store, tp, end, max(first, position)))
        self._reading.update({changelog.tp: changelog for changelog in changelogs})
        self._assign()
        for changelog in changelogs:
            self._open().seek(changelog.tp, changelog.position)
        return True

    def remove(self, owned: OwnedTask) -> None:
        """Stop restoring a task."""
        removed = [tp for tp, changelog in self._reading.items() if changelog.owned is owned]
        for tp in removed:
            del self._reading[tp]
        if removed:
            self._assign()

    def raise_limits(self, limits: Mapping[TopicPartition, int]) -> None:
        """Raise the limits of standbys of source topics to the committed offsets."""
        for tp, limit in limits.items():
            changelog = self._reading.get(tp)
            if changelog is not None and changelog.store in changelog.owned.source_stores:
                changelog.end = max(changelog.end, limit)

    def source_partitions(self) -> list[TopicPartition]:
        """The partitions of source topics that are read as changelogs."""
        return [
            tp
            for tp, changelog in self._reading.items()
            if changelog.store in changelog.owned.source_stores
        ]

    def has(self, owned: OwnedTask) -> bool:
        """Whether changelogs of a task are being read."""
        return any(changelog.owned is owned for changelog in self._reading.values())

    @property
    def restoring(self) -> bool:
        """Whether a task is being restored."""
        return any(each.owned.phase is Phase.RESTORING for each in self._reading.values())

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to read."""
        return not self._reading

    def remaining(self) -> int:
        """The number of offsets that are left to restore."""
        return sum(
            max(0, each.end - each.position)
            for each in self._reading.values()
            if each.owned.phase is Phase.RESTORING
        )

    def step(self, timeout_ms: int) -> list[OwnedTask]:
        """Apply the records of one poll; returns the tasks that are now restored."""
        self._pause_and_resume()
        if any(not each.done for each in self._reading.values()):
            consumer = self._open()
            for batch in self._poll(consumer, timeout_ms):
                try:
                    self._apply(batch)
                except CorruptBatchError as error:
                    self._skip_corrupt_batch(error)
            for tp, changelog in self._reading.items():
                if not changelog.done:
                    # Transaction markers and aborted records at the end count as read.
                    changelog.position = max(changelog.position, self._position_of(tp))
        return self._finish_restored()

    def _poll(self, consumer: Consumer, timeout_ms: int) -> list[FetchedBatch]:
        try:
            return consumer.poll_batches(timeout_ms)
        except CorruptBatchError as error:
            self._skip_corrupt_batch(error)
            consumer.seek(TopicPartition(error.topic, error.partition), error.next_offset)
            return []

    def _skip_corrupt_batch(self, error: CorruptBatchError) -> None:
        """Skip a batch that cannot be read, if the task has skipped it, too.

        A source topic is only read up to the committed offset, so the task's exception handler has
        skipped the batch. The data of a changelog is not available elsewhere.
        """
        changelog = self._reading.get(TopicPartition(error.topic, error.partition))
        if changelog is None:
            return
        if changelog.store not in changelog.owned.source_stores:
            raise StreamsError(
                f'the changelog of store "{changelog.store}" cannot be read: {error.message}',
                at=error.at,
                hint="reset the application: its stores are then rebuilt from its input",
            ) from error
        logger.warning("a restore skips a batch: %s", error)
        changelog.position = min(error.next_offset, changelog.end)
        changelog.owned.positions[changelog.store] = changelog.position

    def _position_of(self, tp: TopicPartition) -> int:
        consumer = self._open()
        return 0 if tp in consumer.paused() else consumer.position(tp)

    def _pause_and_resume(self) -> None:
        """Pause changelogs that are read to their end, and standbys while tasks are restored."""
        consumer = self._consumer
        if consumer is None or not self._reading:
            return
        urgent = self.restoring
        for tp, changelog in self._reading.items():
            waits = changelog.done or (urgent and changelog.owned.phase is Phase.STANDBY)
            (consumer.pause if waits else consumer.resume)([tp])

    def _apply(self, batch: FetchedBatch) -> None:
        changelog = self._reading.get(batch.topic_partition)
        if changelog is None:
            return
        start, end = batch.start_offset, changelog.end
        records = batch.records()
        rows = [(r.key, r.value, r.timestamp_ms) for r in records if start <= r.offset < end]
        position = min(batch.header.next_offset, end)
        changelog.owned.state.restore(changelog.store, rows, position)
        changelog.owned.positions[changelog.store] = position
        changelog.position = position
        self.restored_records += len(rows)
        if batch.header.next_offset > end:
            self._open().seek(changelog.tp, end)

    def _finish_restored(self) -> list[OwnedTask]:
        restoring = dict.fromkeys(  # in order
            each.owned for each in self._reading.values() if each.owned.phase is Phase.RESTORING
        )
        finished = []
        for owned in restoring:
            changelogs = [each for each in self._reading.values() if each.owned is owned]
            if all(each.done for each in changelogs):
                for each in changelogs:
                    owned.positions[each.store] = max(
                        each.position, owned.positions.get(each.store, 0)
                    )
                owned.phase = Phase.RESTORED
                self.remove(owned)
                finished.append(owned)
        return finished

    def _assign(self) -> None:
        if self._reading or self._consumer is not None:
            self._open().assign(self._reading)

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._open_consumer()
        return self._consumer

    def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
