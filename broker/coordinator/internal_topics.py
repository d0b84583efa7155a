"""The coordinators' own logs: the partition of a key, appending records, replaying all of them.

A coordinator's record is `key = int16 kind + message`, `value = int16 version + message` or null (a
tombstone). The partition of a group or a transactional id depends only on its name, through
Java's string hash, so that Kafka's tools find it in the expected partition.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TypeVar

from broker.batch.codec import Record, decode_records, encode_batch
from broker.batch.layout import BatchHeader, read_header
from broker.clock import Clock
from broker.coordinator.partition import Partition
from broker.coordinator.topics import TopicCatalog
from broker.errors import StorageError
from broker.model import ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.protocol import message
from broker.storage.flusher import Failed, unanswered
from broker.storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)

T = TypeVar("T")

SKIPPED_SHOWN_MAX = 20  # of one topic, each with its offset; the others are only counted
READ_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 256 * 1024  # the size of one batch where records may be in several
HEADER_BYTES = 61
PREFIX = Struct(">h")

CoordinatorRecord = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Written:
    """The position of a coordinator's batch."""

    partition: Partition
    last_offset: int


@dataclass(slots=True)
class ReplayedBatch:
    """One batch of a coordinator's log, as replayed at the start."""

    partition: int
    header: BatchHeader
    records: list[Record]


INT_MIN = -(1 << 31)


def java_hash(text: str) -> int:
    """String.hashCode of Java, over UTF-16 units."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(encoded), 2):
        found = (31 * found + (encoded[index] << 8 | encoded[index + 1])) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def partition_for(key: str, count: int) -> int:
    """The partition that holds a group's or a transactional id's state."""
    found = java_hash(key)
    # The smallest int has no absolute value in Java; Kafka uses zero instead.
    return 0 if found == INT_MIN else abs(found) % count


def prefixed(number: int, body: object, version: int | None = None) -> bytes:
    """A record's key (number: its kind) or value (number: its version)."""
    out = bytearray(PREFIX.pack(number))
    message.encode(body, 0 if version is None else version, out, [])
    return bytes(out)


def read_prefix(data: bytes | memoryview) -> int:
    """The int16 before a key or value; -1 if there are fewer than two bytes."""
    return int(PREFIX.unpack_from(data)[0]) if len(data) >= PREFIX.size else -1


class InternalLog:
    """Appends to and replays one internal topic."""

    def __init__(
        self,
        topic: str,
        *,
        partition_count: int,
        topics: TopicCatalog,
        clock: Clock,
    ) -> None:
        """Creates nothing before the first append, which creates this number of partitions."""
        self.topic = topic
        # A setting that is changed later must not change the partitions of existing keys.
        made = topics.get(topic)
        self.partition_count = partition_count if made is None else made.partition_count
        self._topics = topics
        self._partitions = topics.partitions
        self._clock = clock
        self.skipped = 0  # records and batches that could not be read, since the start

    def skip(self, partition: int, offset: int, reason: object) -> None:
        """Report a record or batch that is skipped: it must not prevent a start."""
        self.skipped += 1
        if self.skipped <= SKIPPED_SHOWN_MAX:
            where = f'topic "{self.topic}" partition {partition} offset {offset}'
            logger.warning("skipped a bad record at %s: %s", where, reason)

    def report_skipped(self) -> None:
        """Log how many records a replay skipped, if any."""
        if self.skipped:
            logger.error(
                'topic "%s": %d records could not be read and were skipped',
                self.topic,
                self.skipped,
            )

    def partition_for(self, key: str) -> int:
        """The partition that holds the state of this key."""
        return partition_for(key, self.partition_count)

    def append(
        self,
        partition: int,
        records: Iterable[CoordinatorRecord],
        *,
        producer: ProducerIdentity | None = None,
    ) -> Written:
        """Append records as one batch; with a producer, as part of its transaction."""
        now_ms = self._clock.now_ms()
        batch = encode_batch(
            ((key, value, (), now_ms) for key, value in records),
            producer=producer or ProducerIdentity(),
            transactional=producer is not None,
        )
        return self.append_batch(partition, batch)

    def append_batch(self, partition: int, batch: bytes) -> Written:
        """Append an encoded batch, a control batch for example."""
        name = TopicPartition(self.topic, partition)
        found = self._partitions.get(name)
        if found is None:
            self._topics.ensure_internal(self.topic)
            found = self._partitions.leader(name)
        appended = found.append_internal(batch, now_ms=self._clock.now_ms())
        return Written(found, appended.last_offset)

    def log(self, partition: int) -> PartitionLog | None:
        """The partition's log, if it was ever written."""
        found = self._partitions.get(TopicPartition(self.topic, partition))
        return None if found is None else found.log

    def append_all(self, partition: int, records: Iterable[CoordinatorRecord]) -> Written | None:
        """Append any number of records, as several batches if they are many."""
        written = None
        chunk: list[CoordinatorRecord] = []
        size = 0
        for key, value in records:
            chunk.append((key, value))
            size += len(key) + len(value or b"")
            if size >= CHUNK_BYTES:
                written = self.append(partition, chunk)
                chunk, size = [], 0
        return self.append(partition, chunk) if chunk else written

    def when_durable(
        self,
        written: Written,
        callback: Callable[[], None],
        failed: Failed = unanswered,
    ) -> None:
        """Call back when the batch is durable (see `durability`), or when the disk fails."""
        written.partition.when_written(written.last_offset + 1, callback, failed)

    def answer_when_durable(
        self, written: Written | None, answer: T, failed: Callable[[], T] | None = None
    ) -> T | Pending[T]:
        """The response, or a pending one that completes when the write is durable.

        If the disk fails, the result of `failed` is the response; without it the request times out.
        """
        if written is None:
            return answer
        pending: Pending[T] = Pending()

        def give_up(_: StorageError) -> None:
            if failed is not None:
                pending.complete(failed())

        self.when_durable(written, lambda: _complete(pending, answer), give_up)
        return answer if pending.done else pending

    def replay(self) -> Iterator[ReplayedBatch]:
        """Every batch of every partition, in order; a batch that cannot be read is logged."""
        for partition in range(self.partition_count):
            log = self.log(partition)
            if log is not None and log.end_offset > log.start_offset:
                yield from self._replay_partition(partition, log)

    def _replay_partition(self, partition: int, log: PartitionLog) -> Iterator[ReplayedBatch]:
        offset = log.start_offset
        while offset < log.end_offset:
            fetched = log.read(offset, bytes_max=READ_BYTES, offset_limit=log.end_offset)
            records = fetched.records
            view = memoryview(records if isinstance(records, bytes) else records.read())
            reached = offset
            for header, decoded in self._batches(partition, view):
                if header.last_offset >= offset:
                    reached = header.next_offset
                    yield ReplayedBatch(partition, header, decoded)
            if reached == offset:
                rest = f"the offsets up to {log.end_offset} cannot be read"
                self.skip(partition, offset, rest)
                break
            offset = reached

    def _batches(
        self, partition: int, view: memoryview
    ) -> Iterator[tuple[BatchHeader, list[Record]]]:
        position = 0
        while len(view) - position >= HEADER_BYTES:
            header = read_header(view, position)
            if header.size > len(view) - position:
                return
            records: list[Record] = []
            try:
                records = decode_records(view, position)
            except Exception as error:  # whatever the bytes are, the start continues
                self.skip(partition, header.base_offset, f"unreadable batch: {error!r}")
            yield header, records
            position += header.size


def _complete(pending: Pending[T], answer: T) -> None:
    pending.complete(answer)
