"""Groups whose assignment the broker computes; the coordinator does the work."""

import contextlib
from dataclasses import replace

from broker.coordinator.parts import Parts
from broker.errors import BrokerError
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import consumer_groups as wire


def consumer_group_heartbeat(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> object:
    """A member joins, is alive, or leaves."""
    if request.subscribed_topic_regex:
        return _heartbeat_with_pattern(state, request, context)
    return state.groups.consumer_heartbeat(request, context.connection, context.version)


def _heartbeat_with_pattern(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Parts[wire.ConsumerGroupHeartbeatResponse | Pending[wire.ConsumerGroupHeartbeatResponse]]:
    """Topics are matched one by one, with others in between: a pattern may be slow."""
    with contextlib.suppress(BrokerError):  # of a wrong one the coordinator says what is wrong
        yield from state.groups.match_pattern(request.subscribed_topic_regex or "")
    return state.groups.consumer_heartbeat(request, context.connection, context.version)


def consumer_group_describe(
    state: BrokerState, request: wire.ConsumerGroupDescribeRequest, context: RequestContext
) -> Parts[wire.ConsumerGroupDescribeResponse]:
    """Consumer groups with their members."""
    found = []
    # A group that is asked for again is answered once.
    for group_id in dict.fromkeys(request.group_ids):
        found += state.groups.consumer_describe(replace(request, group_ids=[group_id])).groups
        yield
    return wire.ConsumerGroupDescribeResponse(groups=found)


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Make the topic of groups, before the lock is taken: that waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.CONSUMER_GROUP_HEARTBEAT: prepare}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe,
}
