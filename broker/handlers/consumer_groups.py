"""Groups whose assignment the broker computes; the coordinator does the work."""

from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import consumer_groups as wire


def consumer_group_heartbeat(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> wire.ConsumerGroupHeartbeatResponse | Pending[wire.ConsumerGroupHeartbeatResponse]:
    """A member joins, is alive, or leaves."""
    return state.groups.consumer_heartbeat(request, context.connection, context.version)


def consumer_group_describe(
    state: BrokerState, request: wire.ConsumerGroupDescribeRequest, context: RequestContext
) -> wire.ConsumerGroupDescribeResponse:
    """Consumer groups with their members."""
    return state.groups.consumer_describe(request)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe,
}
