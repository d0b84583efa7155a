"""Accumulator: records that wait to be sent, as batches per partition, within a memory limit.

    send() --append--> [open batch] [full] [full] ... --take--> in flight --settle--> gone
                                     ^                             |
                                     +------- put_back, in order --+

One lock guards everything here. Any thread appends; the sender's thread takes and puts back batches
and drops those that are settled.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from broker import concurrency
from broker.batch.layout import HEADER_BYTES
from broker.batch.records import Row
from broker.client.api import DeliveryCallback
from broker.client.config import ProducerConfig
from broker.client.produced_batch import Delivery, Outcomes, ProducedBatch
from broker.clock import Clock
from broker.errors import BrokerError, BufferFull, ErrorCode, MillstreamError
from broker.model import ProducerIdentity, TopicPartition


class BatchQueue:
    """The batches of one partition, oldest first."""

    __slots__ = ("accepted_producer", "batches", "in_flight", "next_order", "open", "stalled", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[ProducedBatch] = deque()
        self.open: ProducedBatch | None = None  # the last of `batches`, if it takes more records
        self.in_flight: list[ProducedBatch] = []
        self.next_order = 0
        # A batch failed while later ones were in flight: nothing more goes out until those are
        # answered, so that all can be sent again in their order.
        self.stalled = False
        self.accepted_producer = ProducerIdentity()  # of the last batch that the leader accepted

    def is_oldest(self, batch: ProducedBatch) -> bool:
        """Whether all batches that were sent before this one have an outcome."""
        others = (*self.in_flight, *self.batches)
        return not any(other.order and other.order < batch.order for other in others)

    def put_back(self, batch: ProducedBatch) -> None:
        """Queue a batch again, before all batches that were sent after it or not yet."""
        place = 0
        for waiting in self.batches:
            if not waiting.order or waiting.order > batch.order:
                break
            place += 1
        self.batches.insert(place, batch)


class Accumulator:
    """The records that wait to be sent or are in flight."""

    def __init__(self, config: ProducerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._lock = concurrency.Lock()
        self._room = concurrency.Condition(self._lock)
        self.work = concurrency.Condition(self._lock)  # the sender waits on it
        self.outcomes = Outcomes(clock)
        self._batch_size = config.batch_size
        self._bytes_free = config.buffer_memory
        self._signalled = False  # whether there may be new work since the sender last waited
        self._waiting_for_room = 0
        self._flushing = 0
        self._queues: dict[TopicPartition, BatchQueue] = {}
        self._incomplete: dict[ProducedBatch, None] = {}  # in their order
        self.refusal: MillstreamError | None = None  # why no records are accepted
        # Set by a sender without a thread: called in place of waking that thread.
        self.on_signal: Callable[[], None] | None = None

    # --- any thread ---------------------------------------------------------------------------

    def append(
        self, queue: BatchQueue, row: Row, size: int, callback: DeliveryCallback | None
    ) -> Delivery:
        """Add a record of `size` bytes."""
        with self._lock:
            if self.refusal is not None:
                raise self.refusal
            if size > self._bytes_free:
                self._wait_for_room(size)
            self._bytes_free -= size
            batch = queue.open
            if batch is None or batch.size_bytes + size > self._batch_size:
                batch = self._begin(queue)
                queue.open = batch
            rows = batch.rows
            delivery = Delivery((batch, len(rows), row[3]))
            if callback is not None:
                batch.callbacks.append((delivery, callback))
            rows.append(row)
            batch.size_bytes += size
            return delivery

    def append_many(
        self,
        placed: Sequence[tuple[BatchQueue, Row, int]],
        on_delivery: Callable[[Delivery], None],
    ) -> None:
        """Add records with their queues and sizes; `on_delivery` gets the delivery of each.

        Like `append`, but takes the lock once. An exception is about the record after the last
        delivery.
        """
        with self._lock:
            for queue, row, size in placed:
                if self.refusal is not None:
                    raise self.refusal
                if size > self._bytes_free:
                    self._wait_for_room(size)
                self._bytes_free -= size
                batch = queue.open
                if batch is None or batch.size_bytes + size > self._batch_size:
                    batch = self._begin(queue)
                    queue.open = batch
                rows = batch.rows
                on_delivery(Delivery((batch, len(rows), row[3])))
                rows.append(row)
                batch.size_bytes += size

    def append_encoded(
        self,
        queue: BatchQueue,
        data: bytes | memoryview,
        counts: tuple[int, int],
        callback: DeliveryCallback | None,
    ) -> Delivery:
        """Add a whole batch with its (record count, timestamp)."""
        record_count, timestamp_ms = counts
        with self._lock:
            if self.refusal is not None:
                raise self.refusal
            if len(data) > self._bytes_free:
                self._wait_for_room(len(data))
            self._bytes_free -= len(data)
            batch = self._begin(queue)
            queue.open = None
            batch.data = data
            batch.record_count = record_count
            batch.size_bytes += len(data)
            delivery = Delivery((batch, 0, timestamp_ms))
            if callback is not None:
                batch.callbacks.append((delivery, callback))
            self._signal()
            return delivery

    def queue(self, tp: TopicPartition) -> BatchQueue:
        """The queue of a partition, created on first use."""
        with self._lock:
            return self._queues.setdefault(tp, BatchQueue(tp))

    def _begin(self, queue: BatchQueue) -> ProducedBatch:
        batch = ProducedBatch(queue.tp, self._clock.monotonic_ms(), self.outcomes)
        # The batch before is full, or this one starts the clock of linger_ms.
        if len(queue.batches) < 2:
            self._signal()
        queue.batches.append(batch)
        self._incomplete[batch] = None
        return batch

    def _wait_for_room(self, size: int) -> None:
        if size > self._config.buffer_memory:
            # No wait or retry helps, as with a record that is larger than a request.
            raise BrokerError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {size} bytes is larger than buffer_memory",
                hint=f"buffer_memory is {self._config.buffer_memory}",
            )
        deadline_ms = self._clock.monotonic_ms() + self._config.max_block_ms
        self._waiting_for_room += 1
        self._signal()
        try:
            while size > self._bytes_free:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    raise BufferFull(
                        f"no buffer memory for {size} bytes became free within "
                        f"{self._config.max_block_ms} ms",
                        hint="send slower, or raise buffer_memory or max_block_ms",
                    )
                self._clock.wait(self._room, left_ms)
                if self.refusal is not None:
                    raise self.refusal
        finally:
            self._waiting_for_room -= 1

    def begin_flush(self) -> list[ProducedBatch]:
        """Make every batch ready now; returns those without outcome. `end_flush` ends the flush."""
        with self._lock:
            self._flushing += 1
            self._signal()
            return list(self._incomplete)

    def end_flush(self) -> None:
        """Let new batches linger again."""
        with self._lock:
            self._flushing -= 1

    def refuse(self, reason: MillstreamError | None) -> None:
        """Accept no more records, for this reason; with None, accept them again."""
        with self._lock:
            self.refusal = reason
            self._room.notify_all()

    def wake(self) -> None:
        """Wake the sender."""
        with self._lock:
            self._signal()

    def _signal(self) -> None:
        self._signalled = True
        if self.on_signal is None:
            self.work.notify()
        else:
            self.on_signal()

    # --- the sender's thread -------------------------------------------------------------------

    def wait_for_work(self, timeout_ms: int) -> None:
        """Wait until something happened since the last wait, or the time is up."""
        with self.work:
            if timeout_ms > 0 and not self._signalled:
                self._clock.wait(self.work, timeout_ms)
            self._signalled = False

    def forget(self, batch: ProducedBatch) -> None:
        """Remove a batch whose outcome was reported: later flushes do not wait for it."""
        with self._lock:
            self._incomplete.pop(batch, None)

    # --- the sender's thread, holding the lock (work) ------------------------------------------

    def active(self) -> Iterator[BatchQueue]:
        """The queues that have something to send."""
        return (queue for queue in self._queues.values() if queue.batches)

    def incomplete(self) -> list[ProducedBatch]:
        """The batches without an outcome."""
        return list(self._incomplete)

    def ready_in_ms(self, queue: BatchQueue, now_ms: int) -> int:
        """The time until the first batch of a queue may be sent; 0: now."""
        batch = queue.batches[0]
        if batch.attempts:
            return max(0, batch.retry_at_ms - now_ms)
        hurry = self._flushing or self._waiting_for_room or self.refusal is not None
        if hurry or batch is not queue.open or batch.size_bytes >= self._batch_size:
            return 0
        return max(0, batch.created_ms + self._config.linger_ms - now_ms)

    def queue_of(self, batch: ProducedBatch) -> BatchQueue:
        return self._queues[batch.tp]

    def take(self, queue: BatchQueue) -> ProducedBatch:
        """Remove the first batch of a queue to send it; no more records are added to it."""
        batch = queue.batches.popleft()
        if batch is queue.open:
            queue.open = None
        if not batch.order:
            batch.order = (queue.next_order,)
            queue.next_order += 1
        if batch.data is None:
            batch.record_count = len(batch.rows)
        queue.in_flight.append(batch)
        return batch

    def drop(self, batch: ProducedBatch) -> None:
        """Free the memory of a batch whose outcome is about to be set; `forget` follows."""
        queue = self._queues[batch.tp]
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        elif batch in queue.batches:
            queue.batches.remove(batch)
            if queue.open is batch:
                queue.open = None
        if not queue.in_flight:
            queue.stalled = False
        self._bytes_free += batch.size_bytes - HEADER_BYTES
        if self._waiting_for_room:
            self._room.notify_all()

    def put_back(self, batch: ProducedBatch) -> None:
        """Queue a batch again that was in flight."""
        queue = self._queues[batch.tp]
        queue.in_flight.remove(batch)
        queue.put_back(batch)
        queue.stalled = bool(queue.in_flight)

    def replace(self, batch: ProducedBatch, parts: Sequence[ProducedBatch]) -> None:
        """Queue the parts of a batch in its place; the batch was in flight."""
        queue = self._queues[batch.tp]
        queue.in_flight.remove(batch)
        for part in reversed(parts):
            queue.put_back(part)
        queue.stalled = bool(queue.in_flight)
        self._incomplete.pop(batch, None)
        self._incomplete.update(dict.fromkeys(parts))
