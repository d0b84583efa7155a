"""Groups as the administration sees them: listed, described, measured."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.coordinator.assignors import Partitions
from broker.coordinator.consumer_group import ConsumerGroup, ConsumerMember, group_by_topic
from broker.coordinator.group import ClassicGroup, GroupState
from broker.coordinator.group_members import CONSUMER_PROTOCOL
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages import consumer_groups as consumer_wire
from broker.protocol.messages import groups as wire

CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"
MESSAGE_VERSION_MIN = 6
CONSUMER_MEMBER_TYPE = 1  # 0: speaks the classic protocol, 1: this one

# Read, delete, describe, describe configs, alter configs: without access control all are allowed.
AUTHORIZED_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -(2**31)

Group = ClassicGroup | ConsumerGroup
TopicName = Callable[[bytes], str | None]


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group for metrics."""

    group_id: str
    type: str
    state: str
    member_count: int
    offsets: dict[TopicPartition, int]


def group_type(group: Group) -> str:
    """By the names that clients see."""
    return CLASSIC_TYPE if isinstance(group, ClassicGroup) else CONSUMER_TYPE


def group_state(group: Group) -> str:
    """By the names that clients see."""
    return group.state.value if isinstance(group, ClassicGroup) else group.state


def list_groups(groups: Iterable[Group], request: wire.ListGroupsRequest) -> list[wire.ListedGroup]:
    """Those of the asked states and types; all when none is asked for."""
    states = {state.lower() for state in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    return [
        wire.ListedGroup(
            group.group_id,
            (group.protocol_type or "") if isinstance(group, ClassicGroup) else CONSUMER_PROTOCOL,
            group_state(group),
            group_type(group),
        )
        for group in groups
        if (not states or group_state(group).lower() in states)
        and (not types or group_type(group) in types)
    ]


def describe_classic(
    group_id: str, group: Group | None, *, operations: bool, version: int
) -> wire.DescribedGroup:
    """A classic group; another one is dead as far as this API goes."""
    allowed = AUTHORIZED_OPERATIONS if operations else NOT_ASKED
    if not isinstance(group, ClassicGroup):
        described = wire.DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            authorized_operations=allowed,
        )
        if version >= MESSAGE_VERSION_MIN:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            what = "does not exist" if group is None else "is not a classic group"
            described.error_message = f'group "{group_id}" {what}'
        return described
    stable = group.state is GroupState.STABLE
    protocol = group.protocol or ""
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if stable else "",
        members=[
            wire.DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in group.members
        ],
        authorized_operations=allowed,
    )


def describe_consumer(
    group_id: str, group: Group | None, *, operations: bool, name_of: TopicName
) -> consumer_wire.DescribedGroup:
    """A consumer group; another one does not exist as far as this API goes."""
    if not isinstance(group, ConsumerGroup):
        what = "does not exist" if group is None else "is not a consumer group"
        return consumer_wire.DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f'group "{group_id}" {what}',
            group_id=group_id,
        )
    return consumer_wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=[_describe_member(group, member, name_of) for member in group.members.values()],
        authorized_operations=AUTHORIZED_OPERATIONS if operations else NOT_ASKED,
    )


def _describe_member(
    group: ConsumerGroup, member: ConsumerMember, name_of: TopicName
) -> consumer_wire.Member:
    return consumer_wire.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.holding.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(member.holding.assigned, name_of),
        target_assignment=_assignment(group.targets.get(member.member_id, frozenset()), name_of),
        member_type=CONSUMER_MEMBER_TYPE,
    )


def _assignment(
    partitions: Partitions, name_of: TopicName
) -> consumer_wire.ConsumerGroupDescribeResponseAssignment:
    return consumer_wire.ConsumerGroupDescribeResponseAssignment(
        [
            consumer_wire.ConsumerGroupDescribeResponseTopicPartitions(topic_id, name, numbers)
            for topic_id, numbers in group_by_topic(partitions).items()
            if (name := name_of(topic_id)) is not None
        ]
    )
