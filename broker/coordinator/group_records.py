"""Records of __consumer_offsets: their kinds, and their conversion from and to groups.

    kind  key                                value (version we write)
    0, 1  group, topic, partition            a committed offset (3; 1 if it expires by itself)
    2     group                              a classic group with its members (3)
    3     group                              a consumer group's epoch (0)
    5     group, member                      a member's subscription (0)
    6     group                              the target assignment's epoch (0)
    7     group, member                      a member's target (0)
    8     group, member                      a member's current assignment (0)

Kinds 4 (topics of a group) and 16 (matches of patterns) are derived here, so they are neither
written nor read. A null value deletes.
"""

import logging
from collections.abc import Iterable, Mapping

from broker.coordinator.assignors import Partitions
from broker.coordinator.consumer_group import ConsumerGroup, ConsumerMember, group_by_topic
from broker.coordinator.group import ClassicGroup
from broker.coordinator.group_members import ClassicMember, Members
from broker.coordinator.internal_topics import CoordinatorRecord, prefixed, read_prefix
from broker.coordinator.offsets import CommittedOffset
from broker.coordinator.reconciliation import Holding, MemberState
from broker.errors import MalformedMessage
from broker.model import TopicPartition
from broker.protocol import message
from broker.protocol.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartitions,
)
from broker.protocol.messages.group_records import (
    TopicPartition as RecordedPartitions,
)
from broker.protocol.wire import SPECS

logger = logging.getLogger(__name__)

# kind -> key and value classes, and the version of values we write
KINDS: dict[int, tuple[type[object], type[object], int]] = {
    0: (OffsetCommitKey, OffsetCommitValue, 3),
    1: (OffsetCommitKey, OffsetCommitValue, 3),
    2: (GroupMetadataKey, GroupMetadataValue, 3),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0),
    6: (
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue,
        0,
    ),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0),
}
DERIVED_KINDS = frozenset({4, 16})
KIND_OF_KEY = {key: kind for kind, (key, _, _) in KINDS.items()}
EXPIRING_OFFSET_VERSION = 1


def record(key: object, value: object | None) -> CoordinatorRecord:
    """Key and value as bytes; None deletes."""
    kind = KIND_OF_KEY[type(key)]
    if value is None:
        return prefixed(kind, key), None
    version = KINDS[kind][2]
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp >= 0:
        version = EXPIRING_OFFSET_VERSION
    return prefixed(kind, key), prefixed(version, value, version)


def decode_record(
    key: bytes | memoryview | None, value: bytes | memoryview | None
) -> tuple[object, object | None] | None:
    """Key and value as messages; None for unused kinds; MalformedMessage if invalid."""
    if key is None:
        raise MalformedMessage("record has no key")
    kind = read_prefix(key)
    if kind in DERIVED_KINDS:
        return None
    if kind not in KINDS:
        raise MalformedMessage(f"record kind {kind} is not known")
    key_class, value_class, _ = KINDS[kind]
    decoded_key = message.from_bytes(key_class, memoryview(key)[2:], 0)
    if value is None:
        return decoded_key, None
    version = read_prefix(value)
    versions = SPECS[value_class].versions
    if version not in versions:
        raise MalformedMessage(f"{value_class.__name__} version {version} is not known")
    return decoded_key, message.from_bytes(value_class, memoryview(value)[2:], version)


# --- offsets --------------------------------------------------------------------------------------


def offset_record(
    group_id: str, partition: TopicPartition, offset: CommittedOffset
) -> CoordinatorRecord:
    """A committed offset, as stored in the log."""
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    return record(OffsetCommitKey(group_id, *partition), value)


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    """The tombstone of a committed offset."""
    return record(OffsetCommitKey(group_id, *partition), None)


def replayed_offset(value: OffsetCommitValue, log_offset: int) -> CommittedOffset:
    """A committed offset, as read back from the log."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        log_offset=log_offset,
    )


# --- classic groups -------------------------------------------------------------------------------


def classic_group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes]
) -> CoordinatorRecord:
    """The group with these assignments."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol or ""),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members
        ],
    )
    return record(GroupMetadataKey(group.group_id), value)


