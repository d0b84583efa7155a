"""Records of __consumer_offsets; each begins with an int16 version (keys: with the kind)."""

from broker.protocol import wire


@wire.data("0")
class OffsetCommitKey:
    """OffsetCommitKey."""

    group: str = wire.string("0")
    topic: str = wire.string("0")
    partition: int = wire.int32("0")


@wire.data("0-4", flexible=4)
class OffsetCommitValue:
    """OffsetCommitValue."""

    offset: int = wire.int64()
    leader_epoch: int = wire.int32("3+", default=-1)
    metadata: str = wire.string()
    commit_timestamp: int = wire.int64()
    expire_timestamp: int = wire.int64("1", default=-1)
    topic_id: bytes = wire.uuid("4+", tag=0)


@wire.data("0")
class GroupMetadataKey:
    """GroupMetadataKey."""

    group: str = wire.string("0")


@wire.part
class MemberMetadata:
    """Part of GroupMetadataValue."""

    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("3+", default=None, nullable="3+")
    client_id: str = wire.string()
    client_host: str = wire.string()
    rebalance_timeout: int = wire.int32("1+", default=-1)
    session_timeout: int = wire.int32()
    subscription: bytes = wire.sized()
    assignment: bytes = wire.sized()


@wire.data("0-4", flexible=4)
class GroupMetadataValue:
    """GroupMetadataValue."""

    protocol_type: str = wire.string()
    generation: int = wire.int32()
    protocol: str | None = wire.string(nullable="0+")
    leader: str | None = wire.string(nullable="0+")
    current_state_timestamp: int = wire.int64("2+", default=-1)
    members: list[MemberMetadata] = wire.array(MemberMetadata)


@wire.data("0")
class ConsumerGroupMetadataKey:
    """ConsumerGroupMetadataKey."""

    group_id: str = wire.string("0")


@wire.data("0", flexible=0)
class ConsumerGroupMetadataValue:
    """ConsumerGroupMetadataValue."""

    epoch: int = wire.int32()
    metadata_hash: int = wire.int64(tag=0)


@wire.data("0")
class ConsumerGroupMemberMetadataKey:
    """ConsumerGroupMemberMetadataKey."""

    group_id: str = wire.string("0")
    member_id: str = wire.string("0")


@wire.part
class ClassicProtocol:
    """Part of ConsumerGroupMemberMetadataValue."""

    name: str = wire.string()
    metadata: bytes = wire.sized()


@wire.part
class ClassicMemberMetadata:
    """Part of ConsumerGroupMemberMetadataValue."""

    session_timeout_ms: int = wire.int32()
    supported_protocols: list[ClassicProtocol] = wire.array(ClassicProtocol)


@wire.data("0", flexible=0)
class ConsumerGroupMemberMetadataValue:
    """ConsumerGroupMemberMetadataValue."""

    instance_id: str | None = wire.string(nullable="0+")
    rack_id: str | None = wire.string(nullable="0+")
    client_id: str = wire.string()
    client_host: str = wire.string()
    subscribed_topic_names: list[str] = wire.array("string")
    subscribed_topic_regex: str | None = wire.string(nullable="0+")
    rebalance_timeout_ms: int = wire.int32(default=-1)
    server_assignor: str | None = wire.string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = wire.struct(
        ClassicMemberMetadata, nullable="0+", tag=0
    )


@wire.data("0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """ConsumerGroupTargetAssignmentMetadataKey."""

    group_id: str = wire.string("0")


@wire.data("0", flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    """ConsumerGroupTargetAssignmentMetadataValue."""

    assignment_epoch: int = wire.int32()
    assignment_timestamp: int = wire.int64(tag=0)


@wire.data("0")
class ConsumerGroupTargetAssignmentMemberKey:
    """ConsumerGroupTargetAssignmentMemberKey."""

    group_id: str = wire.string("0")
    member_id: str = wire.string("0")


@wire.part
class TopicPartition:
    """Part of ConsumerGroupTargetAssignmentMemberValue."""

    topic_id: bytes = wire.uuid()
    partitions: list[int] = wire.array("int32")


@wire.data("0", flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    """ConsumerGroupTargetAssignmentMemberValue."""

    topic_partitions: list[TopicPartition] = wire.array(TopicPartition)


@wire.data("0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """ConsumerGroupCurrentMemberAssignmentKey."""

    group_id: str = wire.string("0")
    member_id: str = wire.string("0")


@wire.part
class TopicPartitions:
    """Part of ConsumerGroupCurrentMemberAssignmentValue."""

    topic_id: bytes = wire.uuid()
    partitions: list[int] = wire.array("int32")
    assignment_epochs: list[int] | None = wire.array("int32", nullable="0+", tag=0)


@wire.data("0", flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    """ConsumerGroupCurrentMemberAssignmentValue."""

    member_epoch: int = wire.int32()
    previous_member_epoch: int = wire.int32()
    state: int = wire.int8()
    assigned_partitions: list[TopicPartitions] = wire.array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = wire.array(TopicPartitions)
