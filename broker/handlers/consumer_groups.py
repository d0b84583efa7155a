"""Consumer groups (KIP-848): converts between messages and the coordinator's values."""

import contextlib
from functools import partial

from broker.coordinator.assignors import Partitions
from broker.coordinator.consumer_group import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    Heartbeat,
    HeartbeatResult,
    group_by_topic,
)
from broker.coordinator.group_descriptions import ConsumerMemberDescription
from broker.coordinator.parts import Parts, each
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.answers import follow
from broker.handlers.groups import AUTHORIZED_OPERATIONS, NOT_ASKED, listed_host
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import consumer_groups as wire

CLIENT_MEMBER_ID_VERSION_MIN = 1  # the client chooses its own member id
CONSUMER_MEMBER_TYPE = 1  # 0: uses the classic protocol, 1: the consumer protocol


def consumer_group_heartbeat(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> object:
    """A member joins, is alive, or leaves."""
    if request.subscribed_topic_regex:
        return _heartbeat_with_pattern(state, request, context)
    return _heartbeat(state, request, context)


def _heartbeat_with_pattern(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Parts[wire.ConsumerGroupHeartbeatResponse | Pending[wire.ConsumerGroupHeartbeatResponse]]:
    """Match topics in steps, with other requests in between: a pattern may be slow."""
    with contextlib.suppress(BrokerError):  # the coordinator reports an invalid pattern
        yield from state.groups.match_pattern(request.subscribed_topic_regex or "")
    return _heartbeat(state, request, context)


def _heartbeat(
    state: BrokerState, request: wire.ConsumerGroupHeartbeatRequest, context: RequestContext
) -> wire.ConsumerGroupHeartbeatResponse | Pending[wire.ConsumerGroupHeartbeatResponse]:
    try:
        _check_heartbeat(request, context.version)
        answer = state.groups.consumer_heartbeat(
            request.group_id,
            Heartbeat(
                member_id=request.member_id,
                epoch=request.member_epoch,
                instance_id=request.instance_id,
                client_id=context.connection.client_id,
                client_host=listed_host(context.connection),
                rack_id=request.rack_id,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                subscribed_names=request.subscribed_topic_names,
                subscribed_regex=request.subscribed_topic_regex,
                server_assignor=request.server_assignor,
                owned=_partitions(request.topic_partitions),
            ),
        )
    except BrokerError as error:
        return wire.ConsumerGroupHeartbeatResponse(
            error_code=error.code, error_message=error.message
        )
    except StorageError as error:
        return wire.ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message=error.message
        )
    return follow(answer, _heartbeat_response)


def _heartbeat_response(result: HeartbeatResult) -> wire.ConsumerGroupHeartbeatResponse:
    return wire.ConsumerGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=None if result.assigned is None else _assignment(result.assigned),
    )


def _assignment(partitions: Partitions) -> wire.Assignment:
    return wire.Assignment(
        [wire.TopicPartitions(*item) for item in group_by_topic(partitions).items()]
    )


def _partitions(topics: list[wire.TopicPartitions] | None) -> Partitions | None:
    if topics is None:
        return None
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)


def _check_heartbeat(request: wire.ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Refuse fields that are invalid for any group."""
    joins = request.member_epoch == JOIN_EPOCH
    needs_id = version >= CLIENT_MEMBER_ID_VERSION_MIN or not joins
    subscribes = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    wrong: tuple[tuple[bool, str], ...] = (
        (not request.group_id, "the group id is empty"),
        (needs_id and not request.member_id, "the member id is empty"),
        (request.instance_id == "", "the instance id is empty"),
        (request.rack_id == "", "the rack id is empty"),
        (request.member_epoch < LEAVE_STATIC_EPOCH, "the member epoch is below -2"),
        (
            request.member_epoch == LEAVE_STATIC_EPOCH and request.instance_id is None,
            "only a member with an instance id leaves with epoch -2",
        ),
        (joins and request.rebalance_timeout_ms == -1, "a join needs a rebalance timeout"),
        (
            joins and request.topic_partitions != [],
            "a join needs an empty list of owned partitions",
        ),
        (joins and not subscribes, "a join needs topic names or a pattern"),
    )
    for is_wrong, reason in wrong:
        if is_wrong:
            raise BrokerError(ErrorCode.INVALID_REQUEST, reason)


def consumer_group_describe(
    state: BrokerState, request: wire.ConsumerGroupDescribeRequest, context: RequestContext
) -> Parts[wire.ConsumerGroupDescribeResponse]:
    """Consumer groups with their members."""
    operations = AUTHORIZED_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    # A group that is listed twice is described once.
    group_ids = dict.fromkeys(request.group_ids)
    found = yield from each(group_ids, partial(_described, state, operations))
    return wire.ConsumerGroupDescribeResponse(groups=found)


def _described(state: BrokerState, operations: int, group_id: str) -> wire.DescribedGroup:
    try:
        group = state.groups.describe_consumer(group_id)
    except BrokerError as error:
        return wire.DescribedGroup(
            error_code=error.code, error_message=error.message, group_id=group_id
        )
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=[_member(state, member) for member in group.members],
        authorized_operations=operations,
    )


def _member(state: BrokerState, member: ConsumerMemberDescription) -> wire.Member:
    return wire.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_named_assignment(state, member.assigned),
        target_assignment=_named_assignment(state, member.target),
        member_type=CONSUMER_MEMBER_TYPE,
    )


def _named_assignment(
    state: BrokerState, partitions: Partitions
) -> wire.ConsumerGroupDescribeResponseAssignment:
    return wire.ConsumerGroupDescribeResponseAssignment(
        [
            wire.ConsumerGroupDescribeResponseTopicPartitions(topic_id, topic.name, numbers)
            for topic_id, numbers in group_by_topic(partitions).items()
            if (topic := state.topics.by_id(topic_id)) is not None
        ]
    )


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Create the topic of groups before the lock is acquired: this waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.CONSUMER_GROUP_HEARTBEAT: prepare}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe,
}
