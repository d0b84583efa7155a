"""Topics, their partitions and their records."""

from collections.abc import Iterable, Mapping

from broker.client.administration.outcomes import collect, error_for
from broker.client.administration.values import CreatedTopic, NewTopic, Results, TopicListing
from broker.client.api import FoundOffset
from broker.client.cluster import Cluster
from broker.client.consumer_protocol import group_by_topic
from broker.client.group_offsets import list_offsets_request, listed_offsets
from broker.client.metadata import TopicInfo, read_brokers, read_topic
from broker.errors import BrokerError, ErrorCode, RequestTimeout
from broker.model import TopicPartition
from broker.protocol.messages.fetch import ListOffsetsResponse
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from broker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], *, validate_only: bool, timeout_ms: int
) -> Results[str, CreatedTopic]:
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response = cluster.call(None, request, CreateTopicsResponse, timeout_ms=timeout_ms)
    return collect(
        (
            (
                topic.name,
                topic,
                error_for(
                    topic.error_code, f'cannot create topic "{topic.name}"', topic.error_message
                ),
            )
            for topic in response.topics
        ),
        _created,
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    by_hand = bool(topic.replicas)
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if by_hand else topic.partitions,
        replication_factor=-1 if by_hand else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in topic.replicas.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(
        topic.name,
        topic.topic_id,
        topic.num_partitions,
        topic.replication_factor,
        {config.name: config.value for config in topic.configs or ()},
    )


def delete_topics(cluster: Cluster, names: Iterable[str], *, timeout_ms: int) -> Results[str, None]:
    wanted = list(names)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted],
        topic_names=wanted,
        timeout_ms=timeout_ms,
    )
    response = cluster.call(None, request, DeleteTopicsResponse, timeout_ms=timeout_ms)
    return collect(
        (
            (
                topic.name or "",
                topic,
                error_for(
                    topic.error_code, f'cannot delete topic "{topic.name}"', topic.error_message
                ),
            )
            for topic in response.responses
        ),
        lambda topic: None,
    )


def list_topics(
    cluster: Cluster, *, include_internal: bool, timeout_ms: int
) -> dict[str, TopicListing]:
    """All topics, by name."""
    return {
        name: TopicListing(name, topic.id, topic.is_internal, len(topic.partitions))
        for name, topic in sorted(cluster.topics(timeout_ms=timeout_ms).items())
        if include_internal or not topic.is_internal
    }


def describe_topics(
    cluster: Cluster, names: Iterable[str], *, timeout_ms: int
) -> Results[str, TopicInfo]:
    """Partitions, leaders and replicas of topics; never creates a topic."""
    request = MetadataRequest(
        [MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    response = cluster.call(None, request, MetadataResponse, timeout_ms=timeout_ms)
    cluster.transport.update_nodes(read_brokers(response))
    return collect(
        (
            (
                topic.name or "",
                topic,
                error_for(topic.error_code, f'cannot describe topic "{topic.name}"'),
            )
            for topic in response.topics
        ),
        lambda topic: read_topic(topic, None),
    )


def create_partitions(
    cluster: Cluster, totals: Mapping[str, int], *, validate_only: bool, timeout_ms: int
) -> Results[str, None]:
    """Increase the partition count of topics to these totals."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in totals.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response = cluster.call(None, request, CreatePartitionsResponse, timeout_ms=timeout_ms)
    return collect(
        (
            (
                topic.name,
                topic,
                error_for(
                    topic.error_code,
                    f'cannot add partitions to topic "{topic.name}"',
                    topic.error_message,
                ),
            )
            for topic in response.results
        ),
        lambda topic: None,
    )


def _leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], timeout_ms: int
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, BrokerError]]:
    """Partitions by leader; the errors of those that have none."""
    by_leader: dict[int, list[TopicPartition]] = {}
    errors: dict[TopicPartition, BrokerError] = {}
    wanted = list(partitions)
    described = describe_topics(cluster, {tp.topic for tp in wanted}, timeout_ms=timeout_ms)
    for tp in wanted:
        topic = described.values.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is not None and partition.leader >= 0:
            by_leader.setdefault(partition.leader, []).append(tp)
        elif partition is not None:
            errors[tp] = BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader")
        else:
            errors[tp] = described.errors.get(tp.topic) or BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {tp} does not exist"
            )
    return by_leader, errors


def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], *, timeout_ms: int
) -> Results[TopicPartition, int]:
    """Delete the records before these offsets (-1: all); the values are the new start offsets."""
    by_leader, errors = _leaders(cluster, before, timeout_ms)
    found: list[tuple[TopicPartition, int, BrokerError | None]] = []
    for leader, partitions in by_leader.items():
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=number, offset=before[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in group_by_topic(partitions).items()
            ],
            timeout_ms=timeout_ms,
        )
        response = cluster.call(leader, request, DeleteRecordsResponse, timeout_ms=timeout_ms)
        for topic in response.topics:
            for item in topic.partitions:
                tp = TopicPartition(topic.name, item.partition_index)
                error = error_for(item.error_code, f"cannot delete records of {tp}")
                found.append((tp, item.low_watermark, error))
    results = collect(found, lambda low_watermark: low_watermark)
    return Results(results.values, {**errors, **results.errors})


# The leader is being moved or elected: a retry succeeds soon.
_PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int,
    timeout_ms: int,
) -> Results[TopicPartition, FoundOffset]:
    """Offsets by time; -2: earliest, -1: latest, -3: of the record with the latest timestamp.

    Partitions whose leader moves are retried until the timeout.
    """
    values: dict[TopicPartition, FoundOffset] = {}
    errors: dict[TopicPartition, BrokerError] = {}

    def attempt(left_ms: int) -> None:
        wanted = {tp: moment for tp, moment in timestamps.items() if tp not in values}
        found = _list_offsets_once(cluster, wanted, isolation=isolation, timeout_ms=left_ms)
        values.update(found.values)
        errors.clear()
        errors.update(found.errors)
        for error in found.errors.values():
            if error.code in _PASSING:
                raise error

    try:
        cluster.retry("listing offsets", attempt, timeout_ms=timeout_ms)
    except RequestTimeout:
        if not errors:
            raise
    return Results(values, errors)


def _list_offsets_once(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int,
    timeout_ms: int,
) -> Results[TopicPartition, FoundOffset]:
    by_leader, errors = _leaders(cluster, timestamps, timeout_ms)
    values: dict[TopicPartition, FoundOffset] = {}
    for leader, partitions in by_leader.items():
        request = list_offsets_request(
            {tp: timestamps[tp] for tp in partitions}, isolation=isolation, timeout_ms=timeout_ms
        )
        response = cluster.call(leader, request, ListOffsetsResponse, timeout_ms=timeout_ms)
        for tp, found in listed_offsets(response).items():
            if isinstance(found, ErrorCode):
                reason = found.name.lower().replace("_", " ")
                errors[tp] = BrokerError(found, f"cannot list the offset of {tp}: {reason}")
            else:
                values[tp] = found
    return Results(values, errors)
