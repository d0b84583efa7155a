"""ProducedBatch: records of one partition that are sent together; Delivery: the outcome of one.

A batch is filled under the accumulator's lock. Once it is taken to be sent, only the sender's
thread uses it, until its outcome is set, once, under the outcome lock.
"""

import logging
from collections.abc import Callable, Sequence
from struct import Struct

from crc32c import crc32c

from broker import concurrency
from broker.batch.codec import encode_batch
from broker.batch.layout import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_BYTES,
    NO_SEQUENCE,
    SEQUENCE_COUNT,
    TRANSACTIONAL_BIT,
)
from broker.batch.records import Row
from broker.client.api import DeliveryCallback, RecordMetadata
from broker.clock import Clock
from broker.errors import RequestTimeout
from broker.model import NO_TIMESTAMP, ProducerIdentity, TopicPartition

logger = logging.getLogger(__name__)

NO_OFFSET = -1
PRODUCER_FIELDS = Struct(">qhi")  # producer id, epoch, base sequence
PRODUCER_FIELDS_AT = 43
ATTRIBUTES = Struct(">h")
CRC = Struct(">I")


class Outcomes:
    """Sets outcomes, and lets threads wait for them; shared by all batches of a producer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = concurrency.Condition()

    def settle(self, action: Callable[[], None]) -> None:
        """Set the outcome of a batch by an action and wake the waiters."""
        with self._changed:
            action()
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Wait until the condition holds; False when the time ran out first."""
        if condition():
            return True
        deadline_ms = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while not condition():
                left_ms = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
                if left_ms is not None and left_ms <= 0:
                    return False
                self._clock.wait(self._changed, left_ms)
        return True


