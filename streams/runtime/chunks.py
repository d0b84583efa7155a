"""Decodes fetched batches to Chunks when tasks have room for them.

Fetched batches are buffered undecoded; only the next few batches of each partition are decoded, so
that memory holds about `records_max` decoded records of a partition. Whole batches are decoded, so
there can be a few more.

A batch that cannot be read stays in the queue: its error is reported when the task has processed
all records before it.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable

from broker.client.api import FetchedBatch
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.record import Chunk


def to_chunk(batch: FetchedBatch, next_offset: int) -> Chunk | None:
    """The records of a batch from its start offset on; None if there are none."""
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
    """Buffers the fetched batches of a runner until its tasks have room for them."""

    def __init__(self, records_max: int) -> None:
        """`records_max` is per partition."""
        self._records_max = records_max
        self._batches: dict[TopicPartition, deque[_Batch | CorruptBatchError]] = {}

    def add(
        self, batches: Iterable[FetchedBatch], position: Callable[[TopicPartition], int]
    ) -> set[TopicPartition]:
        """Buffer fetched batches; `position` returns the consumer's position after them.

        The last batch of each partition ends there, so that control records after it are skipped.
        """
        partitions: set[TopicPartition] = set()
        for batch in batches:
            tp = batch.topic_partition
            self._batches.setdefault(tp, deque()).append((batch, 0))
            partitions.add(tp)
        for tp in partitions:
            last = self._batches[tp].pop()
            assert not isinstance(last, CorruptBatchError), "batches were just added"
            self._batches[tp].append((last[0], position(tp)))
        return partitions

    def add_unreadable(self, error: CorruptBatchError) -> None:
        """Buffer the error of a batch that the consumer could not read."""
        tp = TopicPartition(error.topic, error.partition)
        self._batches.setdefault(tp, deque()).append(error)

    def feed(
        self,
        tp: TopicPartition,
        buffered: int,
        add: Callable[[Chunk], None],
        unreadable: Callable[[CorruptBatchError], None],
    ) -> int:
        """Decode batches for a task that has `buffered` records; returns the number of records."""
        waiting = self._batches.get(tp)
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

    def has_batches(self, tp: TopicPartition) -> bool:
        """Whether batches of a partition are buffered."""
        return bool(self._batches.get(tp))

    def drop(self, tp: TopicPartition) -> None:
        """Drop the batches of a partition."""
        self._batches.pop(tp, None)
