"""DeleteRecords and DescribeLogDirs: the records and sizes of logs."""

from collections.abc import Iterator
from functools import partial

from broker.coordinator.parts import Parts, each
from broker.errors import BrokerError, ErrorCode
from broker.handlers.partitions import REFUSED, error_code_of
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
) -> Parts[DeleteRecordsResponse]:
    """Delete the records before an offset; -1 deletes all."""
    topics = []
    for topic in request.topics:
        done = yield from each(topic.partitions, partial(_delete_before, state, topic.name))
        topics.append(DeleteRecordsTopicResult(topic.name, done))
        yield
    return DeleteRecordsResponse(topics=topics)


def _delete_before(
    state: BrokerState, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = state.partitions.leader(TopicPartition(topic, asked.partition_index))
        start = partition.delete_records_before(
            None if asked.offset == HIGH_WATERMARK else asked.offset
        )
    except REFUSED as error:
        code = error_code_of(error)
        return DeleteRecordsPartitionResult(asked.partition_index, NO_WATERMARK, code)
    return DeleteRecordsPartitionResult(asked.partition_index, start, ErrorCode.NONE)


def describe_log_dirs(
    state: BrokerState, request: DescribeLogDirsRequest, context: RequestContext
) -> Parts[DescribeLogDirsResponse]:
    """The one data directory, with the size of each partition and of the disk."""
    topics: dict[str, DescribeLogDirsTopic] = {}
    seen: set[TopicPartition] = set()
    for topic_partition in _asked_partitions(state, request):
        yield
        log = state.storage.get(topic_partition)
        if log is None or topic_partition in seen:
            continue
        seen.add(topic_partition)  # a partition that is listed twice is described once
        name, number = topic_partition
        topic = topics.setdefault(name, DescribeLogDirsTopic(name))
        topic.partitions.append(DescribeLogDirsPartition(number, log.size_bytes, 0, False))
    bytes_total, bytes_free = state.storage.space()
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                ErrorCode.NONE,
                state.storage.path,
                list(topics.values()),
                bytes_total,
                bytes_free,
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
