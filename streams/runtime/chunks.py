"""From fetched batches to Chunks, not sooner than a task has room for them.

Fetched batches wait here undecoded, one buffer per batch; only the next few batches of each
partition are decoded, so that memory holds about `records_max` decoded records of a partition.
Whole batches are decoded, so a task may get some more.

A batch that cannot be read keeps its place: the task gets it when it has processed all records
before it.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable

from broker.client.api import FetchedBatch
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.record import Chunk


def to_chunk(batch: FetchedBatch, next_offset: int) -> Chunk | None:
    """The records of a batch that were not taken before; None when there are none."""
    offsets, timestamps, keys, values, headers = batch.lists()
    first = bisect_left(offsets, batch.start_offset)
    if first == len(offsets):
        return None
    topic, partition = batch.topic_partition
    return Chunk(
        topic,
        partition,
        offsets[first:],
        timestamps[first:],
        keys[first:],
        values[first:],
        None if headers is None else headers[first:],
        max(next_offset, batch.header.next_offset),
    )


_Batch = tuple[FetchedBatch, int]  # and the position after it, if it is the last of a poll


class FetchedInput:
    """Batches of all partitions of a runner that no task has taken yet."""

    def __init__(self, records_max: int) -> None:
        """Tasks hold about this many decoded records of each partition."""
        self._records_max = records_max
        self._waiting: dict[TopicPartition, deque[_Batch | CorruptBatchError]] = {}

    def add(
        self, batches: Iterable[FetchedBatch], position: Callable[[TopicPartition], int]
    ) -> set[TopicPartition]:
        """Keep what was fetched; `position` is where the consumer stands after all of it.

        The last batch of a partition ends there: markers behind it are done with it too.
        """
        touched: set[TopicPartition] = set()
        for batch in batches:
            tp = batch.topic_partition
            self._waiting.setdefault(tp, deque()).append((batch, 0))
            touched.add(tp)
        for tp in touched:
            last = self._waiting[tp].pop()
            assert not isinstance(last, CorruptBatchError), "batches were just added"
            self._waiting[tp].append((last[0], position(tp)))
        return touched

    def add_unreadable(self, error: CorruptBatchError) -> None:
        """Keep the place of a batch that the consumer could not read."""
        tp = TopicPartition(error.topic, error.partition)
        self._waiting.setdefault(tp, deque()).append(error)

    def feed(
        self,
        tp: TopicPartition,
        buffered: int,
        add: Callable[[Chunk], None],
        unreadable: Callable[[CorruptBatchError], None],
    ) -> int:
        """Decode what a task has room for, which has `buffered` records; returns how many."""
        waiting = self._waiting.get(tp)
        fed = 0
        while waiting and buffered + fed < self._records_max:
            head = waiting[0]
            if isinstance(head, CorruptBatchError):
                if buffered + fed:
                    break
                waiting.popleft()
                unreadable(head)
                continue
            try:
                chunk = to_chunk(*head)
            except CorruptBatchError as error:
                waiting[0] = error
                continue
            waiting.popleft()
            if chunk is not None:
                add(chunk)
                fed += len(chunk)
        return fed

    def is_waiting(self, tp: TopicPartition) -> bool:
        """Whether something of a partition waits here."""
        return bool(self._waiting.get(tp))

    def forget(self, tp: TopicPartition) -> None:
        """Drop what waits of a partition."""
        self._waiting.pop(tp, None)
