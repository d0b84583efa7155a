"""Committed offsets: converts messages to the coordinator's values, large requests in steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar

from broker.coordinator.group_offsets import CommittingMember, NewOffset
from broker.coordinator.parts import Parts, batched, each
from broker.errors import BrokerError, ErrorCode
from broker.handlers.answers import follow, gather
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC, ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import offsets as wire
from broker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

PARTITIONS_AT_ONCE_MAX = 500
NO_OFFSET = -1
NO_LEADER_EPOCH = -1
MEMBER_EPOCH_VERSION_MIN = 9
TOPIC_ID_VERSION_MIN = 10
MANY_GROUPS_VERSION_MIN = 8

Codes = list[ErrorCode]
# The fields that both kinds of commit requests have per partition.
CommitPartition = wire.OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class _Topic(Protocol):
    """A topic of a request or a response."""

    partitions: list[Any]  # Any: each message has its own class


TopicT = TypeVar("TopicT", bound=_Topic)


def _count(topics: Sequence[_Topic]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def pieces(topics: Sequence[TopicT]) -> Iterator[list[TopicT]]:
    """The topics of a request in groups with few partitions; a large topic is in several groups."""
    piece: list[TopicT] = []
    for topic in topics:
        for partitions in (
            batched(topic.partitions, PARTITIONS_AT_ONCE_MAX) if topic.partitions else [[]]
        ):
            if piece and _count(piece) + len(partitions) + len(piece) > PARTITIONS_AT_ONCE_MAX:
                yield piece
                piece = []
            piece.append(replace(topic, partitions=list(partitions)))  # type: ignore[type-var]
    if piece:
        yield piece


def joined(
    topics: Iterable[Sequence[TopicT]], same: Callable[[TopicT, TopicT], bool]
) -> list[TopicT]:
    """The topics of a response: joins the parts of topics that were split."""
    whole: list[TopicT] = []
    for topic in chain.from_iterable(topics):
        if whole and same(whole[-1], topic):
            whole[-1].partitions += topic.partitions
        else:
            whole.append(topic)
    return whole


# --- commit ---------------------------------------------------------------------------------------


def offset_commit(
    state: BrokerState, request: wire.OffsetCommitRequest, context: RequestContext
) -> object:
    """A group commits offsets."""
    if _count(request.topics) <= PARTITIONS_AT_ONCE_MAX:
        answer = _commit(state, request, context.version, request.topics)
        return follow(answer, lambda topics: wire.OffsetCommitResponse(topics=topics))
    return _commit_in_parts(state, request, context.version)


def _commit_in_parts(
    state: BrokerState, request: wire.OffsetCommitRequest, version: int
) -> Parts[wire.OffsetCommitResponse | Pending[wire.OffsetCommitResponse]]:
    commit = partial(_commit, state, request, version)
    answers = yield from each(pieces(request.topics), commit)
    return follow(
        gather(answers),
        lambda done: wire.OffsetCommitResponse(
            topics=joined(done, lambda one, other: _name(one) == _name(other))
        ),
    )


def _name(topic: wire.OffsetCommitResponseTopic) -> tuple[str, bytes]:
    return topic.name, topic.topic_id


def _commit(
    state: BrokerState,
    request: wire.OffsetCommitRequest,
    version: int,
    topics: list[wire.OffsetCommitRequestTopic],
) -> list[wire.OffsetCommitResponseTopic] | Pending[list[wire.OffsetCommitResponseTopic]]:
    """Commit the offsets of some topics of a request."""
    committer = CommittingMember(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        knows_epochs=version >= MEMBER_EPOCH_VERSION_MIN,
    )
    offsets: list[NewOffset] = []
    for topic in topics:
        name: str | None = topic.name
        if version >= TOPIC_ID_VERSION_MIN:
            found = state.topics.by_id(topic.topic_id)
            name = None if found is None else found.name
        offsets += [_new_offset(name, partition) for partition in topic.partitions]
    codes = state.groups.offsets.commit(committer, offsets, retention_ms=request.retention_time_ms)
    return follow(codes, partial(_committed, topics))


def _committed(
    topics: list[wire.OffsetCommitRequestTopic], codes: Codes
) -> list[wire.OffsetCommitResponseTopic]:
    code_of_next = iter(codes)
    return [
        wire.OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [
                wire.OffsetCommitResponsePartition(partition.partition_index, next(code_of_next))
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def _new_offset(topic: str | None, partition: CommitPartition) -> NewOffset:
    return NewOffset(
        topic,
        partition.partition_index,
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
    )


def commit_in_transaction(
    state: BrokerState, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    """A group commits offsets that apply when the producer's transaction commits."""
    answer = state.groups.offsets.commit(
        CommittingMember(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        ),
        [
            _new_offset(topic.name, partition)
            for topic in request.topics
            for partition in topic.partitions
        ],
        producer=ProducerIdentity(request.producer_id, request.producer_epoch),
    )
    return follow(answer, partial(transactional_response, request))


def transactional_response(
    request: TxnOffsetCommitRequest, codes: Iterable[ErrorCode]
) -> TxnOffsetCommitResponse:
    """The response with a code for each partition of the request."""
    code_of_next = iter(codes)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(part.partition_index, next(code_of_next))
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# --- fetch ----------------------------------------------------------------------------------------


