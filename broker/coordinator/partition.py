"""Partition: one partition of this broker, between its clients and its log.

    FOLLOWER ──lead──> LEADER

Only a leader handles requests of clients and accepts records. The broker leads all its partitions
as soon as their logs are open, in one epoch, which is stored in the data directory; nothing here
depends on that. All methods are called under the broker's lock.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from broker.batch.codec import RecordFacts
from broker.config import TopicConfig
from broker.errors import BrokerError, ErrorCode
from broker.model import AbortedTransaction
from broker.storage.data_directory import DataDirectory
from broker.storage.flusher import Durable, Failed
from broker.storage.partition_log import Appended, Fetched, PartitionLog
from broker.storage.producer_state import ProducerEntry
from broker.storage.segment import Segment

UNKNOWN_EPOCH = -1


class Role(Enum):
    """The broker's role for a partition."""

    FOLLOWER = "follower"
    LEADER = "leader"


class RecordPosition(NamedTuple):
    """A record's offset, its timestamp, and the leader epoch in which it was written."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Partition:
    """A role, a leader epoch, and a log that is visible to readers up to two offsets."""

    __slots__ = ("_storage", "log", "role", "topic_partition")

    def __init__(self, log: PartitionLog, storage: DataDirectory) -> None:
        """A follower, until `lead` is called."""
        self.topic_partition = log.topic_partition
        self.log = log
        self.role = Role.FOLLOWER
        self._storage = storage

    def lead(self, epoch: int) -> None:
        """Become leader: handle requests of clients, and append records in this epoch."""
        self.role = Role.LEADER
        self.log.leader_epoch = epoch

    @property
    def leader_epoch(self) -> int:
        """The epoch in which the partition is led."""
        return self.log.leader_epoch

    def check_leads(self, epoch: int = UNKNOWN_EPOCH) -> None:
        """Refuse requests that need a leader, and clients with an older or newer epoch."""
        if self.role is not Role.LEADER:
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f'partition "{self.topic_partition}" is not led'
            )
        if epoch < 0 or epoch == self.log.leader_epoch:
            return
        if epoch < self.log.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def update_config(self, config: TopicConfig) -> None:
        """Apply changed settings of the topic immediately."""
        self.log.update_config(config)

    # --- offsets ------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """The first readable offset."""
        return self.log.start_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which all readers may read."""
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which read_committed readers may read."""
        return self.log.last_stable_offset

    def limit(self, *, committed: bool) -> int:
        """The offset up to which a reader may read."""
        return self.log.last_stable_offset if committed else self.log.high_watermark

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever the high watermark or the last stable offset moves."""
        self.log.subscribe(callback)

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """Stop calling back."""
        self.log.unsubscribe(callback)

    # --- writing ------------------------------------------------------------------------------

    def append(self, records: memoryview, *, now_ms: int, facts: RecordFacts | None) -> Appended:
        """Append a batch of a producer; `facts` if its records were already checked."""
        return self.log.append(records, origin="client", now_ms=now_ms, facts=facts)

    def append_internal(self, batch: bytes, *, now_ms: int) -> Appended:
        """Append a batch of the broker itself: records of a coordinator, or a marker."""
        return self.log.append(memoryview(bytearray(batch)), origin="coordinator", now_ms=now_ms)

    def is_written(self, offset: int) -> bool:
        """Whether a record is as durable as `durability` requires."""
        return self.log.is_written(offset)

    def when_written(self, offset: int, callback: Durable, failed: Failed) -> None:
        """Call back when all records below an offset are written, or when the disk fails."""
        self._storage.when_durable(self.log, offset, callback, failed)

    def delete_records_before(self, offset: int | None) -> int:
        """Advance the start offset, with None to the high watermark; returns it."""
        if not self.log.config.deletes:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        if offset is None:
            offset = self.log.high_watermark
        if not 0 <= offset <= self.log.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return self.log.delete_records_before(offset)

    # --- reading ------------------------------------------------------------------------------

    def read(self, offset: int, *, bytes_max: int, committed: bool, minimum_one: bool) -> Fetched:
        """Whole batches from an offset on, up to the reader's limit."""
        log = self.log
        limit = log.last_stable_offset if committed else log.high_watermark
        return log.read(offset, bytes_max=bytes_max, offset_limit=limit, minimum_one=minimum_one)

    def aborted_transactions(self, first: int, last: int) -> list[AbortedTransaction]:
        """Aborted transactions with records from an offset up to another, exclusive."""
        return self.log.aborted_transactions(first, last)

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest epoch up to this one and its end offset; None for an unknown epoch."""
        return self.log.end_of_epoch(epoch)

    def diverges(self, offset: int, last_epoch: int) -> tuple[int, int] | None:
        """Where a reader at an offset, after records of an epoch, must truncate; None if nowhere.

        The largest epoch up to the reader's, and where it ended.
        """
        found = self.log.end_of_epoch(last_epoch)
        if found is None:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{last_epoch} is not a leader epoch of {self.topic_partition}",
            )
        return None if found[0] == last_epoch and found[1] >= offset else found

    # --- looking up ---------------------------------------------------------------------------

    def first_place(self) -> RecordPosition:
        """The start of the partition."""
        offset = self.log.start_offset
        return RecordPosition(offset, -1, self.log.epoch_at(offset))

    def last_place(self, *, committed: bool) -> RecordPosition:
        """The end of the partition for a reader."""
        return RecordPosition(self.limit(committed=committed), -1, self.log.leader_epoch)

    def place_of_time(self, timestamp_ms: int, *, committed: bool) -> RecordPosition | None:
        """The first record at or after a time, if the reader may read it."""
        return self._place(self.log.offset_for_timestamp(timestamp_ms), committed)

    def place_of_max_timestamp(self, *, committed: bool) -> RecordPosition | None:
        """The first record with the largest timestamp, if the reader may read it."""
        return self._place(self.log.max_timestamp(), committed)

    def _place(self, found: tuple[int, int] | None, committed: bool) -> RecordPosition | None:
        if found is None or found[0] >= self.limit(committed=committed):
            return None
        return RecordPosition(*found, self.log.epoch_at(found[0]))

    def unread_segments(self) -> list[Segment]:
        """The segments whose files must be read to look up a time."""
        return [segment for segment in self.log.segments if not segment.knows_max_timestamp]

    def producers(self) -> Sequence[ProducerEntry]:
        """The producers that wrote recently, and their open transactions."""
        return self.log.producers.entries()
