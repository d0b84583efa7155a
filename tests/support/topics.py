"""Reads whole topics."""

from broker.client import consumer
from broker.client.api import ConsumerRecord
from broker.client.opening import Target
from broker.model import TopicPartition
from tests.support.peer import wait_until


def read_topic(
    target: Target, topic: str, *, committed: bool = False, timeout_s: float = 60.0
) -> list[ConsumerRecord]:
    """All records of a topic, partition by partition."""
    isolation = "read_committed" if committed else "read_uncommitted"
    found: list[ConsumerRecord] = []
    with consumer(target, isolation_level=isolation) as reader:
        partitions = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)

        def whole() -> bool:
            # Markers of transactions move the position without a record.
            found.extend(reader.poll(100))
            return all(reader.position(tp) >= end for tp, end in ends.items())

        wait_until(whole, f"all of {topic}", timeout_s=timeout_s)
    return sorted(found, key=lambda record: record[:3])
