"""InputBuffer: records of a task's input partitions, and which partition is next.

The next partition is the one whose head has the smallest timestamp; a partition itself is never
sorted. With equal timestamps, the partition that has waited longest is next. A run lasts while the
partition's head is smaller than all other heads, so that the loop over a run does not compare them
for each record.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from broker.model import TopicPartition
from streams.processor import NO_TIME
from streams.record import Chunk

NEVER_MS = (1 << 63) - 1
NEVER_IDLE = -1  # max.task.idle.ms: do not wait for empty inputs
LAG_UNKNOWN = -1

# Called with a queue, a number and a time: processes up to this number of records of the queue's
# first chunk while they are older than the time, but at least one; returns how many. Afterwards the
# task's current record is still the last one.
Run = Callable[["PartitionQueue", int, int], int]
# Reads ahead to the next record that has a timestamp; only for sources that extract timestamps.
FindHead = Callable[["PartitionQueue"], None]
DecodedHead = tuple[object, object, int]  # key, value, timestamp_ms


class PartitionQueue:
    """The queued chunks of one partition, and its position."""

    __slots__ = (
        "chunks",
        "count",
        "find_head",
        "head",
        "index",
        "position",
        "run",
        "tick",
        "time_ms",
        "topic_partition",
    )

    def __init__(self, tp: TopicPartition, run: Run, find_head: FindHead | None) -> None:
        self.topic_partition = tp
        self.run = run
        self.find_head = find_head
        self.chunks: deque[Chunk] = deque()
        self.index = 0  # of the head, in the first chunk
        self.count = 0
        self.head: DecodedHead | None = None  # decoded, if the source extracts timestamps
        self.position: int | None = None  # the offset after the last processed record
        self.time_ms = NO_TIME  # the largest timestamp of processed records
        self.tick = 0  # when the head began to wait

    @property
    def head_ms(self) -> int:
        """The timestamp of the head; NEVER_MS when there is none."""
        if not self.count:
            return NEVER_MS
        if self.find_head is None:
            return self.chunks[0].timestamps[self.index]
        if self.head is None:
            self.find_head(self)
        return NEVER_MS if self.head is None else self.head[2]

    def add(self, chunk: Chunk) -> None:
        """Put a chunk at the end; one without records only moves the position."""
        if len(chunk):
            self.chunks.append(chunk)
            self.count += len(chunk)
        elif not self.count:
            self.position = chunk.next_offset

    def advance_to(self, index: int) -> None:
        """Move the head to a row of the first chunk, or behind it."""
        chunk = self.chunks[0]
        self.count -= index - self.index
        if index < len(chunk):
            self.index = index
            self.position = chunk.offsets[index]
        else:
            self.chunks.popleft()
            self.index = 0
            self.position = chunk.next_offset


class InputBuffer:
    """The queues of a task."""

    __slots__ = ("_deadlines", "_max_idle_ms", "_queues", "_ticks", "enforced")

    def __init__(self, max_idle_ms: int, ticks: Iterator[int]) -> None:
        """The heads of tasks that share `ticks` can be compared."""
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._max_idle_ms = max_idle_ms
        self._ticks = ticks
        self._deadlines: dict[TopicPartition, int] = {}
        self.enforced = 0  # how often records were processed with an empty input

    @property
    def queues(self) -> Mapping[TopicPartition, PartitionQueue]:
        """The queues by partition."""
        return self._queues

    def open(self, queue: PartitionQueue) -> None:
        """Add an input partition."""
        self._queues[queue.topic_partition] = queue

    def add(self, chunk: Chunk) -> None:
        """Queue records of a partition that is open."""
        queue = self._queues[TopicPartition(chunk.topic, chunk.partition)]
        if not queue.count:
            queue.tick = next(self._ticks)
        queue.add(chunk)

    def clear(self) -> None:
        """Drop all queued records."""
        for queue in self._queues.values():
            queue.chunks.clear()
            queue.index = queue.count = 0
            queue.head = None

    @property
    def count(self) -> int:
        """The number of queued records."""
        return sum(queue.count for queue in self._queues.values())

    @property
    def may_wait(self) -> bool:
        """Whether the task may have to wait for an input that has become empty."""
        return self._max_idle_ms != NEVER_IDLE and len(self._queues) > 1

    def head(self) -> tuple[int, int] | None:
        """Timestamp of the next record, and when its partition began to wait; None if empty."""
        return min(
            (
                (queue.head_ms, queue.tick)
                for queue in self._queues.values()
                if queue.count and queue.head_ms != NEVER_MS
            ),
            default=None,
        )

    def next_run(self) -> tuple[PartitionQueue, int] | None:
        """The next partition, and the smallest head of the others."""
        first: PartitionQueue | None = None
        first_ms = until_ms = NEVER_MS
        for queue in self._queues.values():
            if not queue.count:
                continue
            head_ms = queue.head_ms
            if not queue.count:  # all its records were skipped in the search for the head
                continue
            if first is None:
                first, first_ms = queue, head_ms
            elif head_ms < first_ms or (head_ms == first_ms and queue.tick < first.tick):
                until_ms = min(until_ms, first_ms)
                first, first_ms = queue, head_ms
            else:
                until_ms = min(until_ms, head_ms)
        if first is None:
            return None
        first.tick = next(self._ticks)
        return first, until_ms

    def ready(self, now_ms: int, lags: Mapping[TopicPartition, int]) -> bool:
        """Whether to process now, although an input may be empty (max.task.idle.ms).

        -1: always. 0: only if it is known that the broker has no records for the empty inputs.
        Larger: also wait this long for new records.
        """
        if self._max_idle_ms == NEVER_IDLE:
            return True
        waiting = enforced = 0
        for tp, queue in self._queues.items():
            if queue.count:
                self._deadlines.pop(tp, None)
                waiting += 1
                continue
            if lags.get(tp, LAG_UNKNOWN) != 0:
                self._deadlines.pop(tp, None)
                return False
            if now_ms < self._deadlines.setdefault(tp, now_ms + self._max_idle_ms):
                return False
            enforced += 1
        if not enforced:
            return True
        if waiting:
            self.enforced += 1
        return waiting > 0
