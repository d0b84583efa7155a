"""Many records at once: for who has them in chunks and need not wait for single ones."""

from collections.abc import Sequence
from typing import Protocol

from broker.client.api import Delivery, Headers, Producer
from broker.client.produced_batch import Delivery as BatchedDelivery
from broker.client.produced_batch import ProducedBatch

# key, value, headers, timestamp_ms, partition: the last two may be left to the producer.
ManyRow = tuple[bytes | None, bytes | None, Headers, int | None, int | None]


class BulkProducer(Producer, Protocol):
    """A producer that takes many records in one call."""

    def send_many(
        self, topic: str, rows: Sequence[ManyRow], deliveries: list[Delivery | None]
    ) -> None:
        """Queue records of one topic in their order, as `send` does one.

        The delivery of each is added to the list: what is raised is about the record after them.
        """
        ...


def arrived(deliveries: Sequence[Delivery | None], start: int) -> int:
    """How many, from a place on, are known to have arrived; None stands for nothing to send.

    Ends before the first that waits or has failed. Records of one batch are looked at once.
    """
    known: ProducedBatch | None = None
    for index in range(start, len(deliveries)):
        delivery = deliveries[index]
        if delivery is None:
            continue
        if isinstance(delivery, BatchedDelivery):
            batch = delivery[0]
            if batch is known:
                continue
            if batch.done and batch.error is None and not batch.parts:
                known = batch
                continue
        if not delivery.done() or delivery.exception(0) is not None:
            return index - start
    return len(deliveries) - start
