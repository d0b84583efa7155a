"""Output: receives the records of sinks, changelogs and dead letters."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from broker.client.partitioner import partition_for_key
from streams.record import Headers

# The key for the partitioner (None: any partition), key, value, timestamp_ms, headers.
SendTo = Callable[[bytes | None, bytes | None, bytes | None, int, Headers], None]


class Output(Protocol):
    """Accepts serialized records. Only the task's thread calls it."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        """Queue a record; the default partition is by murmur2 of the key, or any without a key."""
        ...

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        ...


@runtime_checkable
class TopicOutput(Output, Protocol):
    """An Output with a faster function for each topic."""

    def sender_to(self, topic: str) -> SendTo:
        """A function that sends records to one topic, to the default partition."""
        ...


def sender_to(output: Output, topic: str) -> SendTo:
    """The fastest function that sends to a topic."""
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
