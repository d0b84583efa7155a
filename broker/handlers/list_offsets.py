"""ListOffsets and OffsetForLeaderEpoch: offsets by time and by leader epoch."""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from broker.coordinator.partition import Partition, RecordPosition
from broker.coordinator.parts import Parts, each
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.partitions import error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from broker.storage.segment import Segment

R = TypeVar("R")

logger = logging.getLogger(__name__)

READ_COMMITTED = 1
# Limits of one hold of the broker's lock: each lookup may read an index of megabytes.
LOOKUPS_AT_ONCE_MAX = 4
SEGMENTS_AT_ONCE_MAX = 100

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The first version that supports each special timestamp.
VERSION_MIN = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


NOT_FOUND = RecordPosition(-1, -1, -1)


def list_offsets(
    state: BrokerState, request: ListOffsetsRequest, context: RequestContext
) -> Parts[ListOffsetsResponse | Pending[ListOffsetsResponse]]:
    """The first offset at or after a time, or a special offset, per partition.

    Lookups by time read files: if they are many, another thread reads them in steps.
    """
    lookups = 0
    unread: list[Segment] = []
    for topic in request.topics:
        for asked in topic.partitions:
            if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
                lookups += 1
                unread += _unread_segments(state, TopicPartition(topic.name, asked.partition_index))
            yield
    if lookups > LOOKUPS_AT_ONCE_MAX or len(unread) > SEGMENTS_AT_ONCE_MAX:
        return _look_up_in_background(state, request, context, unread)
    topics = []
    for topic in request.topics:
        answer = partial(_answer, state, request, context, topic.name)
        topics.append(
            ListOffsetsTopicResponse(topic.name, (yield from each(topic.partitions, answer)))
        )
        yield
    return ListOffsetsResponse(topics=topics)


def _unread_segments(state: BrokerState, partition: TopicPartition) -> list[Segment]:
    """Segments of a partition whose files must be read to look up a time."""
    found = state.partitions.get(partition)
    return [] if found is None else found.unread_segments()


def _look_up_in_background(
    state: BrokerState,
    request: ListOffsetsRequest,
    context: RequestContext,
    unread: list[Segment],
) -> Pending[ListOffsetsResponse]:
    pending: Pending[ListOffsetsResponse] = Pending()

    def steps() -> Iterator[Callable[[], object]]:
        for segment in unread:
            yield partial(_read_segment, segment)
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers: list[ListOffsetsPartitionResponse] = []
            response.topics.append(ListOffsetsTopicResponse(topic.name, answers))
            answer = partial(_answer, state, request, context, topic.name)
            for asked in topic.partitions:
                yield partial(_add, answers, partial(answer, asked))
        yield lambda: pending.complete(response)

    state.storage.in_steps(steps())
    return pending


def _add(answers: list[R], make: Callable[[], R]) -> None:
    answers.append(make())


def _read_segment(segment: Segment) -> None:
    with suppress(OSError, StorageError):  # removed meanwhile, or read again later
        _ = segment.max_timestamp


def _answer(
    state: BrokerState,
    request: ListOffsetsRequest,
    context: RequestContext,
    topic: str,
    asked: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    committed = request.isolation_level == READ_COMMITTED
    try:
        if asked.timestamp < 0 and context.version < VERSION_MIN.get(asked.timestamp, 999):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        partition = state.partitions.leader(
            TopicPartition(topic, asked.partition_index), asked.current_leader_epoch
        )
        found = _find(partition, asked.timestamp, committed=committed)
    except Exception as error:
        if not isinstance(error, BrokerError):
            logger.error(
                "cannot list offsets of %s-%d", topic, asked.partition_index, exc_info=error
            )
        return ListOffsetsPartitionResponse(asked.partition_index, error_code_of(error))
    return ListOffsetsPartitionResponse(
        asked.partition_index,
        ErrorCode.NONE,
        found.timestamp_ms,
        found.offset,
        found.leader_epoch,
    )


def _find(partition: Partition, timestamp_ms: int, *, committed: bool) -> RecordPosition:
    if timestamp_ms == LATEST:
        return partition.last_place(committed=committed)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return partition.first_place()
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND  # there is no remote storage
    if timestamp_ms == MAX_TIMESTAMP:
        return partition.place_of_max_timestamp(committed=committed) or NOT_FOUND
    return partition.place_of_time(timestamp_ms, committed=committed) or NOT_FOUND


def offset_for_leader_epoch(
    state: BrokerState, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Parts[OffsetForLeaderEpochResponse]:
    """The end offset of a leader epoch: records of a reader beyond it are no longer in the log."""

    def answer(
        topic: str, asked: OffsetForLeaderPartition
    ) -> OffsetForLeaderEpochResponseEpochEndOffset:
        found = OffsetForLeaderEpochResponseEpochEndOffset(partition=asked.partition)
        try:
            partition = state.partitions.leader(
                TopicPartition(topic, asked.partition), asked.current_leader_epoch
            )
        except BrokerError as error:
            found.error_code = error.code
            return found
        end = partition.end_of_epoch(asked.leader_epoch)
        if end is not None:
            found.leader_epoch, found.end_offset = end
        return found

    topics = []
    for topic in request.topics:
        found = yield from each(topic.partitions, partial(answer, topic.topic))
        topics.append(OffsetForLeaderTopicResult(topic.topic, found))
        yield
    return OffsetForLeaderEpochResponse(topics=topics)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
}
