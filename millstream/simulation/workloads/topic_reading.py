"""TopicReading: reads committed records of topics, each only once."""

from typing import Self

from broker.client.opening import Target, consumer
from broker.model import TopicPartition
from millstream.simulation.workloads.reference import Record

FETCH_WAIT_MS = 100


class TopicReading:
    """The records of topics; each call reads new ones. Deleted topics must be discarded."""

    def __init__(self, target: Target) -> None:
        self._consumer = consumer(
            target,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            request_timeout_ms=10_000,
            default_api_timeout_ms=20_000,
        )
        self._records: dict[str, list[Record]] = {}
        self._positions: dict[TopicPartition, int] = {}

    def records(self, topic: str) -> list[Record]:
        """All records of a topic: partition, key, value, timestamp."""
        reader = self._consumer
        partitions = [TopicPartition(topic, each) for each in reader.partitions_for(topic)]
        reader.assign(partitions)
        ends = reader.end_offsets(partitions)
        records = self._records.setdefault(topic, [])
        for tp in partitions:
            reader.seek(tp, self._positions.get(tp, 0))
        while any(reader.position(tp) < ends[tp] for tp in partitions):
            for each in reader.poll(1_000):
                records.append((each.partition, each.key, each.value, each.timestamp_ms))
                # Stored here, because a later fetch may fail.
                tp = TopicPartition(each.topic, each.partition)
                self._positions[tp] = each.offset + 1
        self._positions |= {tp: reader.position(tp) for tp in partitions}
        reader.unsubscribe()  # fetch nothing until the next call
        return records

    def discard(self, topic: str) -> None:
        """Discard a deleted topic, so that a new one of the same name is read from the start."""
        self._records.pop(topic, None)
        self._positions = {tp: at for tp, at in self._positions.items() if tp.topic != topic}

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
