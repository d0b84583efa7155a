"""The interfaces of the clients, as Protocols, and their values."""

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
    """The position of a written record; offset -1 if the broker does not acknowledge (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset to commit, that of the next record to read, with metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """The member that commits: the broker refuses old members and generations."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class Delivery(Protocol):
    """The outcome of sending one record or batch."""

    def done(self) -> bool:
        """Whether the outcome is known."""
        ...

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Wait for the outcome: the position of the record, or raise the error."""
        ...

    def exception(self, timeout_ms: int | None = None) -> BaseException | None:
        """Wait for the outcome: the error, or None if the record was delivered."""
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
        """Queue one whole record batch unchanged; the delivery is that of its first record."""
        ...

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        ...

    def flush(self, timeout_ms: int | None = None) -> None:
        """Send everything now and wait for the outcomes of all records."""
        ...

    def init_transactions(self) -> None:
        """Fence earlier producers of this transactional id and end their open transactions."""
        ...

    def begin_transaction(self) -> None:
        """Start a transaction: all records sent from now on belong to it."""
        ...

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit offsets of a group as part of the transaction."""
        ...

    def commit_transaction(self) -> None:
        """Commit the transaction; returns when it is committed."""
        ...

    def abort_transaction(self) -> None: ...

    def abandon(self) -> None:
        """Fail all records that are not delivered, and a commit or flush that waits for them.

        An open transaction can then only be aborted.
        """
        ...

    def close(self, timeout_ms: int | None = None) -> None:
        """Send the remaining records, for as long as the timeout allows, then stop."""
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
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class RebalanceListener:
    """Functions to call when the group assigns or revokes partitions, in `poll` and `close`.

    `revoked` may still commit. `lost` partitions may already belong to other members; without a
    `lost` function, `revoked` is called for them.
    """

    assigned: PartitionsCallback = _ignore
    revoked: PartitionsCallback = _ignore
    lost: PartitionsCallback | None = None


CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], BaseException | None], None]


class Consumer(Protocol):
    """Reads records, alone or as a member of a group.

    One thread uses a consumer; only `wakeup` may be called by others. Callbacks run inside `poll`,
    `unsubscribe` and `close`. The default of timeouts is default_api_timeout_ms.
    """

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | Pattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: by name, or all whose whole name matches."""
        ...

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without group management."""
        ...

    def unsubscribe(self) -> None:
        """Read nothing; leave the group."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        ...

    def subscription(self) -> set[str]:
        """The subscribed topics."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """This member of the group, for offsets committed in a transaction."""
        ...

    def enforce_rebalance(self, reason: str = ...) -> None:
        """Make the group rebalance at the next poll."""
        ...

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return fetched records, or wait for some until the timeout.

        A batch that cannot be read raises CorruptBatchError, after the records before it and until
        the caller seeks to its `next_offset`; other partitions continue.
        """
        ...

    def poll_batches(self, timeout_ms: int = 0) -> list[FetchedBatch]:
        """Like `poll`, but returns whole batches, not decoded; see FetchedBatch."""
        ...

    def wakeup(self) -> None:
        """End the current or the next poll with WokenUp; any thread may call it."""
        ...

    @property
    def poll_due_in_ms(self) -> int:
        """The time until the next poll is due, as of the last one; for callers that do not wait."""
        ...

    def on_ready(self, listener: Callable[[], None]) -> None:
        """Set a function that any thread calls when a poll may return records or has work to do."""
        ...

    def seek(self, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue reading at an offset."""
        ...

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue at the first record of these partitions, or of all."""
        ...

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue at the end of these partitions, or of all."""
        ...

    def position(self, tp: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset of the next record; waits until it is found."""
        ...

    def current_lag(self, tp: TopicPartition) -> int | None:
        """The number of records still to read; None if unknown: the next poll finds it out."""
        ...

    def has_append_time(self, tp: TopicPartition) -> bool:
        """Whether the last records of a partition have log append times."""
        ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until they are resumed; they stay assigned."""
        ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        ...

    def paused(self) -> set[TopicPartition]: ...

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        ...

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that this consumer can read."""
        ...

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first record at or after each time; None if all records are older."""
        ...

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[int]:
        """The partitions of a topic."""
        ...

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit the positions, or these offsets, and wait for the response."""
        ...

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; a later `poll` or `close` calls the callback."""
        ...

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group; None if there is no commit."""
        ...

    def close(self, timeout_ms: int = ...) -> None:
        """Commit if auto commit is enabled, revoke the partitions, leave the group and stop."""
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
    """A member of the group, as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class GroupProtocol(Protocol):
    """The group protocol of one kind of group, such as consumers or Connect workers.

    The polling thread calls all methods.
    """

    @property
    def protocol_type(self) -> str:
        """The protocol type that all members must have."""
        ...

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """The names of the supported protocols, preferred first, with the metadata for each."""
        ...

    def prepare_join(self, *, lost: bool) -> None:
        """Revoke what must not be held during a rebalance; lost: others may have it already."""
        ...

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Assign partitions or other work to all members, as their leader."""
        ...

    def on_assignment(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        """Apply the assignment of this member."""
        ...

    def wants_rejoin(self) -> str:
        """Why the group should rebalance, such as new topics; empty for no rebalance."""
        ...


class GroupMember(Protocol):
    """A member of a group of any protocol type; `poll` joins, rejoins and runs callbacks."""

    @property
    def metadata(self) -> GroupMetadata:
        """The current member id and generation."""
        ...

    def poll(self, timeout_ms: int) -> bool:
        """Take part until the member is stable or the time is up; whether it is stable."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Request a rebalance: the next poll joins again. Any thread may call it."""
        ...

    def leave(self, *, timeout_ms: int = ...) -> None:
        """Leave the group; a static member remains in it until its session times out."""
        ...

    def close(self, *, timeout_ms: int = ...) -> None:
        """Leave the group and stop."""
        ...


class Admin(Protocol):
    """Manages topics, settings, groups and transactions. Any thread may call any method.

    With several items, each has a value or an error in the Results.
    """

    def create_topics(
        self,
        new: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, CreatedTopic]:
        """Create topics, or only validate the requests."""
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
        """Delete the records before offsets (-1: all); the values are the new start offsets."""
        ...

    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, FoundOffset]:
        """Offsets by time: -2 earliest, -1 latest, -3 of the record with the latest timestamp."""
        ...

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Settings of topics, brokers or groups: all, or only the named ones."""
        ...

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Change single settings; the others stay unchanged."""
        ...

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The brokers and the controller."""
        ...

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> Results[int, tuple[LogDir, ...]]:
        """The data directories of brokers, by default of all, and their partitions."""
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
        """Groups with their members and assignments."""
        ...

    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Delete groups without members and their offsets."""
        ...

    def remove_group_members(
        self, group_id: str, member_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Remove members from a classic group, even if they are running."""
        ...

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of a group."""
        ...

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members."""
        ...

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Delete offsets of topics that the group is not subscribed to."""
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
        """End a hanging transaction of a producer that `describe_producers` returned."""
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
