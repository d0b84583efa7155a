"""Many records in one call, for callers that have them in chunks: Producer.send_many."""

from collections.abc import Sequence

from broker.client.api import Headers
from broker.client.produced_batch import Delivery, ProducedBatch

# key, value, headers, timestamp_ms, partition: the producer sets the last two if they are None.
ManyRow = tuple[bytes | None, bytes | None, Headers, int | None, int | None]


def arrived(deliveries: Sequence[Delivery | None], start: int) -> int:
    """The number of deliveries from `start` on that succeeded; None means nothing was sent.

    Stops at the first one that is pending or failed. A batch is examined once, not per record.
    """
    known: ProducedBatch | None = None
    for index in range(start, len(deliveries)):
        delivery = deliveries[index]
        if delivery is None:
            continue
        batch = delivery[0]
        if batch is known:
            continue
        if batch.done and batch.error is None and not batch.parts:
            known = batch
            continue
        if not delivery.done() or delivery.exception(0) is not None:
            return index - start
    return len(deliveries) - start
