"""Classic groups: join, sync, heartbeat, leave, and their administration."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class JoinGroupRequestProtocol:
    """Part of JoinGroupRequest."""

    name: str = wire.string()
    metadata: bytes = wire.sized()


@wire.request(ApiKey.JOIN_GROUP, "0-9", flexible=6)
class JoinGroupRequest:
    """JoinGroup request."""

    group_id: str = wire.string()
    session_timeout_ms: int = wire.int32()
    rebalance_timeout_ms: int = wire.int32("1+", default=-1)
    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("5+", default=None, nullable="5+")
    protocol_type: str = wire.string()
    protocols: list[JoinGroupRequestProtocol] = wire.array(JoinGroupRequestProtocol)
    reason: str | None = wire.string("8+", default=None, nullable="8+")


@wire.part
class JoinGroupResponseMember:
    """Part of JoinGroupResponse."""

    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("5+", default=None, nullable="5+")
    metadata: bytes = wire.sized()


@wire.response(ApiKey.JOIN_GROUP, "0-9", flexible=6)
class JoinGroupResponse:
    """JoinGroup response."""

    throttle_time_ms: int = wire.int32("2+")
    error_code: int = wire.int16()
    generation_id: int = wire.int32(default=-1)
    protocol_type: str | None = wire.string("7+", default=None, nullable="7+")
    protocol_name: str | None = wire.string(nullable="7+")
    leader: str = wire.string()
    skip_assignment: bool = wire.boolean("9+")
    member_id: str = wire.string()
    members: list[JoinGroupResponseMember] = wire.array(JoinGroupResponseMember)


@wire.part
class SyncGroupRequestAssignment:
    """Part of SyncGroupRequest."""

    member_id: str = wire.string()
    assignment: bytes = wire.sized()


@wire.request(ApiKey.SYNC_GROUP, "0-5", flexible=4)
class SyncGroupRequest:
    """SyncGroup request."""

    group_id: str = wire.string()
    generation_id: int = wire.int32()
    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("3+", default=None, nullable="3+")
    protocol_type: str | None = wire.string("5+", default=None, nullable="5+")
    protocol_name: str | None = wire.string("5+", default=None, nullable="5+")
    assignments: list[SyncGroupRequestAssignment] = wire.array(SyncGroupRequestAssignment)


@wire.response(ApiKey.SYNC_GROUP, "0-5", flexible=4)
class SyncGroupResponse:
    """SyncGroup response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16()
    protocol_type: str | None = wire.string("5+", default=None, nullable="5+")
    protocol_name: str | None = wire.string("5+", default=None, nullable="5+")
    assignment: bytes = wire.sized()


@wire.request(ApiKey.HEARTBEAT, "0-4", flexible=4)
class HeartbeatRequest:
    """Heartbeat request."""

    group_id: str = wire.string()
    generation_id: int = wire.int32()
    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("3+", default=None, nullable="3+")


@wire.response(ApiKey.HEARTBEAT, "0-4", flexible=4)
class HeartbeatResponse:
    """Heartbeat response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16()


@wire.part
class MemberIdentity:
    """Part of LeaveGroupRequest."""

    member_id: str = wire.string("3+")
    group_instance_id: str | None = wire.string("3+", default=None, nullable="3+")
    reason: str | None = wire.string("5+", default=None, nullable="5+")


@wire.request(ApiKey.LEAVE_GROUP, "0-5", flexible=4)
class LeaveGroupRequest:
    """LeaveGroup request."""

    group_id: str = wire.string()
    member_id: str = wire.string("0-2")
    members: list[MemberIdentity] = wire.array(MemberIdentity, "3+")


@wire.part
class MemberResponse:
    """Part of LeaveGroupResponse."""

    member_id: str = wire.string("3+")
    group_instance_id: str | None = wire.string("3+", nullable="3+")
    error_code: int = wire.int16("3+")


@wire.response(ApiKey.LEAVE_GROUP, "0-5", flexible=4)
class LeaveGroupResponse:
    """LeaveGroup response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16()
    members: list[MemberResponse] = wire.array(MemberResponse, "3+")


@wire.request(ApiKey.LIST_GROUPS, "0-5", flexible=3)
class ListGroupsRequest:
    """ListGroups request."""

    states_filter: list[str] = wire.array("string", "4+")
    types_filter: list[str] = wire.array("string", "5+")


@wire.part
class ListedGroup:
    """Part of ListGroupsResponse."""

    group_id: str = wire.string()
    protocol_type: str = wire.string()
    group_state: str = wire.string("4+")
    group_type: str = wire.string("5+")


@wire.response(ApiKey.LIST_GROUPS, "0-5", flexible=3)
class ListGroupsResponse:
    """ListGroups response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16()
    groups: list[ListedGroup] = wire.array(ListedGroup)


@wire.request(ApiKey.DESCRIBE_GROUPS, "0-6", flexible=5)
class DescribeGroupsRequest:
    """DescribeGroups request."""

    groups: list[str] = wire.array("string")
    include_authorized_operations: bool = wire.boolean("3+")


@wire.part
class DescribedGroupMember:
    """Part of DescribeGroupsResponse."""

    member_id: str = wire.string()
    group_instance_id: str | None = wire.string("4+", default=None, nullable="4+")
    client_id: str = wire.string()
    client_host: str = wire.string()
    member_metadata: bytes = wire.sized()
    member_assignment: bytes = wire.sized()


@wire.part
class DescribedGroup:
    """Part of DescribeGroupsResponse."""

    error_code: int = wire.int16()
    error_message: str | None = wire.string("6+", default=None, nullable="6+")
    group_id: str = wire.string()
    group_state: str = wire.string()
    protocol_type: str = wire.string()
    protocol_data: str = wire.string()
    members: list[DescribedGroupMember] = wire.array(DescribedGroupMember)
    authorized_operations: int = wire.int32("3+", default=-2147483648)


@wire.response(ApiKey.DESCRIBE_GROUPS, "0-6", flexible=5)
class DescribeGroupsResponse:
    """DescribeGroups response."""

    throttle_time_ms: int = wire.int32("1+")
    groups: list[DescribedGroup] = wire.array(DescribedGroup)


@wire.request(ApiKey.DELETE_GROUPS, "0-2", flexible=2)
class DeleteGroupsRequest:
    """DeleteGroups request."""

    groups_names: list[str] = wire.array("string")


@wire.part
class DeletableGroupResult:
    """Part of DeleteGroupsResponse."""

    group_id: str = wire.string()
    error_code: int = wire.int16()


@wire.response(ApiKey.DELETE_GROUPS, "0-2", flexible=2)
class DeleteGroupsResponse:
    """DeleteGroups response."""

    throttle_time_ms: int = wire.int32()
    results: list[DeletableGroupResult] = wire.array(DeletableGroupResult)
