"""Committed offsets; the coordinator does the work, for large requests bit by bit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from broker.coordinator.parts import Parts, batched
from broker.handlers.answers import follow, gather
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import GROUP_TOPIC
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import offsets as wire

PARTITIONS_AT_ONCE_MAX = 500


class _Topic(Protocol):
    """A topic of a request or of an answer."""

    partitions: list[Any]  # Any: each message has its own


TopicT = TypeVar("TopicT", bound=_Topic)


def _count(topics: Sequence[_Topic]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def pieces(topics: Sequence[TopicT]) -> Iterator[list[TopicT]]:
    """The topics of a request in runs with few partitions; one with many is in several of them."""
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


def joined(topics: list[TopicT], same: Callable[[TopicT, TopicT], bool]) -> list[TopicT]:
    """The topics of an answer: what is in several pieces is one topic again."""
    whole: list[TopicT] = []
    for topic in topics:
        if whole and same(whole[-1], topic):
            whole[-1].partitions += topic.partitions
        else:
            whole.append(topic)
    return whole


def offset_commit(
    state: BrokerState, request: wire.OffsetCommitRequest, context: RequestContext
) -> object:
    """A group commits offsets."""
    if _count(request.topics) <= PARTITIONS_AT_ONCE_MAX:
        return state.groups.commit_offsets(request, context.version)
    return _commit_in_parts(state, request, context.version)


def _commit_in_parts(
    state: BrokerState, request: wire.OffsetCommitRequest, version: int
) -> Parts[wire.OffsetCommitResponse | Pending[wire.OffsetCommitResponse]]:
    answers = []
    for topics in pieces(request.topics):
        answers.append(state.groups.commit_offsets(replace(request, topics=topics), version))
        yield
    return follow(
        gather(answers),
        lambda done: wire.OffsetCommitResponse(
            topics=joined([topic for answer in done for topic in answer.topics], _same_topic)
        ),
    )


def _same_topic(one: wire.OffsetCommitResponseTopic, other: wire.OffsetCommitResponseTopic) -> bool:
    return (one.name, one.topic_id) == (other.name, other.topic_id)


def offset_fetch(
    state: BrokerState, request: wire.OffsetFetchRequest, context: RequestContext
) -> Parts[wire.OffsetFetchResponse]:
    """What groups have committed."""
    return state.groups.fetch_offsets_in_parts(request, context.version)


def offset_delete(
    state: BrokerState, request: wire.OffsetDeleteRequest, context: RequestContext
) -> Parts[wire.OffsetDeleteResponse | Pending[wire.OffsetDeleteResponse]]:
    """Forget committed offsets."""
    answers = []
    for topics in pieces(request.topics):
        answers.append(state.groups.delete_offsets(replace(request, topics=topics)))
        yield
    if not answers:
        return state.groups.delete_offsets(request)

    def together(done: list[wire.OffsetDeleteResponse]) -> wire.OffsetDeleteResponse:
        failed = next((answer for answer in done if answer.error_code), None)
        if failed is not None:
            return failed
        topics = [topic for answer in done for topic in answer.topics]
        return wire.OffsetDeleteResponse(
            topics=joined(topics, lambda one, other: one.name == other.name)
        )

    return follow(gather(answers), together)


def prepare(state: BrokerState, request: object, context: RequestContext) -> None:
    """Make the topic of groups, before the lock is taken: that waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.OFFSET_COMMIT: prepare}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.OFFSET_DELETE: offset_delete,
}
