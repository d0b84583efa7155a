"""Reads whole topics."""

from broker import Broker, TopicPartition
from broker.client.api import ConsumerRecord
from broker.client.opening import consumer


def read_all(broker: Broker, topic: str, **settings: str) -> list[ConsumerRecord]:
    """All records of a topic; in order within each partition."""
    with consumer(broker, **settings) as reader:
        partitions = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        found: list[ConsumerRecord] = []
        while any(reader.position(tp) < end for tp, end in ends.items()):
            found += reader.poll(100)
        return found
