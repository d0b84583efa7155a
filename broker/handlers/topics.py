"""CreateTopics, DeleteTopics, CreatePartitions."""

from collections import Counter
from collections.abc import Iterable
from functools import partial

from broker.coordinator.parts import Parts, batched, each
from broker.coordinator.topics import NewTopic, Outcome, Topic
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.answers import follow, gather
from broker.handlers.config_entries import topic_entries
from broker.handlers.partitions import REFUSED, error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import INTERNAL_TOPICS
from broker.pending import Pending
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
TOPICS_AT_ONCE_MAX = 100
NEW_PARTITIONS_MAX = 20_000  # of one request


def create_topics(
    state: BrokerState, request: CreateTopicsRequest, context: RequestContext
) -> Parts[CreateTopicsResponse | Pending[CreateTopicsResponse]]:
    """Create the valid topics; the others have an error."""
    asked_often = _repeated(topic.name for topic in request.topics)
    new_topics: dict[str, NewTopic] = {}
    folded: set[str] = set()
    room = NEW_PARTITIONS_MAX
    refused: dict[str, BrokerError] = {}
    for asked in request.topics:
        yield
        try:
            if asked.name in asked_often:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" is listed twice'
                )
            state.topics.check_name_is_free(asked.name)
            new = _new_topic(state, asked)
            state.topics.check_new(new)
            _check_apart(new, folded)
            _check_room(new.partition_count, room)
            room -= new.partition_count
            new_topics[asked.name] = new
        except BrokerError as error:
            refused[asked.name] = error
    names = list(dict.fromkeys(topic.name for topic in request.topics))
    made, pending = _make(state, new_topics, refused, validate_only=request.validate_only)
    answers = yield from each(
        names,
        lambda name: (
            _refused_topic(name, refused[name])
            if name in refused
            else _made_topic(state, new_topics[name], made.get(name))
        ),
    )
    # A topic that another request is creating exists only when that request is done: a client that
    # receives TOPIC_ALREADY_EXISTS uses the topic immediately.
    others = {
        name: creation
        for name, error in refused.items()
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and not request.validate_only
        for creation in [state.topics.creation(name)]
        if creation is not None
    }
    waiting: list[Outcome | Pending[Outcome]] = [pending, *others.values()]
    return follow(gather(waiting), lambda outcomes: _created(answers, list(others), outcomes))


def _created(
    answers: list[CreatableTopicResult], others: list[str], outcomes: list[Outcome]
) -> CreateTopicsResponse:
    own, *theirs = outcomes
    errors = {name: outcome.error for name, outcome in zip(others, theirs, strict=True)}
    return CreateTopicsResponse(
        topics=[
            _answer_after(answer, errors.get(answer.name) if answer.error_code else own.error)
            for answer in answers
        ]
    )


def _answer_after(answer: CreatableTopicResult, error: StorageError | None) -> CreatableTopicResult:
    if error is None:
        return answer
    return _refused_topic(answer.name, BrokerError(error_code_of(error), error.message))


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def _check_apart(new: NewTopic, others: set[str]) -> None:
    folded = new.name.replace(".", "_")
    if folded not in others:
        others.add(folded)
    else:
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f'topic "{new.name}" collides with another of the request: "." and "_" count as the '
            "same",
        )


def _check_room(count: int, room: int) -> None:
    """The size of a request is limited: other requests wait while its partitions are created."""
    if count > room:
        raise BrokerError(
            ErrorCode.POLICY_VIOLATION,
            f"one request can create {NEW_PARTITIONS_MAX} partitions at most: send several",
        )


def _make(
    state: BrokerState,
    new_topics: dict[str, NewTopic],
    refused: dict[str, BrokerError],
    *,
    validate_only: bool,
) -> tuple[dict[str, Topic], Outcome | Pending[Outcome]]:
    """The topics to create, and whether they exist now."""
    wanted = []
    for new in [] if validate_only else new_topics.values():
        try:
            # Checked again: other requests may have been handled in between.
            state.topics.check_name_is_free(new.name)
            wanted.append(new)
        except BrokerError as error:
            refused[new.name] = error
    if not wanted:
        return {}, Outcome()
    made, pending = state.topics.stage_new(wanted)
    return {topic.name: topic for topic in made}, pending


