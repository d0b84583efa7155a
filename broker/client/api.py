"""Values of the clients, and the interface of group protocols."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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


DeliveryCallback = Callable[[RecordMetadata | None, BaseException | None], None]


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


__all__ = [
    "ClusterDescription",
    "CommitCallback",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "ConsumerRecord",
    "CreatedTopic",
    "DeliveryCallback",
    "FetchedBatch",
    "FoundOffset",
    "GroupDescription",
    "GroupListing",
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
