"""Groups, classic and new, and their offsets."""

from collections.abc import Iterable, Mapping

from broker.client.administration.brokers import describe_cluster
from broker.client.administration.outcomes import collect, error_for
from broker.client.administration.values import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    Results,
)
from broker.client.answers import check, code_of
from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.cluster import Cluster
from broker.client.consumer_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    group_by_topic,
)
from broker.client.group_offsets import (
    VERSION_WITH_NAMES,
    commit_request,
    committed_codes,
    fetched_error,
    fetched_offsets,
    offset_fetch_request,
)
from broker.errors import BrokerError, ErrorCode, MalformedMessage, UnsupportedVersion
from broker.model import TopicPartition
from broker.protocol.messages import consumer_groups
from broker.protocol.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
)
from broker.protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchResponse,
)

CLASSIC = "classic"
CONSUMER = "consumer"


def list_groups(
    cluster: Cluster, *, states: Iterable[str], types: Iterable[str], timeout_ms: int
) -> list[GroupListing]:
    """The groups of all brokers; each broker lists those that it coordinates."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found: dict[str, GroupListing] = {}
    for node in describe_cluster(cluster, timeout_ms=timeout_ms).nodes:
        response = cluster.call(node.id, request, ListGroupsResponse, timeout_ms=timeout_ms)
        check(response.error_code, f"cannot list the groups of {node}")
        for group in response.groups:
            found[group.group_id] = GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state,
                group.group_type.lower() or CLASSIC,
            )
    return [found[group_id] for group_id in sorted(found)]


def describe_groups(
    cluster: Cluster, group_ids: Iterable[str], *, timeout_ms: int
) -> Results[str, GroupDescription]:
    """Groups of either type, with their members."""
    values: dict[str, GroupDescription] = {}
    errors: dict[str, BrokerError] = {}
    for group_id in group_ids:
        try:
            found = _describe_consumer(cluster, group_id, timeout_ms)
            values[group_id] = found or _describe_classic(cluster, group_id, timeout_ms)
        except BrokerError as error:
            errors[group_id] = error
    return Results(values, errors)


def _describe_consumer(cluster: Cluster, group_id: str, timeout_ms: int) -> GroupDescription | None:
    """A group of the new type, or None when there is no such group."""
    try:
        response = cluster.call_coordinator(
            ("group", group_id),
            consumer_groups.ConsumerGroupDescribeRequest(group_ids=[group_id]),
            consumer_groups.ConsumerGroupDescribeResponse,
            lambda answer: answer.groups[0].error_code,
            timeout_ms=timeout_ms,
        )
    except UnsupportedVersion:
        return None
    group = response.groups[0]
    if code_of(group.error_code) in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(group.error_code, f'cannot describe group "{group_id}"', message=group.error_message)
    return GroupDescription(
        group_id,
        CONSUMER,
        group.group_state,
        PROTOCOL_TYPE,
        group.assignor_name,
        tuple(_consumer_member(member) for member in group.members),
        cluster.coordinator("group", group_id, timeout_ms=timeout_ms),
        group.group_epoch,
    )


def _consumer_member(member: consumer_groups.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        tuple(member.subscribed_topic_names),
        member.member_epoch,
    )


def _partitions(
    assignment: consumer_groups.ConsumerGroupDescribeResponseAssignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _describe_classic(cluster: Cluster, group_id: str, timeout_ms: int) -> GroupDescription:
    response = cluster.call_coordinator(
        ("group", group_id),
        DescribeGroupsRequest(groups=[group_id]),
        DescribeGroupsResponse,
        lambda answer: answer.groups[0].error_code,
        timeout_ms=timeout_ms,
    )
    group: DescribedGroup = response.groups[0]
    check(group.error_code, f'cannot describe group "{group_id}"', message=group.error_message)
    if group.group_state == "Dead":  # older versions report a missing group so
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f'group "{group_id}" does not exist')
    return GroupDescription(
        group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_classic_member(group.protocol_type, member) for member in group.members),
        cluster.coordinator("group", group_id, timeout_ms=timeout_ms),
    )


def _classic_member(protocol_type: str, member: DescribedGroupMember) -> MemberDescription:
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()
    metadata, assignment = bytes(member.member_metadata), bytes(member.member_assignment)
    if protocol_type == PROTOCOL_TYPE:
        try:
            partitions = decode_assignment(assignment).partitions
            if metadata:
                topics = decode_subscription(member.member_id, None, metadata).topics
        except MalformedMessage:
            pass  # another client's own format: the bytes are returned unchanged
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        partitions,
        None,
        topics,
        None,
        metadata,
        assignment,
    )


def delete_groups(
    cluster: Cluster, group_ids: Iterable[str], *, timeout_ms: int
) -> Results[str, None]:
    """Delete groups without members and their offsets."""
    answers = []
    for group_id in group_ids:
        response = cluster.call_coordinator(
            ("group", group_id),
            DeleteGroupsRequest(groups_names=[group_id]),
            DeleteGroupsResponse,
            lambda answer: answer.results[0].error_code,
            timeout_ms=timeout_ms,
        )
        error = error_for(response.results[0].error_code, f'cannot delete group "{group_id}"')
        answers.append((group_id, None, error))
    return collect(answers, lambda nothing: nothing)


def remove_group_members(
    cluster: Cluster, group_id: str, member_ids: Iterable[str], *, timeout_ms: int
) -> Results[str, None]:
    """Remove members from a classic group, even if they are running."""
    request = LeaveGroupRequest(
        group_id=group_id,
        members=[
            MemberIdentity(member_id, reason="removed by an admin") for member_id in member_ids
        ],
    )
    response = cluster.call_coordinator(
        ("group", group_id),
        request,
        LeaveGroupResponse,
        lambda answer: answer.error_code,
        timeout_ms=timeout_ms,
    )
    what = f'cannot remove members of group "{group_id}"'
    check(response.error_code, what)
    return collect(
        (
            (member.member_id, None, error_for(member.error_code, f"{what}: {member.member_id}"))
            for member in response.members
        ),
        lambda nothing: nothing,
    )


# --- offsets ----------------------------------------------------------------------------------


def list_group_offsets(
    cluster: Cluster,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    timeout_ms: int,
) -> Results[TopicPartition, OffsetAndMetadata]:
    """The committed offsets of a group: of all partitions, or of these if they have one."""
    wanted = None if partitions is None else list(partitions)
    response = cluster.call_coordinator(
        ("group", group_id),
        offset_fetch_request(GroupMetadata(group_id), wanted),
        OffsetFetchResponse,
        fetched_error,
        timeout_ms=timeout_ms,
        version_max=VERSION_WITH_NAMES,
    )
    check(fetched_error(response), f'cannot fetch the offsets of group "{group_id}"')
    values: dict[TopicPartition, OffsetAndMetadata] = {}
    errors: dict[TopicPartition, BrokerError] = {}
    for tp, found in fetched_offsets(response).items():
        if isinstance(found, ErrorCode):
            reason = found.name.lower().replace("_", " ")
            errors[tp] = BrokerError(found, f"cannot fetch the offset of {tp}: {reason}")
        elif found is not None:
            values[tp] = found
    return Results(values, errors)


def alter_group_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int,
) -> Results[TopicPartition, None]:
    """Commit offsets for a group without members."""
    response = cluster.call_coordinator(
        ("group", group_id),
        commit_request(GroupMetadata(group_id), offsets),
        OffsetCommitResponse,
        lambda answer: next(iter(committed_codes(answer).values()), ErrorCode.NONE),
        timeout_ms=timeout_ms,
        version_max=VERSION_WITH_NAMES,
    )
    answers = []
    for tp, code in committed_codes(response).items():
        reason = None
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH):
            reason = "the group has members; stop them first"
        error = error_for(code, f'cannot set the offset of group "{group_id}" in {tp}', reason)
        answers.append((tp, None, error))
    return collect(answers, lambda nothing: nothing)


def delete_group_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int
) -> Results[TopicPartition, None]:
    """Delete offsets of topics that the group is not subscribed to."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for topic, numbers in group_by_topic(partitions).items()
        ],
    )
    response = cluster.call_coordinator(
        ("group", group_id),
        request,
        OffsetDeleteResponse,
        lambda answer: answer.error_code,
        timeout_ms=timeout_ms,
    )
    what = f'cannot delete offsets of group "{group_id}"'
    check(response.error_code, what)
    return collect(
        (
            (
                tp := TopicPartition(topic.name, item.partition_index),
                None,
                error_for(item.error_code, f"{what} in {tp}"),
            )
            for topic in response.topics
            for item in topic.partitions
        ),
        lambda nothing: nothing,
    )
