"""ListOffsets and OffsetForLeaderEpoch: where in a partition's log something is."""

import logging
from dataclasses import dataclass

from broker.errors import BrokerError, ErrorCode
from broker.handlers.partitions import check_leader_epoch, error_code_of, find_log
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import LEADER_EPOCH, TopicPartition
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
from broker.storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)

READ_COMMITTED = 1

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The first version of the request in which a special timestamp may be asked for.
VERSION_MIN = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@dataclass(frozen=True, slots=True)
class _Found:
    offset: int = -1
    timestamp_ms: int = -1
    leader_epoch: int = -1


NOT_FOUND = _Found()


def list_offsets(
    state: BrokerState, request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse:
    """The first offset at or after a time, or a special one, per partition."""
    committed = request.isolation_level == READ_COMMITTED

    def answer(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        try:
            if asked.timestamp < 0 and context.version < VERSION_MIN.get(asked.timestamp, 999):
                raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
            log = find_log(state, TopicPartition(topic, asked.partition_index))
            check_leader_epoch(asked.current_leader_epoch)
            found = _find(log, asked.timestamp, committed=committed)
        except Exception as error:
            if not isinstance(error, BrokerError):
                logger.error("no offsets of %s-%d", topic, asked.partition_index, exc_info=error)
            return ListOffsetsPartitionResponse(asked.partition_index, error_code_of(error))
        return ListOffsetsPartitionResponse(
            asked.partition_index,
            ErrorCode.NONE,
            found.timestamp_ms,
            found.offset,
            found.leader_epoch,
        )

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name, [answer(topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _find(log: PartitionLog, timestamp_ms: int, *, committed: bool) -> _Found:
    limit = log.last_stable_offset if committed else log.high_watermark
    if timestamp_ms == LATEST:
        return _Found(limit, leader_epoch=LEADER_EPOCH)
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return _Found(log.start_offset, leader_epoch=LEADER_EPOCH)
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND  # nothing is ever moved to other storage
    if timestamp_ms == MAX_TIMESTAMP:
        place = log.max_timestamp()
    else:
        place = log.offset_for_timestamp(timestamp_ms)
    if place is None or place[0] >= limit:
        return NOT_FOUND
    return _Found(place[0], place[1], LEADER_EPOCH)


def offset_for_leader_epoch(
    state: BrokerState, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Where a leader's epoch ended; there is one epoch, and it lasts."""

    def answer(
        topic: str, asked: OffsetForLeaderPartition
    ) -> OffsetForLeaderEpochResponseEpochEndOffset:
        found = OffsetForLeaderEpochResponseEpochEndOffset(partition=asked.partition)
        try:
            log = find_log(state, TopicPartition(topic, asked.partition))
            check_leader_epoch(asked.current_leader_epoch)
        except BrokerError as error:
            found.error_code = error.code
            return found
        if asked.leader_epoch == LEADER_EPOCH:
            found.leader_epoch = LEADER_EPOCH
            found.end_offset = log.end_offset
        return found

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic, [answer(topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
}
