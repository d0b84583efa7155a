"""Restorer: reads changelogs into the stores of a runner's tasks.

Tasks that wait to start are read up to the end that their changelogs had when it began; standbys
follow theirs forever, and wait while others restore. Each step takes what one poll brings, so the
runner continues with its other tasks and stays in its group.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from broker.client.api import Consumer, FetchedBatch
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
    end: int  # read up to here; a standby's is where it may read to for now
    position: int

    @property
    def done(self) -> bool:
        return self.position >= self.end


class Restorer:
    """Restores for one runner, whose thread uses it."""

    def __init__(
        self,
        open_consumer: Callable[[], Consumer],
        log_bounds: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, tuple[int, int]]],
    ) -> None:
        """`log_bounds` are first offsets and ends of logs, open transactions included."""
        self._open_consumer = open_consumer
        self._log_bounds = log_bounds
        self._consumer: Consumer | None = None
        self._reading: dict[TopicPartition, _Changelog] = {}
        self.restored_records = 0

    def add(self, owned: OwnedTask, limits: Mapping[TopicPartition, int]) -> bool:
        """Begin with a task; False when a store is ahead of its changelog and cannot be right.

        `limits` are committed offsets of the stores whose changelogs are source topics: those must
        not be read further than the task has, for the rest it will process.
        """
        bounds = self._log_bounds(owned.changelogs.values()) if owned.changelogs else {}
        found = []
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
            found.append(_Changelog(owned, store, tp, end, max(first, position)))
        self._reading.update({changelog.tp: changelog for changelog in found})
        self._assign()
        for changelog in found:
            self._opened().seek(changelog.tp, changelog.position)
        return True

    def remove(self, owned: OwnedTask) -> None:
        """Stop with a task."""
        gone = [tp for tp, changelog in self._reading.items() if changelog.owned is owned]
        for tp in gone:
            del self._reading[tp]
        if gone:
            self._assign()

    def raise_limits(self, limits: Mapping[TopicPartition, int]) -> None:
        """Let standbys of source topics read as far as was committed since."""
        for tp, limit in limits.items():
            changelog = self._reading.get(tp)
            if changelog is not None and changelog.store in changelog.owned.source_stores:
                changelog.end = max(changelog.end, limit)

    def source_partitions(self) -> list[TopicPartition]:
        """The source topics that are read as changelogs of standbys."""
        return [
            tp
            for tp, changelog in self._reading.items()
            if changelog.store in changelog.owned.source_stores
        ]

    def has(self, owned: OwnedTask) -> bool:
        """Whether a task is being read."""
        return any(changelog.owned is owned for changelog in self._reading.values())

    @property
    def restoring(self) -> bool:
        """Whether a task waits for its stores."""
        return any(each.owned.phase is Phase.RESTORING for each in self._reading.values())

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to read."""
        return not self._reading

    def remaining(self) -> int:
        """How many offsets tasks that restore are behind."""
        return sum(
            max(0, each.end - each.position)
            for each in self._reading.values()
            if each.owned.phase is Phase.RESTORING
        )

    def step(self, timeout_ms: int) -> list[OwnedTask]:
        """Read until something arrives or time is up; returns the tasks whose stores are ready."""
        self._pause_what_waits()
        if any(not each.done for each in self._reading.values()):
            consumer = self._opened()
            for batch in self._poll(consumer, timeout_ms):
                try:
                    self._apply(batch)
                except CorruptBatchError as error:
                    self._pass(error)
            for tp, changelog in self._reading.items():
                if not changelog.done:
                    # Markers and aborted records at the end count as read.
                    changelog.position = max(changelog.position, self._stands_at(tp))
        return self._take_finished()

    def _poll(self, consumer: Consumer, timeout_ms: int) -> list[FetchedBatch]:
        try:
            return consumer.poll_batches(timeout_ms)
        except CorruptBatchError as error:
            self._pass(error)
            consumer.seek(TopicPartition(error.topic, error.partition), error.next_offset)
            return []

    def _pass(self, error: CorruptBatchError) -> None:
        """Go on after a batch that cannot be read, where the task has done so before.

        A source topic is read as far as was committed: the handler has let the batch go. What a
        changelog holds cannot be had from anywhere else.
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

    def _stands_at(self, tp: TopicPartition) -> int:
        consumer = self._opened()
        return 0 if tp in consumer.paused() else consumer.position(tp)

    def _pause_what_waits(self) -> None:
        """Tasks that wait to start come first; what is read to its end rests."""
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
            self._opened().seek(changelog.tp, end)

    def _take_finished(self) -> list[OwnedTask]:
        restoring = dict.fromkeys(  # in their order
            each.owned for each in self._reading.values() if each.owned.phase is Phase.RESTORING
        )
        finished = []
        for owned in restoring:
            mine = [each for each in self._reading.values() if each.owned is owned]
            if all(each.done for each in mine):
                for each in mine:
                    owned.positions[each.store] = max(
                        each.position, owned.positions.get(each.store, 0)
                    )
                owned.phase = Phase.RESTORED
                self.remove(owned)
                finished.append(owned)
        return finished

    def _assign(self) -> None:
        if self._reading or self._consumer is not None:
            self._opened().assign(self._reading)

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._open_consumer()
        return self._consumer

    def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
