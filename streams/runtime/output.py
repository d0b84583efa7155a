"""Output: where sinks, changelogs and dead letters of a task go."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from broker.client.partitioner import partition_for_key
from streams.record import Headers

# What the partition is chosen by (None: any partition), key, value, timestamp_ms, headers.
SendTo = Callable[[bytes | None, bytes | None, bytes | None, int, Headers], None]


class Output(Protocol):
    """Takes records that are bytes already. Only the task's thread calls it."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        """Queue a record. Without a partition it goes by murmur2 of its key; no key: to any."""
        ...

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has."""
        ...


@runtime_checkable
class TopicOutput(Output, Protocol):
    """An Output with a shorter way to each topic."""

    def sender_to(self, topic: str) -> SendTo:
        """What `send` does for records of one topic whose partition is not chosen."""
        ...


def sender_to(output: Output, topic: str) -> SendTo:
    """The shortest way to a topic."""
    if isinstance(output, TopicOutput):
        return output.sender_to(topic)
    send, count_of = output.send, output.partition_count

    def send_to(
        hashed: bytes | None,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
    ) -> None:
        by_key = hashed is None or hashed is key
        partition = None if by_key else partition_for_key(hashed or b"", count_of(topic))
        send(topic, key, value, timestamp_ms, headers, partition)

    return send_to