def offset_fetch(
    state: BrokerState, request: wire.OffsetFetchRequest, context: RequestContext
) -> Parts[wire.OffsetFetchResponse]:
    """The committed offsets of groups; -1 for partitions without one."""
    stable = request.require_stable
    if context.version >= MANY_GROUPS_VERSION_MIN:
        groups = []
        seen: set[str] = set()
        for asked in request.groups:
            if asked.group_id not in seen:  # a duplicate is described once
                seen.add(asked.group_id)
                groups.append((yield from _fetch_group(state, asked, stable, context.version)))
            yield
        return wire.OffsetFetchResponse(groups=groups)
    wanted: Sequence[tuple[str, list[int]]]
    if request.topics is None:
        wanted = list(state.groups.offsets.committed_partitions(request.group_id).items())
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    for name, numbers in wanted:
        found = yield from each(numbers, partial(_find, state, request.group_id, name, stable))
        partitions = [wire.OffsetFetchResponsePartition(*one) for one in found]
        topics.append(wire.OffsetFetchResponseTopic(name, partitions))
        yield
    return wire.OffsetFetchResponse(topics=topics)


def _fetch_group(
    state: BrokerState, asked: wire.OffsetFetchRequestGroup, stable: bool, version: int
) -> Parts[wire.OffsetFetchResponseGroup]:
    group_id = asked.group_id
    refused = state.groups.offsets.refuse_fetch(group_id, asked.member_id, asked.member_epoch)
    if refused is not ErrorCode.NONE:
        return wire.OffsetFetchResponseGroup(group_id, [], refused)
    topics = []
    if asked.topics is None:
        committed = state.groups.offsets.committed_partitions(group_id)
        for name, numbers in committed.items():
            topics.append((yield from _fetch_topic(state, group_id, name, numbers, stable)))
        return wire.OffsetFetchResponseGroup(group_id, topics)
    for wanted in asked.topics:
        name = wanted.name
        if version >= TOPIC_ID_VERSION_MIN:
            topic = state.topics.by_id(wanted.topic_id)
            if topic is None:
                topics.append(_unknown_topic(wanted))
                yield
                continue
            name = topic.name
        numbers = wanted.partition_indexes
        topics.append((yield from _fetch_topic(state, group_id, name, numbers, stable)))
        yield
    return wire.OffsetFetchResponseGroup(group_id, topics)


def _unknown_topic(asked: wire.OffsetFetchRequestTopics) -> wire.OffsetFetchResponseTopics:
    return wire.OffsetFetchResponseTopics(
        topic_id=asked.topic_id,
        partitions=[
            wire.OffsetFetchResponsePartitions(
                number, NO_OFFSET, NO_LEADER_EPOCH, "", ErrorCode.UNKNOWN_TOPIC_ID
            )
            for number in asked.partition_indexes
        ],
    )


def _fetch_topic(
    state: BrokerState, group_id: str, name: str, numbers: list[int], stable: bool
) -> Parts[wire.OffsetFetchResponseTopics]:
    topic = state.topics.get(name)
    found = yield from each(numbers, partial(_find, state, group_id, name, stable))
    return wire.OffsetFetchResponseTopics(
        name,
        topic.id if topic is not None else bytes(16),
        [wire.OffsetFetchResponsePartitions(*one) for one in found],
    )


def _find(
    state: BrokerState, group_id: str, topic: str, stable: bool, number: int
) -> tuple[int, int, int, str, ErrorCode]:
    """The fields of all versions for a partition: number, offset, leader epoch, metadata, code."""
    code = ErrorCode.NONE
    try:
        found = state.groups.offsets.find(group_id, TopicPartition(topic, number), stable=stable)
    except BrokerError as error:
        found, code = None, error.code
    if found is None:
        return number, NO_OFFSET, NO_LEADER_EPOCH, "", code
    return number, found.offset, found.leader_epoch, found.metadata, code


# --- delete ---------------------------------------------------------------------------------------


def offset_delete(
    state: BrokerState, request: wire.OffsetDeleteRequest, context: RequestContext
) -> Parts[wire.OffsetDeleteResponse | Pending[wire.OffsetDeleteResponse]]:
    """Delete committed offsets."""
    delete = partial(_delete, state, request.group_id)
    try:
        if not request.topics:  # the response shows whether the group exists
            delete([])
        answers = yield from each(pieces(request.topics), delete)
    except BrokerError as error:
        return wire.OffsetDeleteResponse(error_code=error.code)
    return follow(
        gather(answers),
        lambda done: wire.OffsetDeleteResponse(
            topics=joined(done, lambda one, other: one.name == other.name)
        ),
    )


def _delete(
    state: BrokerState, group_id: str, topics: list[wire.OffsetDeleteRequestTopic]
) -> list[wire.OffsetDeleteResponseTopic] | Pending[list[wire.OffsetDeleteResponseTopic]]:
    """Delete the offsets of some topics of a request."""
    partitions = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in topics
        for partition in topic.partitions
    ]
    codes = state.groups.offsets.delete(group_id, partitions)
    return follow(codes, partial(_deleted, topics))


def _deleted(
    topics: list[wire.OffsetDeleteRequestTopic], codes: Codes
) -> list[wire.OffsetDeleteResponseTopic]:
    code_of_next = iter(codes)
    return [
        wire.OffsetDeleteResponseTopic(
            topic.name,
            [
                wire.OffsetDeleteResponsePartition(partition.partition_index, next(code_of_next))
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Create the topic of groups before the lock is acquired: this waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.OFFSET_COMMIT: prepare}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.OFFSET_DELETE: offset_delete,
}
