"""TopicLog: the topics of a test, in memory."""

from collections.abc import Callable
from typing import NamedTuple

from broker.client.partitioner import partition_for_key
from broker.errors import ConfigError
from broker.model import TopicPartition
from streams.record import Chunk, Headers


class LoggedRecord(NamedTuple):
    """One record of a topic, as bytes."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers

    def chunk(self) -> Chunk:
        """A chunk with only this record."""
        return Chunk(
            self.topic,
            self.partition,
            (self.offset,),
            (self.timestamp_ms,),
            (self.key,),
            (self.value,),
            (self.headers,),
            self.offset + 1,
        )


class TopicLog:
    """All records of all topics in order, and those that are not routed yet."""

    def __init__(self, partition_count: Callable[[str], int]) -> None:
        """A topic is created by its first record, with `partition_count` partitions."""
        self._partition_count = partition_count
        self._partitions: dict[TopicPartition, list[LoggedRecord]] = {}
        self._keyless: dict[str, int] = {}
        self.fresh: list[LoggedRecord] = []
        self.by_topic: dict[str, list[LoggedRecord]] = {}

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return self._partition_count(topic)

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        """Write a record; the default partition is by its key, or round-robin without a key."""
        self.append(topic, key, value, timestamp_ms, headers, partition)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> LoggedRecord:
        """Write a record; returns it with partition and offset."""
        count = self._partition_count(topic)
        if partition is None:
            partition = self._choose(topic, key, count)
        elif not 0 <= partition < count:
            raise ConfigError(
                f'topic "{topic}" has {count} partitions; there is no partition {partition}',
                hint="set its partition count: partitions={topic: count}",
            )
        rows = self._partitions.setdefault(TopicPartition(topic, partition), [])
        record = LoggedRecord(topic, partition, len(rows), key, value, timestamp_ms, tuple(headers))
        rows.append(record)
        self.by_topic.setdefault(topic, []).append(record)
        self.fresh.append(record)
        return record

    def read(self, tp: TopicPartition, offset: int = 0) -> list[LoggedRecord]:
        """Records of a partition from an offset on."""
        return self._partitions.get(tp, [])[offset:]

    def end(self, tp: TopicPartition) -> int:
        """The offset after the last record of a partition."""
        return len(self._partitions.get(tp, ()))

    def _choose(self, topic: str, key: bytes | None, count: int) -> int:
        if key is not None:
            return partition_for_key(key, count)
        turn = self._keyless.get(topic, 0)
        self._keyless[topic] = turn + 1
        return turn % count
