"""Messages between the consumers of a group: subscriptions and assignments."""

from broker.protocol import wire


@wire.part
class TopicPartition:
    """Part of ConsumerProtocolSubscription."""

    topic: str = wire.string("1+")
    partitions: list[int] = wire.array("int32", "1+")


@wire.data("0-3")
class ConsumerProtocolSubscription:
    """ConsumerProtocolSubscription."""

    topics: list[str] = wire.array("string")
    user_data: bytes | None = wire.sized(default=None, nullable="0+")
    owned_partitions: list[TopicPartition] = wire.array(TopicPartition, "1+")
    generation_id: int = wire.int32("2+", default=-1)
    rack_id: str | None = wire.string("3+", default=None, nullable="3+")


@wire.part
class ConsumerProtocolAssignmentTopicPartition:
    """Part of ConsumerProtocolAssignment."""

    topic: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.data("0-3")
class ConsumerProtocolAssignment:
    """ConsumerProtocolAssignment."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = wire.array(
        ConsumerProtocolAssignmentTopicPartition
    )
    user_data: bytes | None = wire.sized(default=None, nullable="0+")
