"""Groups whose assignment the broker computes (KIP-848)."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class TopicPartitions:
    """Part of ConsumerGroupHeartbeatRequest."""

    topic_id: bytes = wire.uuid()
    partitions: list[int] = wire.array("int32")


@wire.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0-1", flexible=0)
class ConsumerGroupHeartbeatRequest:
    """ConsumerGroupHeartbeat request."""

    group_id: str = wire.string()
    member_id: str = wire.string()
    member_epoch: int = wire.int32()
    instance_id: str | None = wire.string(default=None, nullable="0+")
    rack_id: str | None = wire.string(default=None, nullable="0+")
    rebalance_timeout_ms: int = wire.int32(default=-1)
    subscribed_topic_names: list[str] | None = wire.array("string", default=None, nullable="0+")
    subscribed_topic_regex: str | None = wire.string("1+", default=None, nullable="1+")
    server_assignor: str | None = wire.string(default=None, nullable="0+")
    topic_partitions: list[TopicPartitions] | None = wire.array(
        TopicPartitions, default=None, nullable="0+"
    )


@wire.part
class Assignment:
    """Part of ConsumerGroupHeartbeatResponse."""

    topic_partitions: list[TopicPartitions] = wire.array(TopicPartitions)


@wire.response(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0-1", flexible=0)
class ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeat response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(default=None, nullable="0+")
    member_id: str | None = wire.string(default=None, nullable="0+")
    member_epoch: int = wire.int32()
    heartbeat_interval_ms: int = wire.int32()
    assignment: Assignment | None = wire.struct(Assignment, default=None, nullable="0+")


@wire.request(ApiKey.CONSUMER_GROUP_DESCRIBE, "0-1", flexible=0)
class ConsumerGroupDescribeRequest:
    """ConsumerGroupDescribe request."""

    group_ids: list[str] = wire.array("string")
    include_authorized_operations: bool = wire.boolean()


@wire.part
class ConsumerGroupDescribeResponseTopicPartitions:
    """Part of ConsumerGroupDescribeResponse."""

    topic_id: bytes = wire.uuid()
    topic_name: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.part
class ConsumerGroupDescribeResponseAssignment:
    """Part of ConsumerGroupDescribeResponse."""

    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = wire.array(
        ConsumerGroupDescribeResponseTopicPartitions
    )


@wire.part
class Member:
    """Part of ConsumerGroupDescribeResponse."""

    member_id: str = wire.string()
    instance_id: str | None = wire.string(default=None, nullable="0+")
    rack_id: str | None = wire.string(default=None, nullable="0+")
    member_epoch: int = wire.int32()
    client_id: str = wire.string()
    client_host: str = wire.string()
    subscribed_topic_names: list[str] = wire.array("string")
    subscribed_topic_regex: str | None = wire.string(default=None, nullable="0+")
    assignment: ConsumerGroupDescribeResponseAssignment = wire.struct(
        ConsumerGroupDescribeResponseAssignment
    )
    target_assignment: ConsumerGroupDescribeResponseAssignment = wire.struct(
        ConsumerGroupDescribeResponseAssignment
    )
    member_type: int = wire.int8("1+", default=-1)


@wire.part
class DescribedGroup:
    """Part of ConsumerGroupDescribeResponse."""

    error_code: int = wire.int16()
    error_message: str | None = wire.string(default=None, nullable="0+")
    group_id: str = wire.string()
    group_state: str = wire.string()
    group_epoch: int = wire.int32()
    assignment_epoch: int = wire.int32()
    assignor_name: str = wire.string()
    members: list[Member] = wire.array(Member)
    authorized_operations: int = wire.int32(default=-2147483648)


@wire.response(ApiKey.CONSUMER_GROUP_DESCRIBE, "0-1", flexible=0)
class ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe response."""

    throttle_time_ms: int = wire.int32()
    groups: list[DescribedGroup] = wire.array(DescribedGroup)