def replay_classic_group(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Apply a record to the group; sessions of the members start now."""
    group.protocol_type = value.protocol_type or None
    group.generation = value.generation
    group.protocol = value.protocol
    group.leader = value.leader
    group.members = Members()
    for member in value.members:
        group.members.add(_classic_member(member, value.protocol or ""))
    group.restored(since_ms=value.current_state_timestamp)


def _classic_member(value: MemberMetadata, protocol: str) -> ClassicMember:
    timeout_ms = value.rebalance_timeout
    return ClassicMember(
        member_id=value.member_id,
        instance_id=value.group_instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        session_timeout_ms=value.session_timeout,
        rebalance_timeout_ms=value.session_timeout if timeout_ms < 0 else timeout_ms,
        protocols=[(protocol, bytes(value.subscription))],
        assignment=bytes(value.assignment),
    )


# --- consumer groups ------------------------------------------------------------------------------


def consumer_group_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """The records for all changes since the group was last written."""
    changes, group_id = group.changes, group.group_id
    records: list[CoordinatorRecord] = []
    for member_id in sorted(changes.removed - group.members.keys()):
        records += _member_tombstones(group_id, member_id)
    for member_id in sorted(changes.members):
        key = ConsumerGroupMemberMetadataKey(group_id, member_id)
        records.append(record(key, _member_value(group.members[member_id])))
    if changes.epoch:
        epoch = ConsumerGroupMetadataValue(group.epoch, group.topics_hash)
        records.append(record(ConsumerGroupMetadataKey(group_id), epoch))
    for member_id in sorted(changes.targets):
        target = ConsumerGroupTargetAssignmentMemberValue(
            [RecordedPartitions(*item) for item in group_by_topic(group.targets[member_id]).items()]
        )
        records.append(record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), target))
    if changes.target_epoch:
        key6 = ConsumerGroupTargetAssignmentMetadataKey(group_id)
        value6 = ConsumerGroupTargetAssignmentMetadataValue(
            group.target_epoch, group.target_since_ms
        )
        records.append(record(key6, value6))
    for member_id in sorted(changes.holdings):
        key8 = ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)
        records.append(record(key8, _holding_value(group.members[member_id].holding)))
    return records


def consumer_group_tombstones(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """The tombstones for all records of a group."""
    group_id = group.group_id
    records: list[CoordinatorRecord] = []
    for member_id in sorted(group.changes.removed | group.members.keys()):
        records += _member_tombstones(group_id, member_id)
    records.append(record(ConsumerGroupTargetAssignmentMetadataKey(group_id), None))
    records.append(record(ConsumerGroupMetadataKey(group_id), None))
    return records


def _member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    return [
        record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        record(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def _member_value(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
    )


def _holding_value(holding: Holding) -> ConsumerGroupCurrentMemberAssignmentValue:
    def topics(partitions: Partitions) -> list[TopicPartitions]:
        return [TopicPartitions(*item) for item in group_by_topic(partitions).items()]

    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=holding.epoch,
        previous_member_epoch=holding.previous_epoch,
        state=holding.state,
        assigned_partitions=topics(holding.assigned),
        partitions_pending_revocation=topics(holding.revoking),
    )


def replay_consumer_record(group: ConsumerGroup, key: object, value: object | None) -> None:
    """Apply one record of kinds 3 to 8."""
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.epoch = value.epoch
            group.topics_hash = value.metadata_hash
        case ConsumerGroupTargetAssignmentMetadataKey(), (
            ConsumerGroupTargetAssignmentMetadataValue()
        ):
            group.target_epoch = value.assignment_epoch
            group.target_since_ms = value.assignment_timestamp
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            _replay_member(group, key.member_id, value)
        case ConsumerGroupMemberMetadataKey(), None:
            group.members.pop(key.member_id, None)
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.targets[key.member_id] = _partitions(value.topic_partitions)
        case ConsumerGroupTargetAssignmentMemberKey(), None:
            group.targets.pop(key.member_id, None)
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
            _replay_holding(group, key.member_id, value)
        case ConsumerGroupCurrentMemberAssignmentKey(), None:
            member = group.members.get(key.member_id)
            if member is not None:
                member.holding = Holding()


def _replay_member(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue
) -> None:
    member = group.members.setdefault(member_id, ConsumerMember(member_id))
    member.instance_id = value.instance_id
    member.rack_id = value.rack_id
    member.client_id = value.client_id
    member.client_host = value.client_host
    member.subscribed_names = tuple(value.subscribed_topic_names)
    member.subscribed_regex = value.subscribed_topic_regex
    member.rebalance_timeout_ms = value.rebalance_timeout_ms
    member.server_assignor = value.server_assignor


def _replay_holding(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue
) -> None:
    # Compaction may put this before the record with the member's subscription.
    member = group.members.setdefault(member_id, ConsumerMember(member_id))
    try:
        state = MemberState(value.state)
    except ValueError as error:
        raise MalformedMessage(f"member state {value.state} is not known") from error
    member.holding = Holding(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=state,
        assigned=_partitions(value.assigned_partitions),
        revoking=_partitions(value.partitions_pending_revocation),
    )


def _partitions(topics: Iterable[RecordedPartitions | TopicPartitions]) -> Partitions:
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)
