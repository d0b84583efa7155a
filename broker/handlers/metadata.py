"""Metadata, DescribeCluster and DescribeTopicPartitions: what the cluster is."""

from broker.coordinator.topics import Topic, check_name
from broker.errors import BrokerError, ErrorCode
from broker.handlers.partitions import REFUSED, error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import INTERNAL_TOPICS, LEADER_EPOCH
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import (
    Cursor,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_TOPIC_ID = bytes(16)
BROKER_ENDPOINTS = 1

# Bits of the operations that anybody may do here, told to clients that ask: read, write, create,
# delete, alter, describe, describe configs, alter configs; for the cluster create, alter,
# describe, cluster action, describe configs, alter configs, idempotent write.
TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def metadata(
    state: BrokerState, request: MetadataRequest, context: RequestContext
) -> MetadataResponse:
    """Brokers and topics; a topic that is asked for by name may be made on the way."""
    host, port = state.endpoint_for(context.connection.listener)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(state.node_id, host, port, state.config.broker_rack)],
        cluster_id=state.cluster_id,
        controller_id=state.node_id,
        topics=_asked_topics(state, request, context.version),
    )
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code == ErrorCode.NONE:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _asked_topics(
    state: BrokerState, request: MetadataRequest, version: int
) -> list[MetadataResponseTopic]:
    # "All topics" is null, except in version 0, which has no null and says it with an empty list.
    if request.topics is None or (version == 0 and not request.topics):
        return [_described(state, topic) for topic in state.topics.topics()]
    may_create = state.config.auto_create_topics_enable and request.allow_auto_topic_creation
    return [_asked_topic(state, asked, may_create=may_create) for asked in request.topics]


def _asked_topic(
    state: BrokerState, asked: MetadataRequestTopic, *, may_create: bool
) -> MetadataResponseTopic:
    # A client that asks by id may leave the name out or send an empty one.
    if asked.name is None or asked.topic_id != NO_TOPIC_ID:
        topic = state.topics.by_id(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
        return _described(state, topic)
    topic = state.topics.get(asked.name)
    try:
        if topic is None:
            topic = _create_topic(state, asked.name, may_create=may_create)
    except REFUSED as error:
        return MetadataResponseTopic(error_code_of(error), asked.name)
    return _described(state, topic)


def _create_topic(state: BrokerState, name: str, *, may_create: bool) -> Topic:
    check_name(name)
    if not may_create:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if name in INTERNAL_TOPICS:
        return state.topics.ensure_internal(name)
    return state.topics.create(name, partition_count=state.config.num_partitions)


def _described(state: BrokerState, topic: Topic) -> MetadataResponseTopic:
    nodes = [state.node_id]
    return MetadataResponseTopic(
        ErrorCode.NONE,
        topic.name,
        topic.id,
        topic.internal,
        [
            MetadataResponsePartition(
                ErrorCode.NONE, number, state.node_id, LEADER_EPOCH, nodes, nodes
            )
            for number in range(topic.partition_count)
        ],
    )


def describe_cluster(
    state: BrokerState, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """The one broker of the cluster."""
    if request.endpoint_type != BROKER_ENDPOINTS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is not served here",
            endpoint_type=request.endpoint_type,
        )
    host, port = state.endpoint_for(context.connection.listener)
    response = DescribeClusterResponse(
        cluster_id=state.cluster_id,
        controller_id=state.node_id,
        brokers=[DescribeClusterBroker(state.node_id, host, port, state.config.broker_rack)],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def describe_topic_partitions(
    state: BrokerState, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Partitions of topics in order of their names, page by page."""
    names = sorted({topic.name for topic in request.topics}) or state.topics.names()
    first_partition = 0
    if request.cursor is not None:
        start = request.cursor.topic_name
        names = [name for name in names if name >= start]
        if names and names[0] == start:
            first_partition = max(request.cursor.partition_index, 0)
    limit = max(request.response_partition_limit, 1)
    room = min(limit, state.config.max_request_partition_size_limit)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = state.topics.get(name)
        count = 0 if topic is None else topic.partition_count
        if room == 0 and count > first_partition:
            response.next_cursor = Cursor(name, first_partition)
            break
        last = min(count, first_partition + room)
        response.topics.append(_partitions_page(state, name, topic, range(first_partition, last)))
        room -= max(last - first_partition, 0)
        if last < count:
            response.next_cursor = Cursor(name, last)
            break
        first_partition = 0
    return response


def _partitions_page(
    state: BrokerState, name: str, topic: Topic | None, numbers: range
) -> DescribeTopicPartitionsResponseTopic:
    if topic is None:
        try:
            check_name(name)
        except BrokerError as error:
            return DescribeTopicPartitionsResponseTopic(error.code, name)
        return DescribeTopicPartitionsResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
    nodes = [state.node_id]
    return DescribeTopicPartitionsResponseTopic(
        ErrorCode.NONE,
        name,
        topic.id,
        topic.internal,
        [
            DescribeTopicPartitionsResponsePartition(
                ErrorCode.NONE, number, state.node_id, LEADER_EPOCH, nodes, nodes, [], []
            )
            for number in numbers
        ],
        TOPIC_OPERATIONS,
    )


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.METADATA: metadata,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}
