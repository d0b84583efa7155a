"""What the clients offer, as Protocols, and the values they speak in."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from broker.client.administration.values import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    GroupDescription,
    GroupListing,
    LogDir,
    MemberDescription,
    NewTopic,
    PartitionSize,
    ProducerDescription,
    Results,
    TopicListing,
    TransactionDescription,
    TransactionListing,
)
from broker.client.fetched import FetchedBatch
from broker.client.metadata import PartitionInfo, TopicInfo
from broker.client.transport import Node
from broker.linear_patterns import Pattern
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

    def abandon(self) -> None:
        """Fail all records that are not delivered, and a commit or flush that waits for them.

        An open transaction can then only be aborted.
        """
        ...

    def close(self, timeout_ms: int | None = None) -> None:
        """Send what is left, as long as the timeout allows, then stop."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class ConsumerRecord(NamedTuple):
    """One record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


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


class Consumer(Protocol):
    """Reads records, alone or as a member of a group.

    One thread uses a consumer; only `wakeup` may be called by others. Callbacks run inside `poll`,
    `unsubscribe` and `close`. Timeouts left out are default_api_timeout_ms.
    """

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | Pattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: by name, or all whose whole name matches."""
        ...

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without the group's help."""
        ...

    def unsubscribe(self) -> None:
        """Read nothing; leave the group."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        ...

    def subscription(self) -> set[str]:
        """The topics that are wanted of the group."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for offsets committed in a transaction."""
        ...

    def enforce_rebalance(self, reason: str = ...) -> None:
        """Let the group rebalance at the next poll."""
        ...

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that are there, or that come before the time is up.

        A batch that cannot be read raises CorruptBatchError, after the records before it and until
        the caller seeks to its `next_offset`; other partitions continue.
        """
        ...

    def poll_batches(self, timeout_ms: int = 0) -> list[FetchedBatch]:
        """As `poll`, but whole batches as they lie in the log; see FetchedBatch to decode them."""
        ...

    def wakeup(self) -> None:
        """End a poll, now or the next one, with WokenUp; from any thread."""
        ...

    @property
    def rest_ms(self) -> int:
        """For how long nothing is owed, as of the last poll; for who polls without waiting."""
        ...

    def on_news(self, listener: Callable[[], None]) -> None:
        """Call a function, from any thread, whenever a poll may bring something new."""
        ...

    def seek(self, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from an offset."""
        ...

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on from the first record there is; of all partitions when none are named."""
        ...

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read on with what comes from now on; of all partitions when none are named."""
        ...

    def position(self, tp: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset of the next record; waits until it is found."""
        ...

    def current_lag(self, tp: TopicPartition) -> int | None:
        """How many offsets are still ahead, as far as is known; None: the next poll asks for it."""
        ...

    def has_append_time(self, tp: TopicPartition) -> bool:
        """Whether the last records of a partition have the time when the broker got them."""
        ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until they are resumed; they stay assigned."""
        ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Give out records of these partitions again."""
        ...

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        ...

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        ...

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last one this consumer could read."""
        ...

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first record at or after each time; None where all are older."""
        ...

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[int]:
        """The partitions of a topic."""
        ...

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit positions, or these offsets, and wait until it is done."""
        ...

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; the callback is called by a later poll or by close."""
        ...

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where nothing."""
        ...

    def close(self, timeout_ms: int = ...) -> None:
        """Commit if that is automatic, give up the partitions, leave the group and stop."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class GroupProtocol(Protocol):
    """What a kind of group (consumers, Connect workers) does with its membership.

    Everything here is called by the thread that polls.
    """

    @property
    def protocol_type(self) -> str:
        """What all members of the group must be."""
        ...

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Names of the protocols this member can follow, best first, with its metadata for each."""
        ...

    def prepare_join(self, *, lost: bool) -> None:
        """Give up what must not be held while the group rebalances; lost: it is gone already."""
        ...

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Decide for all members, as their leader."""
        ...

    def take(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        """Begin with what this member was given."""
        ...

    def wants_rejoin(self) -> str:
        """Why the group should rebalance, for example new topics; empty when it need not."""
        ...


class GroupMember(Protocol):
    """Takes part in a group of any protocol type; `poll` joins, rejoins and runs callbacks."""

    @property
    def metadata(self) -> GroupMetadata:
        """Who the member is right now."""
        ...

    def poll(self, timeout_ms: int) -> bool:
        """Take part until the member is stable or the time is up; whether it is stable."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Ask for a rebalance; the next poll joins again; from any thread."""
        ...

    def leave(self, *, timeout_ms: int = ...) -> None:
        """Leave the group; a static member keeps its place until its session ends."""
        ...

    def close(self, *, timeout_ms: int = ...) -> None:
        """Leave, and stop."""
        ...


class Admin(Protocol):
    """Manages topics, settings, groups and transactions. Any thread may call any method.

    Where several things are asked about, each has its own value or error in the Results.
    """

    def create_topics(
        self,
        new: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, CreatedTopic]:
        """Make topics, or only see whether they could be made."""
        ...

    def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Delete topics with all their records."""
        ...

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """All topics, by name."""
        ...

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicInfo]:
        """Partitions, leaders and replicas of topics."""
        ...

    def create_partitions(
        self,
        totals: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, None]:
        """Increase the partition count of topics to these totals."""
        ...

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, int]:
        """Delete records below offsets (-1: all there are); values are the new first offsets."""
        ...

    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, FoundOffset]:
        """Offsets by time: -2 the earliest, -1 the latest, -3 that of the youngest record."""
        ...

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Settings of topics, brokers or groups: all, or only those named."""
        ...

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Change settings one by one; what is not named stays as it is."""
        ...

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Who is in the cluster and who controls it."""
        ...

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> Results[int, tuple[LogDir, ...]]:
        """The data directories of brokers, by default of all, and what lies in them."""
        ...

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """All groups, or those of some states ("Stable") and types ("classic", "consumer")."""
        ...

    def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """Groups with their members and what those read."""
        ...

    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Delete groups that have no members, with their offsets."""
        ...

    def remove_group_members(
        self, group_id: str, member_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Let members leave a classic group, whether they run or not."""
        ...

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, where it has committed anything."""
        ...

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commit for a group that has no members now."""
        ...

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Forget what a group has committed, of topics it does not read now."""
        ...

    def reset_group_offsets(
        self,
        group_id: str,
        timestamps: Mapping[TopicPartition, int],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, int]:
        """Reset the offsets of a group without members to times: -2 the earliest, -1 the latest."""
        ...

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or those in some states or of some producers."""
        ...

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """State, producer and partitions of transactions."""
        ...

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, tuple[ProducerDescription, ...]]:
        """Producers that partitions remember, and which of them have a transaction open."""
        ...

    def abort_transaction(
        self,
        tp: TopicPartition,
        producer: ProducerDescription,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """End a hanging transaction of a producer that `describe_producers` has shown."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


__all__ = [
    "Admin",
    "ClusterDescription",
    "CommitCallback",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "CreatedTopic",
    "Delivery",
    "DeliveryCallback",
    "FetchedBatch",
    "FoundOffset",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "GroupProtocol",
    "Headers",
    "JoinedMember",
    "LogDir",
    "MemberDescription",
    "NewTopic",
    "Node",
    "OffsetAndMetadata",
    "PartitionInfo",
    "PartitionSize",
    "PartitionsCallback",
    "Producer",
    "ProducerDescription",
    "RebalanceListener",
    "RecordMetadata",
    "Results",
    "TopicInfo",
    "TopicListing",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
]
