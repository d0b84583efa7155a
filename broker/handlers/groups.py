"""Classic groups and the administration of all groups; the coordinator does the work."""

from dataclasses import replace

from broker.coordinator.parts import Parts
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import groups as wire


def join_group(
    state: BrokerState, request: wire.JoinGroupRequest, context: RequestContext
) -> wire.JoinGroupResponse | Pending[wire.JoinGroupResponse]:
    """A client wants to be a member."""
    return state.groups.join(request, context.connection, context.version)


def sync_group(
    state: BrokerState, request: wire.SyncGroupRequest, context: RequestContext
) -> wire.SyncGroupResponse | Pending[wire.SyncGroupResponse]:
    """A member asks for its work."""
    return state.groups.sync(request)


def heartbeat(
    state: BrokerState, request: wire.HeartbeatRequest, context: RequestContext
) -> wire.HeartbeatResponse:
    """A member is alive."""
    return state.groups.heartbeat(request)


def leave_group(
    state: BrokerState, request: wire.LeaveGroupRequest, context: RequestContext
) -> wire.LeaveGroupResponse | Pending[wire.LeaveGroupResponse]:
    """Members go."""
    return state.groups.leave(request, context.version)


def list_groups(
    state: BrokerState, request: wire.ListGroupsRequest, context: RequestContext
) -> wire.ListGroupsResponse:
    """Which groups there are."""
    return state.groups.list_groups(request)


def describe_groups(
    state: BrokerState, request: wire.DescribeGroupsRequest, context: RequestContext
) -> Parts[wire.DescribeGroupsResponse]:
    """Classic groups with their members."""
    found = []
    # A group that is asked for again is answered once.
    for group_id in dict.fromkeys(request.groups):
        one = replace(request, groups=[group_id])
        found += state.groups.describe(one, context.version).groups
        yield
    return wire.DescribeGroupsResponse(groups=found)


def delete_groups(
    state: BrokerState, request: wire.DeleteGroupsRequest, context: RequestContext
) -> Parts[wire.DeleteGroupsResponse | Pending[wire.DeleteGroupsResponse]]:
    """Delete empty groups."""
    return state.groups.delete_in_parts(request)


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Make the topic of groups, before the lock is taken: that waits for the disk."""
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
