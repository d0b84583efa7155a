"""ProducerStates: the last batches of each producer; idempotence and the last stable offset.

    NNN.snapshot   version i16 = 1 | CRC-32C u32 of what follows | count i32 | entries
    entry          producer id i64 | epoch i16 | last sequence i32 | last offset i64
                   | offset delta of the last batch i32 | timestamp i64
                   | coordinator epoch i32 | first offset of the open transaction i64, -1: none

A snapshot NNN contains the state before offset NNN; later batches of the log are replayed.
"""

import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import crc32c

from broker.batch.layout import SEQUENCE_COUNT, BatchHeader
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import NO_PRODUCER_EPOCH, ProducerIdentity
from broker.storage.index import AbortedRange

SNAPSHOT_HEAD = struct.Struct(">hIi")
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1
SNAPSHOT_CRC_END = 6
REMEMBERED_BATCHES = 5
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class WrittenBatch(NamedTuple):
    """A batch of a producer, by its last sequence and offset."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record."""
        return (self.last_sequence - self.offset_delta) % SEQUENCE_COUNT

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class Marker(NamedTuple):
    """The end of a transaction, from its control record."""

    commit: bool
    coordinator_epoch: int


class ProducerEntry:
    """One producer: its epoch, its last batches, and its open transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp_ms",
        "producer_id",
        "quiet_since_ms",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.batches: deque[WrittenBatch] = deque(maxlen=REMEMBERED_BATCHES)
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp_ms = -1
        # When it was first found inactive since the previous check; None: it has written.
        self.quiet_since_ms: int | None = None
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record of this epoch; -1: none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record of this epoch; -1: none."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def take_epoch(self, epoch: int) -> None:
        """Set a new epoch, which restarts the sequences."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducerStates:
    """The producers of one partition, including those with open transactions."""

    __slots__ = ("_deciding", "_entries", "_open")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        # First offsets of open transactions, in order: they are added when they begin.
        self._open: dict[int, int] = {}
        # Ended transactions whose marker is not below the high watermark: first and last offset.
        self._deciding: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """The number of known producers."""
        return len(self._entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """A producer, or None."""
        return self._entries.get(producer_id)

    def entries(self) -> list[ProducerEntry]:
        """All known producers."""
        return list(self._entries.values())

    @property
    def open_transactions(self) -> dict[int, int]:
        """First offsets of the open transactions by producer id, lowest first."""
        return self._open

    def check(self, header: BatchHeader, *, sequences: bool) -> WrittenBatch | None:
        """Check a batch that a producer appends; returns the earlier batch if it is a duplicate.

        Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        if sequences and (duplicate := _find_duplicate(entry, header)) is not None:
            return duplicate
        _check_epoch(entry, header.producer_epoch)
        if header.is_control:
            return None
        if sequences:
            _check_sequence(entry, header)
        if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {entry.producer_id} wrote outside of its open transaction",
            )
        return None

    def check_marker(self, producer: ProducerIdentity, marker: Marker) -> None:
        """Check that the marker is not from an old coordinator."""
        entry = self._entries.get(producer.producer_id)
        if entry is not None and marker.coordinator_epoch < entry.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} is older than"
                f" {entry.coordinator_epoch}, seen for producer {entry.producer_id}",
            )

    def wrote(self, header: BatchHeader) -> None:
        """Register a producer's batch that is now in the log."""
        entry = self._entry(header.producer_id)
        entry.take_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        entry.batches.append(
            WrittenBatch(header.last_sequence, header.last_offset, delta, header.max_timestamp)
        )
        entry.last_timestamp_ms = header.max_timestamp
        entry.quiet_since_ms = None
        if header.is_transactional and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = header.base_offset
            self._open[entry.producer_id] = header.base_offset

    def ended(self, header: BatchHeader, marker: Marker) -> AbortedRange | None:
        """Register a marker that is now in the log; returns the transaction if it was aborted."""
        entry = self._entry(header.producer_id)
        entry.take_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = header.max_timestamp
        entry.quiet_since_ms = None
        first_offset = entry.transaction_first_offset
        if first_offset == NO_OFFSET:
            return None
        entry.transaction_first_offset = NO_OFFSET
        del self._open[entry.producer_id]
        last_offset = header.last_offset
        self._deciding.append((first_offset, last_offset))
        if marker.commit:
            return None
        stable = next(iter(self._open.values()), last_offset + 1)
        return AbortedRange(entry.producer_id, first_offset, last_offset, stable)

    def first_unstable_offset(self, high_watermark: int) -> int:
        """The last stable offset: before open and not durably ended transactions."""
        stable = next(iter(self._open.values()), high_watermark)
        if self._deciding:
            self._deciding = [item for item in self._deciding if item[1] >= high_watermark]
            for first_offset, _ in self._deciding:
                stable = min(stable, first_offset)
        return min(stable, high_watermark)

    def expire(self, now_ms: int, after_ms: int) -> None:
        """Remove producers that were inactive for this long, unless a transaction is open.

        This uses the broker's clock, not the timestamps of records as in Kafka: a producer of old
        records would expire immediately, and its next retry would be written again.
        """
        gone = []
        for entry in self._entries.values():
            if entry.quiet_since_ms is None:
                entry.quiet_since_ms = now_ms
            elif (
                entry.quiet_since_ms <= now_ms - after_ms
                and entry.transaction_first_offset == NO_OFFSET
            ):
                gone.append(entry.producer_id)
        for producer_id in gone:
            del self._entries[producer_id]

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id)
        return entry

    def to_snapshot(self) -> bytes:
        """The snapshot file."""
        rows = [_pack_entry(entry) for entry in self._entries.values()]
        head = bytearray(SNAPSHOT_HEAD.pack(SNAPSHOT_VERSION, 0, len(rows)))
        data = head + b"".join(rows)
        checksum = crc32c.crc32c(memoryview(data)[SNAPSHOT_CRC_END:])
        SNAPSHOT_HEAD.pack_into(data, 0, SNAPSHOT_VERSION, checksum, len(rows))
        return bytes(data)

    @classmethod
    def from_snapshot(cls, data: bytes) -> "ProducerStates":
        """Read a snapshot file; StorageError if it is damaged."""
        if len(data) < SNAPSHOT_HEAD.size:
            raise StorageError(f"a producer snapshot of {len(data)} bytes has no head")
        version, checksum, count = SNAPSHOT_HEAD.unpack_from(data)
        body = memoryview(data)[SNAPSHOT_HEAD.size :]
        if version != SNAPSHOT_VERSION or len(body) != count * SNAPSHOT_ENTRY.size:
            raise StorageError(f"a producer snapshot has version {version} or a wrong size")
        if crc32c.crc32c(memoryview(data)[SNAPSHOT_CRC_END:]) != checksum:
            raise StorageError("a producer snapshot fails its checksum")
        states = cls()
        states._restore(SNAPSHOT_ENTRY.iter_unpack(body))
        return states

    def _restore(self, rows: Iterable[tuple[int, ...]]) -> None:
        for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first in rows:
            entry = self._entry(producer_id)
            entry.epoch = epoch
            if offset >= 0:
                entry.batches.append(WrittenBatch(sequence, offset, delta, timestamp))
            entry.last_timestamp_ms = timestamp
            entry.coordinator_epoch = coordinator
            entry.transaction_first_offset = first
        still_open = [entry for entry in self.entries() if entry.transaction_first_offset >= 0]
        for entry in sorted(still_open, key=lambda entry: entry.transaction_first_offset):
            self._open[entry.producer_id] = entry.transaction_first_offset


