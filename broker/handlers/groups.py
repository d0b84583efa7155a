"""Classic groups, and administration of all groups: converts messages and values."""

from functools import partial

from broker.coordinator.group import GroupState
from broker.coordinator.group_members import Join, JoinResult, Sync, SyncResult
from broker.coordinator.parts import Parts
from broker.errors import BrokerError, ErrorCode
from broker.handlers.answers import follow
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC, ConnectionInfo
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import groups as wire

JOIN_TWICE_VERSION_MIN = 4
SKIP_ASSIGNMENT_VERSION_MIN = 9
LEAVE_MANY_VERSION_MIN = 3
NOT_FOUND_VERSION_MIN = 6

# Read, delete, describe, describe configs, alter configs: all allowed without access control.
AUTHORIZED_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -(2**31)


def listed_host(connection: ConnectionInfo) -> str:
    """A client's host in lists of members, as Java writes an address without a name: "/address"."""
    return f"/{connection.client_host}"


def join_group(
    state: BrokerState, request: wire.JoinGroupRequest, context: RequestContext
) -> wire.JoinGroupResponse | Pending[wire.JoinGroupResponse]:
    """A client joins a group."""
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if rebalance_timeout_ms < 0:
        # Version 0 does not have this field: its clients have one timeout for both.
        rebalance_timeout_ms = request.session_timeout_ms
    asked = Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.connection.client_id,
        client_host=listed_host(context.connection),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
        joins_twice=context.version >= JOIN_TWICE_VERSION_MIN,
        may_skip_assignment=context.version >= SKIP_ASSIGNMENT_VERSION_MIN,
    )
    return follow(state.groups.join(request.group_id, asked), _joined)


def _joined(result: JoinResult) -> wire.JoinGroupResponse:
    return wire.JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            wire.JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata)
            for member in result.members
        ],
    )


def sync_group(
    state: BrokerState, request: wire.SyncGroupRequest, context: RequestContext
) -> wire.SyncGroupResponse | Pending[wire.SyncGroupResponse]:
    """A member requests its assignment."""
    asked = Sync(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={item.member_id: bytes(item.assignment) for item in request.assignments},
    )
    return follow(state.groups.sync(request.group_id, asked), _synced)


def _synced(result: SyncResult) -> wire.SyncGroupResponse:
    return wire.SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )


def heartbeat(
    state: BrokerState, request: wire.HeartbeatRequest, context: RequestContext
) -> wire.HeartbeatResponse:
    """A member is alive."""
    code = state.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return wire.HeartbeatResponse(error_code=code)


def leave_group(
    state: BrokerState, request: wire.LeaveGroupRequest, context: RequestContext
) -> wire.LeaveGroupResponse | Pending[wire.LeaveGroupResponse]:
    """Members leave; one in old versions, several in newer ones."""
    if not request.group_id:
        return wire.LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    many = context.version >= LEAVE_MANY_VERSION_MIN
    leaving = request.members if many else [wire.MemberIdentity(request.member_id)]
    names = [(member.member_id, member.group_instance_id) for member in leaving]

    def left(codes: list[ErrorCode]) -> wire.LeaveGroupResponse:
        if not many:
            return wire.LeaveGroupResponse(error_code=codes[0])
        members = [
            wire.MemberResponse(*name, code) for name, code in zip(names, codes, strict=True)
        ]
        return wire.LeaveGroupResponse(members=members)

    return follow(state.groups.leave(request.group_id, names), left)


def list_groups(
    state: BrokerState, request: wire.ListGroupsRequest, context: RequestContext
) -> wire.ListGroupsResponse:
    """The existing groups."""
    listed = state.groups.list_groups(request.states_filter, request.types_filter)
    return wire.ListGroupsResponse(
        groups=[
            wire.ListedGroup(group.group_id, group.protocol_type, group.state, group.type)
            for group in listed
        ]
    )


def describe_groups(
    state: BrokerState, request: wire.DescribeGroupsRequest, context: RequestContext
) -> Parts[wire.DescribeGroupsResponse]:
    """Classic groups with their members."""
    operations = AUTHORIZED_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    found = []
    # A group that is listed twice is described once.
    for group_id in dict.fromkeys(request.groups):
        described = _described(state, group_id, context.version)
        described.authorized_operations = operations
        found.append(described)
        yield
    return wire.DescribeGroupsResponse(groups=found)


def _described(state: BrokerState, group_id: str, version: int) -> wire.DescribedGroup:
    try:
        group = state.groups.describe_classic(group_id)
    except BrokerError as error:
        dead = wire.DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= NOT_FOUND_VERSION_MIN:
            dead.error_code, dead.error_message = error.code, error.message
        return dead
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=[
            wire.DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata,
                member.assignment,
            )
            for member in group.members
        ],
    )


def delete_groups(
    state: BrokerState, request: wire.DeleteGroupsRequest, context: RequestContext
) -> Parts[wire.DeleteGroupsResponse | Pending[wire.DeleteGroupsResponse]]:
    """Delete empty groups."""
    codes = yield from state.groups.delete(request.groups_names)
    return follow(codes, partial(_deleted, request.groups_names))


def _deleted(group_ids: list[str], codes: list[ErrorCode]) -> wire.DeleteGroupsResponse:
    pairs = zip(group_ids, codes, strict=True)
    return wire.DeleteGroupsResponse(results=[wire.DeletableGroupResult(*pair) for pair in pairs])


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Create the topic of groups before the lock is acquired: this waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.JOIN_GROUP: prepare}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.DELETE_GROUPS: delete_groups,
}
