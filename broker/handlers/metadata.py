"""Metadata, DescribeCluster and DescribeTopicPartitions: brokers, topics, partitions."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from broker.coordinator.parts import Parts, each
from broker.coordinator.topics import NewTopic, Outcome, Topic, check_name
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.answers import follow
from broker.handlers.partitions import error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import INTERNAL_TOPICS, TopicPartition
from broker.pending import Pending
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

logger = logging.getLogger(__name__)

NO_TOPIC_ID = bytes(16)
AUTO_CREATED_MAX = 1_000  # topics that one request creates
BROKER_ENDPOINTS = 1

# Bits of the allowed operations, returned to clients that request them: read, write, create,
# delete, alter, describe, describe configs, alter configs; for the cluster create, alter,
# describe, cluster action, describe configs, alter configs, idempotent write.
TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def metadata(
    state: BrokerState, request: MetadataRequest, context: RequestContext
) -> Parts[MetadataResponse | Pending[MetadataResponse]]:
    """Brokers and topics; a topic requested by name may be created."""
    # "All topics" is null, except in version 0, which has no null and uses an empty list.
    if request.topics is None or (context.version == 0 and not request.topics):
        topics = yield from each(state.topics.topics(), partial(_described, state))
        return _response(state, request, context, topics)
    outcome = _make_topics(state, request) if request.allow_auto_topic_creation else NOTHING_MADE
    # A topic that is listed twice is described once.
    asked = {(one.topic_id, one.name): one for one in request.topics}
    if not isinstance(outcome, Pending):
        topics = yield from each(asked.values(), partial(_asked_topic, state, outcome))
        return _response(state, request, context, topics)
    # Existing topics are described now, in parts; new ones when they have been created.
    ready = yield from each(
        asked.values(),
        lambda one: None if _is_missing(state, one) else _asked_topic(state, NOTHING_MADE, one),
    )

    def finish(outcome: AutoCreation) -> MetadataResponse:
        found = [
            _asked_topic(state, outcome, one) if known is None else known
            for one, known in zip(asked.values(), ready, strict=True)
        ]
        return _response(state, request, context, found)

    return follow(outcome, finish)


def _response(
    state: BrokerState,
    request: MetadataRequest,
    context: RequestContext,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    host, port = state.endpoint_for(context.connection.listener)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(state.node_id, host, port, state.config.broker_rack)],
        cluster_id=state.cluster_id,
        controller_id=state.node_id,
        topics=topics,
    )
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code == ErrorCode.NONE:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """The outcome of creating the missing topics of a request."""

    refused: Mapping[str, ErrorCode]
    error: StorageError | None = None


NOTHING_MADE = AutoCreation({})


def _is_missing(state: BrokerState, asked: MetadataRequestTopic) -> bool:
    by_name = asked.name is not None and asked.topic_id == NO_TOPIC_ID
    return by_name and state.topics.get(asked.name or "") is None


def _make_topics(
    state: BrokerState, request: MetadataRequest
) -> AutoCreation | Pending[AutoCreation]:
    """Create the missing topics, with one write of the catalog."""
    if not state.config.auto_create_topics_enable:
        return NOTHING_MADE
    new: list[NewTopic] = []
    refused: dict[str, ErrorCode] = {}
    folded: set[str] = set()
    missing = {one.name: one for one in request.topics or () if _is_missing(state, one)}
    for name in missing:
        assert name is not None, "what has no name is not missing"
        try:
            state.topics.check_name_is_free(name)
            if len(new) == AUTO_CREATED_MAX or name.replace(".", "_") in folded:
                # The client retries, and then it is created or refused.
                raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE)
            folded.add(name.replace(".", "_"))
            internal = name in INTERNAL_TOPICS
            count = state.config.num_partitions
            new.append(state.topics.internal_topic(name) if internal else NewTopic(name, count, {}))
        except BrokerError as error:
            being_made = error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            refused[name] = ErrorCode.LEADER_NOT_AVAILABLE if being_made else error.code
    if len(new) == AUTO_CREATED_MAX < len(missing):
        logger.warning(
            "a request asks for %d topics that do not exist: at most %d are created at once",
            len(missing),
            AUTO_CREATED_MAX,
        )
    if not new:
        return AutoCreation(refused)
    _, pending = state.topics.stage_new(new)

    def made(outcome: Outcome) -> AutoCreation:
        return AutoCreation(refused, outcome.error)

    return follow(pending, made)


def _asked_topic(
    state: BrokerState, made: AutoCreation, asked: MetadataRequestTopic
) -> MetadataResponseTopic:
    # A request by id may omit the name or contain an empty one.
    if asked.name is None or asked.topic_id != NO_TOPIC_ID:
        topic = state.topics.by_id(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
        return _described(state, topic)
    topic = state.topics.get(asked.name)
    if topic is not None:
        return _described(state, topic)
    try:
        check_name(asked.name)
        code = made.refused.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if made.error is not None:
            code = error_code_of(made.error)
    except BrokerError as error:
        code = error.code
    return MetadataResponseTopic(code, asked.name)


def _described(state: BrokerState, topic: Topic) -> MetadataResponseTopic:
    nodes = [state.node_id]
    return MetadataResponseTopic(
        ErrorCode.NONE,
        topic.name,
        topic.id,
        topic.internal,
        [
            MetadataResponsePartition(
                ErrorCode.NONE,
                partition.partition,
                state.node_id,
                state.partitions.leader(partition).leader_epoch,
                nodes,
                nodes,
            )
            for partition in topic.partitions
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
    """Partitions of topics in the order of their names, in pages."""
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
                ErrorCode.NONE,
                number,
                state.node_id,
                state.partitions.leader(TopicPartition(name, number)).leader_epoch,
                nodes,
                nodes,
                [],
                [],
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
