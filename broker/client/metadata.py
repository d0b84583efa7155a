"""The metadata of topics: partitions, leaders, replicas; and how a response updates it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.client.answers import code_of
from broker.client.transport import Node
from broker.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: its leader and replicas."""

    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic; a topic with an error has no partitions."""

    name: str
    id: bytes = bytes(16)
    is_internal: bool = False
    partitions: Mapping[int, PartitionInfo] = field(default_factory=dict)
    error: ErrorCode = ErrorCode.NONE


def read_brokers(response: MetadataResponse) -> list[Node]:
    """The brokers of a metadata response."""
    return [Node(broker.node_id, broker.host, broker.port) for broker in response.brokers]


def read_topic(topic: MetadataResponseTopic, known: TopicInfo | None) -> TopicInfo:
    """A topic of a metadata response, merged with its earlier metadata."""
    partitions = {
        item.partition_index: PartitionInfo(
            item.partition_index,
            item.leader_id,
            item.leader_epoch,
            tuple(item.replica_nodes),
            tuple(item.isr_nodes),
            code_of(item.error_code),
        )
        for item in topic.partitions
    }
    if known is not None and known.id == topic.topic_id:
        # A broker that lags behind must not bring back an earlier leader.
        for number, before in known.partitions.items():
            now = partitions.get(number)
            if now is not None and 0 <= now.leader_epoch < before.leader_epoch:
                partitions[number] = before
    return TopicInfo(
        topic.name or "", topic.topic_id, topic.is_internal, partitions, code_of(topic.error_code)
    )
