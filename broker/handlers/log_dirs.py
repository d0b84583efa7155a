"""DeleteRecords and DescribeLogDirs: what the logs hold."""

import os
from collections.abc import Iterator

from broker.errors import BrokerError, ErrorCode
from broker.handlers.partitions import REFUSED, error_code_of, find_log
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import INTERNAL_TOPICS, TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.configs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
NO_WATERMARK = -1


def delete_records(
    state: BrokerState, request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    """Forget what is before an offset; -1 is all there is."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name, [_delete_before(state, topic.name, part) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete_before(
    state: BrokerState, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        log = find_log(state, TopicPartition(topic, asked.partition_index))
        if not log.config.deletes:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        offset = log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset < 0 or offset > log.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        start = log.delete_records_before(offset)
    except REFUSED as error:
        code = error_code_of(error)
        return DeleteRecordsPartitionResult(asked.partition_index, NO_WATERMARK, code)
    return DeleteRecordsPartitionResult(asked.partition_index, start, ErrorCode.NONE)


def describe_log_dirs(
    state: BrokerState, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    """The one data directory, with the size of each partition and of the disk."""
    topics: dict[str, DescribeLogDirsTopic] = {}
    for topic_partition in _asked_partitions(state, request):
        log = state.storage.get(topic_partition)
        if log is None:
            continue
        name, number = topic_partition
        topic = topics.setdefault(name, DescribeLogDirsTopic(name))
        topic.partitions.append(DescribeLogDirsPartition(number, log.size_bytes, 0, False))
    directory = os.path.abspath(state.config.data_directory)
    disk = os.statvfs(directory)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                ErrorCode.NONE,
                directory,
                list(topics.values()),
                disk.f_frsize * disk.f_blocks,
                disk.f_frsize * disk.f_bavail,
            )
        ]
    )


def _asked_partitions(
    state: BrokerState, request: DescribeLogDirsRequest
) -> Iterator[TopicPartition]:
    if request.topics is None:
        for topic in state.topics.topics():
            yield from topic.partitions
        return
    for asked in request.topics:
        for number in asked.partitions:
            yield TopicPartition(asked.topic, number)


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
}
