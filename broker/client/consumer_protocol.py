"""The subscriptions and assignments of classic consumer groups, as bytes.

Both messages are a 16-bit version and the message of that version. A newer version only adds
fields at the end, so a reader ignores the fields that it does not know.
"""

import struct
from collections.abc import Iterable

from broker.client.assignors import MemberAssignment, MemberSubscription
from broker.errors import MalformedMessage
from broker.model import TopicPartition
from broker.protocol.message import decode, to_bytes
from broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from broker.protocol.messages.consumer_protocol import TopicPartition as OwnedPartitions

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """The subscription of a member, without its id and instance id."""
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            OwnedPartitions(topic=topic, partitions=numbers)
            for topic, numbers in group_by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return struct.pack(">h", VERSION_MAX) + to_bytes(message, VERSION_MAX)


def decode_subscription(
    member_id: str, instance_id: str | None, data: bytes | memoryview
) -> MemberSubscription:
    """The subscription of another member."""
    view, version = _open(data)
    message, _ = decode(ConsumerProtocolSubscription, view, version, 2)
    return MemberSubscription(
        member_id,
        tuple(message.topics),
        instance_id,
        tuple(
            TopicPartition(owned.topic, number)
            for owned in message.owned_partitions
            for number in owned.partitions
        ),
        message.generation_id,
        message.user_data if message.user_data is None else bytes(message.user_data),
        message.rack_id,
    )


def encode_assignment(assignment: MemberAssignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in group_by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return struct.pack(">h", VERSION_MAX) + to_bytes(message, VERSION_MAX)


def decode_assignment(data: bytes | memoryview) -> MemberAssignment:
    """The assignment from the leader; empty for a member that the leader did not know."""
    if not len(data):
        return MemberAssignment()
    view, version = _open(data)
    message, _ = decode(ConsumerProtocolAssignment, view, version, 2)
    return MemberAssignment(
        tuple(
            TopicPartition(found.topic, number)
            for found in message.assigned_partitions
            for number in found.partitions
        ),
        message.user_data if message.user_data is None else bytes(message.user_data),
    )


def group_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers of each topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


def _open(data: bytes | memoryview) -> tuple[memoryview, int]:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are not a consumer protocol message")
    (version,) = struct.unpack_from(">h", data)
    if version < 0:
        raise MalformedMessage(f"consumer protocol message has version {version}")
    return memoryview(data), min(version, VERSION_MAX)
