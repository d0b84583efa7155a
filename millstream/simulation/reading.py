"""Reading: reads partitions from the beginning to the current end."""

from collections.abc import Sequence

from broker.client import consumer
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.observations import Stored, StoredRecord


def read_partitions(
    actor: Actor, partitions: Sequence[TopicPartition], *, isolation: str
) -> Stored:
    """Read all records of partitions, in the process of an actor."""
    records: dict[TopicPartition, list[StoredRecord]] = {tp: [] for tp in partitions}
    with consumer(
        actor.target,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    ) as reader:
        reader.assign(partitions)
        ends = reader.end_offsets(partitions)
        while any(reader.position(tp) < ends[tp] for tp in partitions):
            for record in reader.poll(timeout_ms=1_000):
                tp = TopicPartition(record.topic, record.partition)
                value, key = record.value or b"", record.key or b""
                records[tp].append(StoredRecord(record.offset, value, key, record.timestamp_ms))
    topics = ", ".join(dict.fromkeys(tp.topic for tp in partitions))
    actor.note("has read", sum(map(len, records.values())), "records of", topics)
    return dict(records)
