"""What the clients offer, as Protocols, and the values they speak in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from broker.batch.layout import BatchHeader
from broker.model import TopicPartition

Headers = Sequence[tuple[str, bytes | None]]


class RecordMetadata(NamedTuple):
    """Where a record ended up; offset -1 when the broker was not asked (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A position to commit: the next offset to read, and a note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """Who commits in a group: the broker refuses members and generations of the past."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class Delivery(Protocol):
    """The fate of one record or batch."""

    def done(self) -> bool:
        """Whether it is known."""
        ...

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Wait for it: where the record is, or the error that kept it away."""
        ...

    def exception(self, timeout_ms: int | None = None) -> BaseException | None:
        """Wait for it: the error, or None when the record was delivered."""
        ...


DeliveryCallback = Callable[[RecordMetadata | None, BaseException | None], None]


class Producer(Protocol):
    """Writes records. Any thread may call any method."""

    def send(  # noqa: PLR0913 - a record has this many parts
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        callback: DeliveryCallback | None = None,
    ) -> Delivery:
        """Queue a record; waits only for unknown topics and for buffer memory."""
        ...

    def send_batch(
        self,
        tp: TopicPartition,
        batch: bytes | memoryview,
        *,
        callback: DeliveryCallback | None = None,
    ) -> Delivery:
        """Queue one whole record batch as it is; the delivery speaks of its first record."""
        ...

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        ...

    def flush(self, timeout_ms: int | None = None) -> None:
        """Send everything now and wait until the fate of all records is known."""
        ...

    def init_transactions(self) -> None:
        """Finish or abort what an earlier producer of the same transactional id left open."""
        ...

    def begin_transaction(self) -> None:
        """Start a transaction: all records sent from now on belong to it."""
        ...

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit positions of a group together with the records."""
        ...

    def commit_transaction(self) -> None:
        """Make the transaction visible; returns when it is."""
        ...

    def abort_transaction(self) -> None:
        """Drop the transaction."""
        ...

    def close(self, timeout_ms: int | None = None) -> None:
        """Send what is left, as long as the timeout allows, then stop."""
        ...

    def __enter__(self) -> Self:
        """Use as a context manager."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        ...


class ConsumerRecord(NamedTuple):
    """One record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(slots=True)
class FetchedBatch:
    """One record batch as it lies in the log; `data` keeps the whole answer it came in alive.

    Records below `start_offset` were taken before, or lie before the place sought.
    """

    topic_partition: TopicPartition
    data: memoryview
    header: BatchHeader
    start_offset: int

    @property
    def first_offset(self) -> int:
        """Offset of the first record of the batch."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the batch."""
        return self.header.last_offset


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """The first offset at or after a time."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


PartitionsCallback = Callable[[frozenset[TopicPartition]], None]


def _ignore(partitions: frozenset[TopicPartition]) -> None:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class RebalanceListener:
    """What to call when the group gives or takes partitions; called inside `poll` and `close`.

    `revoked` may still commit. `lost` partitions may belong to others already; without a callback
    of its own it is `revoked` that is called.
    """

    assigned: PartitionsCallback = _ignore
    revoked: PartitionsCallback = _ignore
    lost: PartitionsCallback | None = None


CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], BaseException | None], None]
