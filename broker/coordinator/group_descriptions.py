"""Descriptions of groups: for administration, lists and metrics."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.coordinator.assignors import NOTHING, Partitions
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group import ClassicGroup, GroupState
from broker.coordinator.group_members import CONSUMER_PROTOCOL
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition

CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"

Group = ClassicGroup | ConsumerGroup


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group for metrics."""

    group_id: str
    type: str
    state: str
    member_count: int
    offsets: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list of groups."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class ClassicMemberDescription:
    """A member of a classic group; metadata and assignment only while the group is stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class ClassicGroupDescription:
    """A classic group with its members."""

    state: str
    protocol_type: str
    protocol: str
    members: list[ClassicMemberDescription]


@dataclass(frozen=True, slots=True)
class ConsumerMemberDescription:
    """A member of a consumer group: its subscription, current and target assignment."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    subscribed_names: tuple[str, ...]
    subscribed_regex: str | None
    assigned: Partitions
    target: Partitions


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """A consumer group with its members."""

    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: list[ConsumerMemberDescription]


def group_type(group: Group) -> str:
    """The type, by the name that clients see."""
    return CLASSIC_TYPE if isinstance(group, ClassicGroup) else CONSUMER_TYPE


def group_state(group: Group) -> str:
    """The state, by the name that clients see."""
    return group.state.value if isinstance(group, ClassicGroup) else group.state


def list_groups(
    groups: Iterable[Group], states: Iterable[str], types: Iterable[str]
) -> list[ListedGroup]:
    """The groups with these states and types, ignoring case; all if none is given."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {name.lower() for name in types}
    return [
        ListedGroup(
            group.group_id,
            (group.protocol_type or "") if isinstance(group, ClassicGroup) else CONSUMER_PROTOCOL,
            group_state(group),
            group_type(group),
        )
        for group in groups
        if (not wanted_states or group_state(group).lower() in wanted_states)
        and (not wanted_types or group_type(group) in wanted_types)
    ]


def describe_classic(group_id: str, group: Group | None) -> ClassicGroupDescription:
    """A classic group; GROUP_ID_NOT_FOUND for any other group."""
    if not isinstance(group, ClassicGroup):
        raise _not_found(group_id, group, CLASSIC_TYPE)
    stable = group.state is GroupState.STABLE
    protocol = group.protocol or ""
    return ClassicGroupDescription(
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol=protocol if stable else "",
        members=[
            ClassicMemberDescription(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in group.members
        ],
    )


def describe_consumer(group_id: str, group: Group | None) -> ConsumerGroupDescription:
    """A consumer group; GROUP_ID_NOT_FOUND for any other group."""
    if not isinstance(group, ConsumerGroup):
        raise _not_found(group_id, group, CONSUMER_TYPE)
    return ConsumerGroupDescription(
        state=group.state,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=group.assignor,
        members=[
            ConsumerMemberDescription(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                epoch=member.holding.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_names=member.subscribed_names,
                subscribed_regex=member.subscribed_regex,
                assigned=member.holding.assigned,
                target=group.targets.get(member.member_id, NOTHING),
            )
            for member in group.members.values()
        ],
    )


def _not_found(group_id: str, group: Group | None, wanted: str) -> BrokerError:
    what = "does not exist" if group is None else f"is not a {wanted} group"
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f'group "{group_id}" {what}')