def _new_topic(state: BrokerState, asked: CreatableTopic) -> NewTopic:
    if asked.name in INTERNAL_TOPICS:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" is internal: the broker creates it'
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
            "replicas are assigned manually: number of partitions and replication factor "
            "must be -1",
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
) -> Parts[DeleteTopicsResponse | Pending[DeleteTopicsResponse]]:
    """Delete topics by name, or by id."""
    asked = request.topics
    if context.version < STATES_VERSION_MIN:
        asked = [DeleteTopicState(name) for name in request.topic_names]
    going: set[str] = set()
    answers = []
    for some in batched(asked, TOPICS_AT_ONCE_MAX):
        results = [_deletion(state, one, going) for one in some]
        names = [result.name or "" for result in results if not result.error_code]
        # Staged in one step, so that requests in between see all topics or none.
        pending = state.topics.stage(dict.fromkeys(names, None)) if names else Outcome()
        answers.append(follow(pending, partial(_deleted, results)))
        yield
    return follow(
        gather(answers),
        lambda done: DeleteTopicsResponse(responses=[one for some in done for one in some]),
    )


def _deletion(state: BrokerState, asked: DeleteTopicState, going: set[str]) -> DeletableTopicResult:
    try:
        topic = _topic_to_delete(state, asked)
        if topic.name in going or state.topics.wanted(topic.name) is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{topic.name}" is being deleted'
            )
    except REFUSED as error:
        return DeletableTopicResult(asked.name, asked.topic_id, error_code_of(error), error.message)
    going.add(topic.name)
    return DeletableTopicResult(topic.name, topic.id, ErrorCode.NONE)


def _deleted(results: list[DeletableTopicResult], outcome: Outcome) -> list[DeletableTopicResult]:
    if outcome.error is None:
        return results
    return [
        result
        if result.error_code
        else DeletableTopicResult(
            result.name, result.topic_id, error_code_of(outcome.error), outcome.error.message
        )
        for result in results
    ]


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
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f'topic "{topic.name}" is internal: it cannot be deleted',
        )
    return topic


def create_partitions(
    state: BrokerState, request: CreatePartitionsRequest, context: RequestContext
) -> Parts[CreatePartitionsResponse | Pending[CreatePartitionsResponse]]:
    """Add partitions to topics."""
    asked_often = _repeated(topic.name for topic in request.topics)
    answers = []
    room = NEW_PARTITIONS_MAX
    for some in batched(request.topics, TOPICS_AT_ONCE_MAX):
        results = []
        grown: dict[str, Topic | None] = {}
        for asked in some:
            result = CreatePartitionsTopicResult(asked.name)
            try:
                if asked.name in asked_often:
                    raise BrokerError(
                        ErrorCode.INVALID_REQUEST, f'topic "{asked.name}" is listed twice'
                    )
                room -= _check_growth(state, asked, room)
                if not request.validate_only:
                    grown[asked.name] = state.topics.grown(asked.name, asked.count)
            except REFUSED as error:
                result.error_code = error_code_of(error)
                result.error_message = error.message
            results.append(result)
        pending = state.topics.stage(grown) if grown else Outcome()
        answers.append(follow(pending, partial(_grown, results)))
        yield
    return follow(
        gather(answers),
        lambda done: CreatePartitionsResponse(results=[one for some in done for one in some]),
    )


def _grown(
    results: list[CreatePartitionsTopicResult], outcome: Outcome
) -> list[CreatePartitionsTopicResult]:
    for result in results if outcome.error is not None else ():
        if not result.error_code and outcome.error is not None:
            result.error_code = error_code_of(outcome.error)
            result.error_message = outcome.error.message
    return results


def _check_growth(state: BrokerState, asked: CreatePartitionsTopic, room: int) -> int:
    """The new number of partitions of a topic; BrokerError if it is refused."""
    topic = state.topics.wanted(asked.name)
    if topic is None:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{asked.name}" does not exist'
        )
    if topic.internal:
        # The state of a group is in the partition that its name hashes to.
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f'topic "{asked.name}" is internal: it cannot get more partitions',
        )
    state.topics.check_growth(topic, asked.count)
    more = asked.count - topic.partition_count
    _check_room(more, room)
    if asked.assignments is None:
        return more
    if len(asked.assignments) != more:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{more} new partitions need as many assignments, not {len(asked.assignments)}",
        )
    for assignment in asked.assignments:
        _check_assignment(state, assignment.broker_ids)
    return more


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
}
