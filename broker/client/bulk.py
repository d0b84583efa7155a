"""BulkProducer: sends many records in one call, for callers that have them in chunks."""

from collections.abc import Sequence
from typing import Protocol

from broker.client.api import Delivery, Headers, Producer
from broker.client.produced_batch import Delivery as BatchedDelivery
from broker.client.produced_batch import ProducedBatch

# key, value, headers, timestamp_ms, partition: the producer sets the last two if they are None.
ManyRow = tuple[bytes | None, bytes | None, Headers, int | None, int | None]


class BulkProducer(Producer, Protocol):
    """A producer that accepts many records in one call."""

    def send_many(
        self, topic: str, rows: Sequence[ManyRow], deliveries: list[Delivery | None]
    ) -> None:
        """Queue records of one topic in their order, as `send` does one.

        The delivery of each is added to the list; an exception is about the record after them.
        """
        ...


def arrived(deliveries: Sequence[Delivery | None], start: int) -> int:
    """The number of deliveries from `start` on that succeeded; None means nothing was sent.

    Stops at the first one that is pending or failed. A batch is examined once, not per record.
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
