"""SinkCommit: commits the offsets that a sink task allows.

    every offset.flush.interval.ms, or on request of the task   asynchronously
    before partitions are revoked, and at the end               waits, for offset.flush.timeout.ms

Dead letters are acknowledged before offsets are committed: each record is in the target, in the
dead letter topic, or read again. When a letter is refused, the task fails and commits nothing.
"""

import logging
from collections.abc import Collection, Mapping

from broker.client.api import OffsetAndMetadata
from broker.errors import MillstreamError
from broker.model import TopicPartition
from connect.runtime.dead_letters import DeadLetterRefused
from connect.runtime.sink.offsets import Offsets, SinkOffsets
from connect.runtime.sink.setup import SinkSetup

logger = logging.getLogger(__name__)


class SinkCommit:
    """The commits of one task; only its thread calls it."""

    def __init__(self, setup: SinkSetup, offsets: SinkOffsets) -> None:
        """The first commit is due after one interval."""
        self._setup = setup
        self._offsets = offsets
        self._clock = setup.clock
        self._next_ms = self._clock.monotonic_ms() + setup.flush_interval_ms
        self._started_ms = 0
        self._under_way = False

    def due_in_ms(self) -> int:
        """The time until `step` has something to do; 0: now. One commit is under way at a time."""
        at_ms = self._next_ms
        if self._under_way:
            at_ms = self._started_ms + self._setup.flush_timeout_ms
        return max(0, at_ms - self._clock.monotonic_ms())

    def step(self, *, requested: bool) -> bool:
        """Commit if it is due or requested, and none is under way; whether one was started."""
        now_ms = self._clock.monotonic_ms()
        if self._under_way:
            if now_ms - self._started_ms >= self._setup.flush_timeout_ms:
                logger.warning("the commit of task %s timed out", self._setup.task_id)
                self._setup.metrics.commit_failed()
                self._under_way = False
            return False
        if not requested and now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + self._setup.flush_interval_ms
        self._begin()
        return True

    def _begin(self) -> None:
        partitions = self._setup.consumer.assignment()
        number = self._start()
        try:
            offered = self._offered(partitions)
        except DeadLetterRefused:
            self._setup.metrics.commit_failed()
            raise  # reading the record again would fail in the same way
        except Exception:
            logger.exception(
                "task %s cannot commit: it rewinds to the last committed offsets",
                self._setup.task_id,
            )
            self._setup.metrics.commit_failed()
            for tp, offset in self._offsets.back_to_committed().items():
                if tp in partitions:
                    self._setup.consumer.seek(tp, offset)
            return
        if offered is None:
            return
        found = self._offsets.committable(offered, partitions)
        if not found:
            self._setup.metrics.commit_completed(self._taken_ms())
            return
        self._under_way = True
        self._setup.consumer.commit_async(
            _positions(found), lambda _, error: self._answered(number, found, error)
        )

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Commit partitions that are revoked for the last time, and close them in the task."""
        number = self._start()
        self._under_way = False  # a late response is ignored
        offered: Mapping[TopicPartition, int] | None = None
        try:
            offered = self._offered(partitions)
        except Exception:
            logger.exception("task %s: its last commit failed", self._setup.task_id)
            self._setup.metrics.commit_failed()
        finally:
            self._setup.task.close(partitions)
        found = self._offsets.committable(offered or {}, partitions)
        if not found:
            return
        error: BaseException | None = None
        try:
            self._setup.consumer.commit(_positions(found), self._setup.flush_timeout_ms)
        except MillstreamError as failure:
            error = failure
        self._answered(number, found, error)

    def _start(self) -> int:
        self._started_ms = self._clock.monotonic_ms()
        self._setup.metrics.commit_number += 1
        return self._setup.metrics.commit_number

    def _offered(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int] | None:
        """The offsets that the task allows to be committed; None while dead letters are pending."""
        setup = self._setup
        put = self._offsets.put_of(partitions)
        if not put:
            return {}
        offered = setup.task.pre_commit(dict(put))
        if setup.dead_letters is not None and not setup.dead_letters.settle(setup.flush_timeout_ms):
            logger.warning("task %s is waiting for its dead letters to be written", setup.task_id)
            setup.metrics.commit_failed()
            return None
        return offered

    def _answered(self, number: int, found: Offsets, error: BaseException | None) -> None:
        metrics = self._setup.metrics
        if number != metrics.commit_number:
            metrics.commit_skipped()
            return
        self._under_way = False
        if error is None:
            self._offsets.committed_now(found)
            metrics.commit_completed(self._taken_ms())
        else:
            # The next commit includes the offsets; until then records may be read again.
            logger.warning("task %s could not commit offsets: %s", self._setup.task_id, error)
            metrics.commit_failed()

    def _taken_ms(self) -> int:
        return self._clock.monotonic_ms() - self._started_ms


def _positions(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    return {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
