"""ProducedBatch: records of one partition that travel together; Delivery: the fate of one of them.

A batch is filled under the accumulator's lock. From the moment it is drained, only the sender's
thread touches it, until its outcome is set, once, under the outcome lock.
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
    """Where threads wait for batches; shared by all batches of a producer."""

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
    """Records of one partition on their way."""

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
        self.record_count = 0  # known when drained
        self.data: bytes | memoryview | None = None
        # Place among the batches of its partition that were drained, (3,) for example, or (3, 1)
        # for a part of that one; () before.
        self.order: tuple[int, ...] = ()
        self.producer = ProducerIdentity()
        self.base_sequence = NO_SEQUENCE
        self.stamped = (self.producer, NO_SEQUENCE)  # what `data` says
        self.attempts = 0
        self.retry_at_ms = 0
        # Sent, and it is unknown whether the broker has it: only the same sequence may be sent
        # again, or it could be stored twice.
        self.uncertain = False
        self.done = False
        self.parts: tuple[ProducedBatch, ...] = ()  # what it was split into
        self.base_offset = NO_OFFSET
        self.append_time_ms = NO_TIMESTAMP
        self.error: BaseException | None = None
        self.last_error: BaseException | None = None  # of the last attempt

    @property
    def has_sequence(self) -> bool:
        """Whether it was numbered."""
        return self.base_sequence != NO_SEQUENCE

    def is_settled(self) -> bool:
        """Whether the outcome of all its records is known and callbacks were called."""
        if self.parts:
            return all(part.is_settled() for part in self.parts)
        return self.done and not self.callbacks

    def encode(self, compression: str, level: int | None, *, transactional: bool) -> None:
        """Make its bytes, or number again those it has, if they say something else."""
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
        """The broker has it."""

        def settle() -> None:
            self.base_offset = base_offset
            self.append_time_ms = append_time_ms
            self.done = True

        self.outcomes.settle(settle)
        self._let_go()

    def fail(self, error: BaseException) -> None:
        """It will not be delivered."""

        def settle() -> None:
            self.error = error
            self.done = True

        self.outcomes.settle(settle)
        self._let_go()

    def _let_go(self) -> None:
        """Drop what only delivering needed, then call back; a flush waits for the callbacks."""
        self.rows = []
        self.data = None
        if self.callbacks:
            for delivery, callback in self.callbacks:
                delivery.tell(callback)
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
        self._hand_over(parts)
        return self.parts

    def _hand_over(self, parts: "Sequence[ProducedBatch]") -> None:
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
    """The fate of one record: its batch, its place there, its timestamp; see api.Delivery.

    A tuple, because one is made for every record and nothing is made faster.
    """

    __slots__ = ()

    def place(self) -> tuple[ProducedBatch, int]:
        """The batch the record is in now, and its place there: batches may have been split."""
        batch, index, _ = self
        while batch.parts:
            for part in batch.parts:
                if index < part.record_count:
                    batch = part
                    break
                index -= part.record_count
        return batch, index

    def done(self) -> bool:
        """Whether the fate is known."""
        return self.place()[0].done

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Wait for it: where the record is, or the error that kept it away."""
        error = self.exception(timeout_ms)
        if error is not None:
            raise error
        return self._metadata()

    def exception(self, timeout_ms: int | None = None) -> BaseException | None:
        """Wait for it: the error, or None when the record was delivered."""
        first = self[0]
        if not first.outcomes.wait(self.done, timeout_ms):
            raise RequestTimeout(
                f"a record for {first.tp} was not delivered within {timeout_ms} ms",
                hint="it is retried until delivery_timeout_ms expires",
            )
        return self.place()[0].error

    def tell(self, callback: DeliveryCallback) -> None:
        """Call a callback; what it raises is logged, since no caller could catch it."""
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
    """A copy of a batch with another producer and sequence, and the CRC that belongs to it."""
    copy = bytearray(data)
    (attributes,) = ATTRIBUTES.unpack_from(copy, ATTRIBUTES_AT)
    if transactional:
        ATTRIBUTES.pack_into(copy, ATTRIBUTES_AT, attributes | TRANSACTIONAL_BIT)
    PRODUCER_FIELDS.pack_into(copy, PRODUCER_FIELDS_AT, *producer, base_sequence)
    CRC.pack_into(copy, CRC_AT, crc32c(memoryview(copy)[ATTRIBUTES_AT:]))
    return memoryview(copy)