def _pack_entry(entry: ProducerEntry) -> bytes:
    delta = entry.batches[-1].offset_delta if entry.batches else 0
    return SNAPSHOT_ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_offset,
        delta,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )


def _find_duplicate(entry: ProducerEntry, header: BatchHeader) -> WrittenBatch | None:
    if header.producer_epoch != entry.epoch:
        return None
    first, last = header.base_sequence, header.last_sequence
    for batch in entry.batches:
        if batch.last_sequence == last and batch.first_sequence == first:
            return batch
    return None


def _check_epoch(entry: ProducerEntry, epoch: int) -> None:
    if epoch < entry.epoch:
        raise BrokerError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {entry.producer_id} has epoch {entry.epoch}, a batch has epoch {epoch}",
        )


def _check_sequence(entry: ProducerEntry, header: BatchHeader) -> None:
    if header.producer_epoch != entry.epoch:
        # A new epoch starts at 0, unless the old one is unknown.
        expected = header.base_sequence if entry.epoch == NO_PRODUCER_EPOCH else 0
    else:
        expected = (entry.last_sequence + 1) % SEQUENCE_COUNT
    if header.base_sequence != expected:
        raise BrokerError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} epoch {header.producer_epoch} sent sequence"
            f" {header.base_sequence}, expected {expected}",
        )
