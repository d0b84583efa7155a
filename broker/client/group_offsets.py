"""Committed offsets and offsets by time: the requests, and the results of each partition."""

from collections.abc import Iterable, Mapping

from broker.client.answers import code_of
from broker.client.api import FoundOffset, GroupMetadata, OffsetAndMetadata
from broker.client.consumer_protocol import group_by_topic
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from broker.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

VERSION_WITH_NAMES = 9  # later versions of commit and fetch know topics by id only
CONSUMER = -1


def commit_request(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> OffsetCommitRequest:
    """Commit as a member of the group, or without generation for a group without members."""
    return OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    _commit_partition(number, offsets[TopicPartition(topic, number)])
                    for number in numbers
                ],
            )
            for topic, numbers in group_by_topic(offsets).items()
        ],
    )


def _commit_partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def committed_codes(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """The error code of each partition in a commit response."""
    return {
        TopicPartition(topic.name, partition.partition_index): code_of(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def offset_fetch_request(
    group: GroupMetadata, partitions: Iterable[TopicPartition] | None
) -> OffsetFetchRequest:
    """Fetch committed offsets (None: all of the group); the fields of all versions are set.

    The broker waits for offsets in open transactions.
    """
    wanted = None if partitions is None else group_by_topic(partitions)
    return OffsetFetchRequest(
        group_id=group.group_id,
        topics=None
        if wanted is None
        else [OffsetFetchRequestTopic(name, numbers) for name, numbers in wanted.items()],
        groups=[
            OffsetFetchRequestGroup(
                group_id=group.group_id,
                topics=None
                if wanted is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                    for name, numbers in wanted.items()
                ],
            )
        ],
        require_stable=True,
    )


def fetched_error(response: OffsetFetchResponse) -> int:
    """The error of the whole response."""
    return response.groups[0].error_code if response.groups else response.error_code


def fetched_offsets(
    response: OffsetFetchResponse,
) -> dict[TopicPartition, OffsetAndMetadata | ErrorCode | None]:
    """The committed offset of each partition, its error, or None when there is no commit."""
    found: dict[TopicPartition, OffsetAndMetadata | ErrorCode | None] = {}
    topics = response.groups[0].topics if response.groups else response.topics
    for topic in topics:
        for item in topic.partitions:
            tp = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                found[tp] = code_of(item.error_code)
            elif item.committed_offset < 0:
                found[tp] = None
            else:
                found[tp] = OffsetAndMetadata(
                    item.committed_offset, item.committed_leader_epoch, item.metadata or ""
                )
    return found


def list_offsets_request(
    timestamps: Mapping[TopicPartition, int], *, isolation: int, timeout_ms: int
) -> ListOffsetsRequest:
    """Request offsets by time from the leader of these partitions."""
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=number,
                        timestamp=timestamps[TopicPartition(topic, number)],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in group_by_topic(timestamps).items()
        ],
        timeout_ms=timeout_ms,
    )


def listed_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, FoundOffset | ErrorCode]:
    """The offset of each partition, or its error."""
    return {
        TopicPartition(topic.name, item.partition_index): code_of(item.error_code)
        if item.error_code
        else FoundOffset(item.offset, item.timestamp, item.leader_epoch)
        for topic in response.topics
        for item in topic.partitions
    }
