"""Partitioner: the partition of a record, by its key as in Java, or sticky without a key.

With a key: murmur2 of the key's bytes without its sign bit, modulo the number of partitions; all
Kafka clients that write co-partitioned topics must agree exactly. Without a key: one random
partition until about batch_size bytes were sent to it, then another, so that batches fill up.
"""

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["StickyPartitioner", "murmur2", "partition_for_key"]

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
WORD = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF


def _plain_murmur2(data: bytes) -> int:
    size = len(data)
    hashed = SEED ^ size
    whole = size & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * MULTIPLIER & WORD
        word = (word ^ word >> 24) * MULTIPLIER & WORD
        hashed = (hashed * MULTIPLIER & WORD) ^ word
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & WORD
    hashed = (hashed ^ hashed >> 13) * MULTIPLIER & WORD
    return hashed ^ hashed >> 15


try:
    from broker.client import _murmur2 as _native
except ImportError:
    murmur2: Callable[[bytes], int] = _plain_murmur2
else:
    murmur2 = _native.murmur2


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of a key, the same as in Kafka's Java client."""
    return (murmur2(key) & POSITIVE) % partition_count


class StickyPartitioner:
    """Chooses partitions for records without a key; the records of a topic share a partition."""

    __slots__ = ("_batch_bytes", "_chance", "_current")

    def __init__(self, batch_bytes: int, chance: Random) -> None:
        """Switch to another partition after `batch_bytes`."""
        self._batch_bytes = max(batch_bytes, 1)
        self._chance = chance
        self._current: dict[str, tuple[int, int]] = {}

    def partition(self, topic: str, partitions: Sequence[int]) -> int:
        """The current partition of a topic, one of the available partitions."""
        current = self._current.get(topic)
        if current is not None and current[0] in partitions:
            return current[0]
        return self._switch(topic, partitions)

    def appended(
        self, topic: str, partitions: Sequence[int], size: int, *, batch_closed: bool
    ) -> None:
        """Count bytes that were sent to the current partition.

        The switch waits, up to a limit, until a batch is full: no small batch is left behind.
        """
        current = self._current.get(topic)
        if current is None:
            return
        partition, sent = current
        sent += size
        if sent >= self._batch_bytes * (1 if batch_closed else 2):
            self._switch(topic, partitions)
        else:
            self._current[topic] = (partition, sent)

    def _switch(self, topic: str, partitions: Sequence[int]) -> int:
        partition = self._chance.choice(partitions)
        self._current[topic] = (partition, 0)
        return partition
