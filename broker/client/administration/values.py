"""Arguments and results of Admin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from broker.client.transport import Node
from broker.errors import BrokerError
from broker.model import TopicPartition

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Results(Generic[K, V]):
    """A value or an error for each requested item."""

    values: Mapping[K, V]
    errors: Mapping[K, BrokerError] = field(default_factory=dict)

    def __getitem__(self, key: K) -> V:
        """The value of an item; raises its error."""
        if key in self.errors:
            raise self.errors[key]
        return self.values[key]

    def all(self) -> Mapping[K, V]:
        """All values; raises the first error if there is one."""
        for error in self.errors.values():
            raise error
        return self.values


# --- topics -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 is the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it was created."""

    name: str
    id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    id: bytes
    is_internal: bool
    partitions: int


# --- settings ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """What settings belong to: "topic" with its name, "broker" or "group" with its id."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting: its value and its source."""

    name: str
    value: str | None
    source: str
    is_read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[tuple[str, str | None, str], ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the value is a default, not set for this resource."""
        return self.source not in ("topic", "group", "broker")


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of one setting: "set", "delete", "append" to a list or "subtract" from it."""

    name: str
    value: str | None = None
    operation: str = "set"


# --- the cluster ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The brokers and the controller."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """The size of a replica on disk."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """One data directory of a broker."""

    path: str
    partitions: Mapping[TopicPartition, PartitionSize]
    total_bytes: int = -1
    usable_bytes: int = -1
    error: BrokerError | None = None


# --- groups -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group that exists; its type is "classic" or "consumer"."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group; metadata and assignment bytes are those of classic groups."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] = ()
    target_partitions: tuple[TopicPartition, ...] | None = None
    topics: tuple[str, ...] = ()
    epoch: int | None = None
    metadata: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[MemberDescription, ...]
    coordinator: int
    epoch: int | None = None


# --- transactions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id that the coordinators know."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id and its transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer whose state a partition holds."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None
