"""CreateTopics, DeleteTopics, CreatePartitions: the topics there are."""

from collections import Counter
from collections.abc import Iterable

from broker.coordinator.topics import NewTopic, Topic
from broker.errors import BrokerError, ErrorCode
from broker.handlers.config_entries import topic_entries
from broker.handlers.partitions import REFUSED, error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import INTERNAL_TOPICS
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DEFAULT = -1
REPLICATION_FACTOR = 1
STATES_VERSION_MIN = 6
NO_TOPIC_ID = bytes(16)


def create_topics(
    state: BrokerState, request: CreateTopicsRequest, context: RequestContext
) -> CreateTopicsResponse:
    """Make the topics that can be made; the others say why not."""
    asked_often = _repeated(topic.name for topic in request.topics)
    new_topics: dict[str, NewTopic] = {}
    refused: dict[str, BrokerError] = {}
    for asked in request.topics:
        try:
            if asked.name in asked_often:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" comes twice')
            state.topics.check_name_is_free(asked.name)
            new = _new_topic(state, asked)
            state.topics.check_new(new)
            _check_apart(new, new_topics)
            new_topics[asked.name] = new
        except BrokerError as error:
            refused[asked.name] = error
    made = {} if request.validate_only else _make(state, new_topics, refused)
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(
        topics=[
            _refused_topic(name, refused[name])
            if name in refused
            else _made_topic(state, new_topics[name], made.get(name))
            for name in names
        ]
    )


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def _check_apart(new: NewTopic, others: dict[str, NewTopic]) -> None:
    folded = new.name.replace(".", "_")
    if any(other.replace(".", "_") == folded for other in others):
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f'topic "{new.name}" collides with another of the request: "." and "_" count as the '
            "same",
        )


def _make(
    state: BrokerState, new_topics: dict[str, NewTopic], refused: dict[str, BrokerError]
) -> dict[str, Topic]:
    try:
        return {topic.name: topic for topic in state.topics.create_all(new_topics.values())}
    except REFUSED as error:
        failure = BrokerError(error_code_of(error), error.message)
        refused.update(dict.fromkeys(new_topics, failure))
        return {}


def _new_topic(state: BrokerState, asked: CreatableTopic) -> NewTopic:
    if asked.name in INTERNAL_TOPICS:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" is internal: the broker makes it'
        )
    overrides: dict[str, str] = {}
    for config in asked.configs:
        if config.value is None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f'setting "{config.name}" has no value')
        overrides[config.name] = config.value
    if asked.assignments:
        return NewTopic(asked.name, _assigned_partitions(state, asked), overrides)
    _check_replication_factor(asked.replication_factor)
    count = asked.num_partitions
    return NewTopic(
        asked.name, state.config.num_partitions if count == DEFAULT else count, overrides
    )


def _check_replication_factor(factor: int) -> None:
    if factor not in (DEFAULT, REPLICATION_FACTOR):
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor} is not possible: there is 1 broker",
        )


def _assigned_partitions(state: BrokerState, asked: CreatableTopic) -> int:
    if asked.num_partitions != DEFAULT or asked.replication_factor != DEFAULT:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "replicas are assigned by hand: number of partitions and replication factor must be -1",
        )
    numbers = sorted(assignment.partition_index for assignment in asked.assignments)
    if numbers != list(range(len(numbers))):
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps"
        )
    for assignment in asked.assignments:
        _check_assignment(state, assignment.broker_ids)
    return len(numbers)


def _check_assignment(state: BrokerState, broker_ids: list[int]) -> None:
    if broker_ids != [state.node_id]:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"replicas {broker_ids} are not possible: the only broker is {state.node_id}",
        )


def _refused_topic(name: str, error: BrokerError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=error.code, error_message=error.message)


def _made_topic(state: BrokerState, new: NewTopic, topic: Topic | None) -> CreatableTopicResult:
    entries = topic_entries(state.config, new.overrides)
    return CreatableTopicResult(
        new.name,
        NO_TOPIC_ID if topic is None else topic.id,
        ErrorCode.NONE,
        None,
        num_partitions=new.partition_count,
        replication_factor=REPLICATION_FACTOR,
        configs=[
            CreatableTopicConfigs(entry.name, entry.value, False, entry.source) for entry in entries
        ],
    )


def delete_topics(
    state: BrokerState, request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse:
    """Delete topics by name, or by id."""
    asked = request.topics
    if context.version < STATES_VERSION_MIN:
        asked = [DeleteTopicState(name) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[_delete_topic(state, one) for one in asked])


def _delete_topic(state: BrokerState, asked: DeleteTopicState) -> DeletableTopicResult:
    topic: Topic | None = None
    try:
        topic = _topic_to_delete(state, asked)
        state.topics.delete(topic.name)
    except REFUSED as error:
        name = asked.name if topic is None else topic.name
        return DeletableTopicResult(name, asked.topic_id, error_code_of(error), error.message)
    return DeletableTopicResult(topic.name, topic.id, ErrorCode.NONE)


def _topic_to_delete(state: BrokerState, asked: DeleteTopicState) -> Topic:
    if asked.name is not None and asked.topic_id != NO_TOPIC_ID:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "give a topic's name or its id, not both")
    if not state.config.delete_topic_enable:
        raise BrokerError(
            ErrorCode.TOPIC_DELETION_DISABLED, 'setting "delete.topic.enable" is false'
        )
    if asked.name is None:
        topic = state.topics.by_id(asked.topic_id)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    else:
        topic = state.topics.get(asked.name)
        if topic is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{asked.name}" does not exist'
            )
    if topic.internal:
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic "{topic.name}" is internal: it must stay'
        )
    return topic


def create_partitions(
    state: BrokerState, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """Add partitions to topics."""
    asked_often = _repeated(topic.name for topic in request.topics)
    results = []
    for asked in request.topics:
        result = CreatePartitionsTopicResult(asked.name)
        try:
            if asked.name in asked_often:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" comes twice')
            _check_growth(state, asked)
            if not request.validate_only:
                state.topics.grow(asked.name, asked.count)
        except REFUSED as error:
            result.error_code = error_code_of(error)
            result.error_message = error.message
        results.append(result)
    return CreatePartitionsResponse(results=results)


def _check_growth(state: BrokerState, asked: CreatePartitionsTopic) -> None:
    topic = state.topics.get(asked.name)
    if topic is None:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{asked.name}" does not exist'
        )
    if topic.internal:
        # The state of a group lives in the partition its name hashes to.
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic "{asked.name}" is internal: it cannot grow'
        )
    state.topics.check_growth(topic, asked.count)
    if asked.assignments is None:
        return
    if len(asked.assignments) != asked.count - topic.partition_count:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{asked.count - topic.partition_count} new partitions need as many assignments, "
            f"not {len(asked.assignments)}",
        )
    for assignment in asked.assignments:
        _check_assignment(state, assignment.broker_ids)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
}
