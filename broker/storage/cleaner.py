"""Cleaner: selects the next log to compact."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from broker import concurrency
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.errors import CorruptBatch, StorageError
from broker.model import NO_TIMESTAMP, TopicPartition
from broker.storage.compaction import Overtaken, begin_round, compact
from broker.storage.partition_log import PartitionLog
from broker.storage.retention import largest_timestamp
from broker.storage.segment import Segment

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleanable:
    """How dirty a log is: the sizes of its clean and its cleanable part."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """The share of the dirty part in the bytes that a round reads."""
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)

    @property
    def is_due(self) -> bool:
        """Whether a round is worthwhile or overdue."""
        ratio_min = self.log.config.min_cleanable_dirty_ratio
        return self.dirty_bytes > 0 and (self.overdue or self.dirty_ratio > ratio_min)


def examine(log: PartitionLog, cleaned_offset: int, now_ms: int) -> Cleanable:
    """How dirty a log is, given the offset up to which it is clean."""
    first_dirty = cleaned_offset
    if not log.start_offset <= cleaned_offset <= log.end_offset:
        first_dirty = log.start_offset
    sealed = log.segments[:-1]
    first_uncleanable = max(first_dirty, _first_uncleanable(log, first_dirty, now_ms))
    dirty = [s for s in sealed if first_dirty < s.next_offset <= first_uncleanable]
    return Cleanable(
        log=log,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(s.size_bytes for s in sealed if s.next_offset <= first_dirty),
        dirty_bytes=sum(segment.size_bytes for segment in dirty),
        overdue=_is_overdue(log, dirty, now_ms),
    )


def _first_uncleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    """The start of the first segment that is active, has open transactions, or is too young."""
    lag_ms = log.config.min_compaction_lag_ms
    for segment in log.segments[:-1]:
        if segment.next_offset > log.last_stable_offset:
            return segment.base_offset
        is_dirty = segment.next_offset > first_dirty
        if is_dirty and lag_ms > 0 and largest_timestamp(segment) > now_ms - lag_ms:
            return segment.base_offset
    return log.segments[-1].base_offset


def _is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= now_ms:  # there is no limit: the segments need not be examined
        return False
    return any(NO_TIMESTAMP < segment.first_timestamp < now_ms - lag_ms for segment in dirty)


class Cleaner:
    """Compacts the dirtiest log, one round at a time, in the caller's thread."""

    def __init__(
        self,
        lock: concurrency.RLock,
        clock: Clock,
        config: BrokerConfig,
        logs: Mapping[TopicPartition, PartitionLog],
        cleaned_offsets: dict[TopicPartition, int],
    ) -> None:
        """The logs change under the lock; compacted offsets are stored in `cleaned_offsets`."""
        self._logs = logs
        self._cleaned_offsets = cleaned_offsets
        self._lock = lock
        self._clock = clock
        self._map_bytes_max = config.log_cleaner_dedupe_buffer_size
        self._bytes_per_second_max = config.log_cleaner_io_max_bytes_per_second
        self._sleeping = concurrency.Condition()
        # Logs that cannot be compacted until the broker is restarted.
        self._failed: set[PartitionLog] = set()

    def clean_one(self) -> bool:
        """Run a round on the dirtiest log; False if no log needs one."""
        now_ms = self._clock.now_ms()
        found = self._dirtiest(now_ms)
        if found is None:
            return False
        log = found.log
        with self._lock:
            if not self._is_current(log) or len(log.segments) < 2:
                return False  # deleted or truncated by retention meanwhile
            found = examine(log, self._cleaned_offsets.get(log.topic_partition, -1), now_ms)
            task = begin_round(
                log,
                first_dirty_offset=found.first_dirty_offset,
                first_uncleanable_offset=found.first_uncleanable_offset,
                now_ms=now_ms,
                is_current=partial(self._is_current, log),
            )
        throttle = _Throttle(self._clock, self._sleeping, self._bytes_per_second_max)
        try:
            cleaned = compact(
                task, self._lock, map_bytes_max=self._map_bytes_max, throttle=throttle
            )
        except Overtaken:
            return False
        except CorruptBatch as error:
            LOGGER.error("%s is no longer compacted: %s", log.topic_partition, error)
            self._failed.add(log)
            return True
        except (StorageError, OSError) as error:
            LOGGER.warning("cannot compact %s now: %s", log.topic_partition, error)
            return False
        with self._lock:
            if self._is_current(log):
                self._cleaned_offsets[log.topic_partition] = cleaned
        return True

    def _is_current(self, log: PartitionLog) -> bool:
        return self._logs.get(log.topic_partition) is log

    def _dirtiest(self, now_ms: int) -> Cleanable | None:
        due = []
        with self._lock:
            logs = list(self._logs.values())
        for log in logs:
            if not log.config.compacts or len(log.segments) < 2 or log in self._failed:
                continue
            with self._lock:  # acquired for each log: there may be many
                if len(log.segments) > 1:
                    cleaned_offset = self._cleaned_offsets.get(log.topic_partition, -1)
                    found = examine(log, cleaned_offset, now_ms)
                    if found.is_due:
                        due.append(found)
        return max(due, key=lambda item: (item.overdue, item.dirty_ratio), default=None)


class _Throttle:
    """Waits when more bytes were read than a second allows."""

    def __init__(
        self, clock: Clock, sleeping: concurrency.Condition, bytes_per_second_max: float
    ) -> None:
        self._clock = clock
        self._sleeping = sleeping
        self._bytes_per_ms_max = bytes_per_second_max / 1000
        self._start_ms = clock.monotonic_ms()
        self._bytes = 0

    def __call__(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        due_ms = self._start_ms + self._bytes / self._bytes_per_ms_max
        wait_ms = int(due_ms - self._clock.monotonic_ms())
        if wait_ms > 0:
            with self._sleeping:
                self._clock.wait(self._sleeping, wait_ms)