class ProducedBatch:
    """Records of one partition that are sent together."""

    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "base_sequence",
        "callbacks",
        "created_ms",
        "data",
        "done",
        "error",
        "last_error",
        "order",
        "outcomes",
        "parts",
        "producer",
        "record_count",
        "retry_at_ms",
        "rows",
        "size_bytes",
        "stamped",
        "tp",
        "uncertain",
    )

    def __init__(self, tp: TopicPartition, created_ms: int, outcomes: Outcomes) -> None:
        self.tp = tp
        self.created_ms = created_ms
        self.outcomes = outcomes
        self.rows: list[Row] = []
        self.callbacks: list[tuple[Delivery, DeliveryCallback]] = []
        self.size_bytes = HEADER_BYTES
        self.record_count = 0  # set when it is sent
        self.data: bytes | memoryview | None = None
        # Position among the batches of its partition that were sent: (3,) for example, (3, 1) for a
        # part of that one, () before it is sent.
        self.order: tuple[int, ...] = ()
        self.producer = ProducerIdentity()
        self.base_sequence = NO_SEQUENCE
        self.stamped = (self.producer, NO_SEQUENCE)  # of `data`
        self.attempts = 0
        self.retry_at_ms = 0
        # It was sent, and the broker may have stored it: only a retry with the same sequence avoids
        # duplicates.
        self.uncertain = False
        self.done = False
        self.parts: tuple[ProducedBatch, ...] = ()  # what it was split into
        self.base_offset = NO_OFFSET
        self.append_time_ms = NO_TIMESTAMP
        self.error: BaseException | None = None
        self.last_error: BaseException | None = None  # of the last attempt

    @property
    def has_sequence(self) -> bool:
        """Whether it has a sequence number."""
        return self.base_sequence != NO_SEQUENCE

    def is_settled(self) -> bool:
        """Whether all outcomes are known and all callbacks have run."""
        if self.parts:
            return all(part.is_settled() for part in self.parts)
        return self.done and not self.callbacks

    def encode(self, compression: str, level: int | None, *, transactional: bool) -> None:
        """Encode the records, or renumber encoded ones if their sequence has changed."""
        wanted = (self.producer, self.base_sequence)
        if self.data is None:
            self.data = encode_batch(
                self.rows,
                compression=compression,
                level=level,
                producer=self.producer,
                base_sequence=self.base_sequence,
                transactional=transactional,
            )
        elif self.stamped != wanted:
            self.data = renumbered(self.data, *wanted, transactional=transactional)
        self.stamped = wanted

    def complete(self, base_offset: int, append_time_ms: int) -> None:
        """Settle the batch: the broker has stored it."""

        def settle() -> None:
            self.base_offset = base_offset
            self.append_time_ms = append_time_ms
            self.done = True

        self.outcomes.settle(settle)
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Settle the batch: it will not be delivered."""

        def settle() -> None:
            self.error = error
            self.done = True

        self.outcomes.settle(settle)
        self._finish()

    def _finish(self) -> None:
        """Release the records, then run the callbacks; a flush waits for the callbacks."""
        self.rows = []
        self.data = None
        if self.callbacks:
            for delivery, callback in self.callbacks:
                delivery.run(callback)
            self.outcomes.settle(self.callbacks.clear)

    def split(self, bytes_max: int) -> "tuple[ProducedBatch, ...]":
        """Two or more smaller batches with the same records in the same order."""
        assert len(self.rows) > 1, "a single record cannot be split"
        parts: list[ProducedBatch] = []
        for row in self.rows:
            size = row_bytes(row)
            if not parts or parts[-1].size_bytes + size > bytes_max:
                parts.append(ProducedBatch(self.tp, self.created_ms, self.outcomes))
            parts[-1].rows.append(row)
            parts[-1].size_bytes += size
        if len(parts) == 1:
            return self.split(bytes_max // 2)
        self._replace_with(parts)
        return self.parts

    def _replace_with(self, parts: "Sequence[ProducedBatch]") -> None:
        sequence = self.base_sequence
        for index, part in enumerate(parts):
            part.record_count = len(part.rows)
            part.order = (*self.order, index)
            part.attempts = self.attempts
            if self.has_sequence:
                part.producer = self.producer
                part.base_sequence = sequence
                sequence = (sequence + part.record_count) % SEQUENCE_COUNT

        def settle() -> None:
            self.parts = tuple(parts)

        self.outcomes.settle(settle)
        callbacks, self.callbacks = self.callbacks, []
        for delivery, callback in callbacks:
            delivery.place()[0].callbacks.append((delivery, callback))


class Delivery(tuple[ProducedBatch, int, int]):
    """The outcome of one record: its batch, its index there, its timestamp.

    A tuple, because one is created per record and tuples are the fastest to create.
    """

    __slots__ = ()

    def place(self) -> tuple[ProducedBatch, int]:
        """The current batch of the record, and its index there: batches may have been split."""
        batch, index, _ = self
        while batch.parts:
            for part in batch.parts:
                if index < part.record_count:
                    batch = part
                    break
                index -= part.record_count
        return batch, index

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self.place()[0].done

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Wait for the outcome: the position of the record, or raise the error."""
        error = self.exception(timeout_ms)
        if error is not None:
            raise error
        return self._metadata()

    def exception(self, timeout_ms: int | None = None) -> BaseException | None:
        """Wait for the outcome: the error, or None if the record was delivered."""
        first = self[0]
        if not first.outcomes.wait(self.done, timeout_ms):
            raise RequestTimeout(
                f"a record for {first.tp} was not delivered within {timeout_ms} ms",
                hint="it is retried until delivery_timeout_ms expires",
            )
        return self.place()[0].error

    def run(self, callback: DeliveryCallback) -> None:
        """Call a callback; its exceptions are logged, as no caller could catch them."""
        error = self.place()[0].error
        try:
            callback(self._metadata() if error is None else None, error)
        except Exception:
            logger.exception("the callback of a record for %s failed", self[0].tp)

    def _metadata(self) -> RecordMetadata:
        batch, index = self.place()
        offset = NO_OFFSET if batch.base_offset < 0 else batch.base_offset + index
        timestamp_ms = self[2] if batch.append_time_ms < 0 else batch.append_time_ms
        return RecordMetadata(batch.tp.topic, batch.tp.partition, offset, timestamp_ms)


RECORD_OVERHEAD_BYTES = 21  # sizes, deltas and attributes of a record at their longest
HEADER_OVERHEAD_BYTES = 10


def row_bytes(row: Row) -> int:
    """Maximum size of a record before compression."""
    key, value, headers, _ = row
    size = RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    return size + headers_bytes(headers) if headers else size


def headers_bytes(headers: Sequence[tuple[str, bytes | bytearray | memoryview | None]]) -> int:
    """Maximum size of the headers of a record."""
    return sum(
        HEADER_OVERHEAD_BYTES + 3 * len(name) + (0 if data is None else len(data))
        for name, data in headers
    )


def renumbered(
    data: bytes | memoryview,
    producer: ProducerIdentity,
    base_sequence: int,
    *,
    transactional: bool,
) -> memoryview:
    """A copy of a batch with another producer and sequence, and a new CRC."""
    copy = bytearray(data)
    (attributes,) = ATTRIBUTES.unpack_from(copy, ATTRIBUTES_AT)
    if transactional:
        ATTRIBUTES.pack_into(copy, ATTRIBUTES_AT, attributes | TRANSACTIONAL_BIT)
    PRODUCER_FIELDS.pack_into(copy, PRODUCER_FIELDS_AT, *producer, base_sequence)
    CRC.pack_into(copy, CRC_AT, crc32c(memoryview(copy)[ATTRIBUTES_AT:]))
    return memoryview(copy)
