"""Committed offsets of groups."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class OffsetCommitRequestPartition:
    """Part of OffsetCommitRequest."""

    partition_index: int = wire.int32()
    committed_offset: int = wire.int64()
    committed_leader_epoch: int = wire.int32("6+", default=-1)
    committed_metadata: str | None = wire.string(nullable="0+")


@wire.part
class OffsetCommitRequestTopic:
    """Part of OffsetCommitRequest."""

    name: str = wire.string("0-9")
    topic_id: bytes = wire.uuid("10+")
    partitions: list[OffsetCommitRequestPartition] = wire.array(OffsetCommitRequestPartition)


@wire.request(ApiKey.OFFSET_COMMIT, "2-10", flexible=8)
class OffsetCommitRequest:
    """OffsetCommit request."""

    group_id: str = wire.string()
    generation_id_or_member_epoch: int = wire.int32("1+", default=-1)
    member_id: str = wire.string("1+")
    group_instance_id: str | None = wire.string("7+", default=None, nullable="7+")
    retention_time_ms: int = wire.int64("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = wire.array(OffsetCommitRequestTopic)


@wire.part
class OffsetCommitResponsePartition:
    """Part of OffsetCommitResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()


@wire.part
class OffsetCommitResponseTopic:
    """Part of OffsetCommitResponse."""

    name: str = wire.string("0-9")
    topic_id: bytes = wire.uuid("10+")
    partitions: list[OffsetCommitResponsePartition] = wire.array(OffsetCommitResponsePartition)


@wire.response(ApiKey.OFFSET_COMMIT, "2-10", flexible=8)
class OffsetCommitResponse:
    """OffsetCommit response."""

    throttle_time_ms: int = wire.int32("3+")
    topics: list[OffsetCommitResponseTopic] = wire.array(OffsetCommitResponseTopic)


@wire.part
class OffsetFetchRequestTopic:
    """Part of OffsetFetchRequest."""

    name: str = wire.string("0-7")
    partition_indexes: list[int] = wire.array("int32", "0-7")


@wire.part
class OffsetFetchRequestTopics:
    """Part of OffsetFetchRequest."""

    name: str = wire.string("8-9")
    topic_id: bytes = wire.uuid("10+")
    partition_indexes: list[int] = wire.array("int32", "8+")


@wire.part
class OffsetFetchRequestGroup:
    """Part of OffsetFetchRequest."""

    group_id: str = wire.string("8+")
    member_id: str | None = wire.string("9+", default=None, nullable="9+")
    member_epoch: int = wire.int32("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = wire.array(
        OffsetFetchRequestTopics, "8+", nullable="8+"
    )


@wire.request(ApiKey.OFFSET_FETCH, "1-10", flexible=6)
class OffsetFetchRequest:
    """OffsetFetch request."""

    group_id: str = wire.string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = wire.array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = wire.array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = wire.boolean("7+")


@wire.part
class OffsetFetchResponsePartition:
    """Part of OffsetFetchResponse."""

    partition_index: int = wire.int32("0-7")
    committed_offset: int = wire.int64("0-7")
    committed_leader_epoch: int = wire.int32("5-7", default=-1)
    metadata: str | None = wire.string("0-7", nullable="0-7")
    error_code: int = wire.int16("0-7")


@wire.part
class OffsetFetchResponseTopic:
    """Part of OffsetFetchResponse."""

    name: str = wire.string("0-7")
    partitions: list[OffsetFetchResponsePartition] = wire.array(OffsetFetchResponsePartition, "0-7")


@wire.part
class OffsetFetchResponsePartitions:
    """Part of OffsetFetchResponse."""

    partition_index: int = wire.int32("8+")
    committed_offset: int = wire.int64("8+")
    committed_leader_epoch: int = wire.int32("8+", default=-1)
    metadata: str | None = wire.string("8+", nullable="8+")
    error_code: int = wire.int16("8+")


@wire.part
class OffsetFetchResponseTopics:
    """Part of OffsetFetchResponse."""

    name: str = wire.string("8-9")
    topic_id: bytes = wire.uuid("10+")
    partitions: list[OffsetFetchResponsePartitions] = wire.array(
        OffsetFetchResponsePartitions, "8+"
    )


@wire.part
class OffsetFetchResponseGroup:
    """Part of OffsetFetchResponse."""

    group_id: str = wire.string("8+")
    topics: list[OffsetFetchResponseTopics] = wire.array(OffsetFetchResponseTopics, "8+")
    error_code: int = wire.int16("8+")


@wire.response(ApiKey.OFFSET_FETCH, "1-10", flexible=6)
class OffsetFetchResponse:
    """OffsetFetch response."""

    throttle_time_ms: int = wire.int32("3+")
    topics: list[OffsetFetchResponseTopic] = wire.array(OffsetFetchResponseTopic, "0-7")
    error_code: int = wire.int16("2-7")
    groups: list[OffsetFetchResponseGroup] = wire.array(OffsetFetchResponseGroup, "8+")


@wire.part
class OffsetDeleteRequestPartition:
    """Part of OffsetDeleteRequest."""

    partition_index: int = wire.int32()


@wire.part
class OffsetDeleteRequestTopic:
    """Part of OffsetDeleteRequest."""

    name: str = wire.string()
    partitions: list[OffsetDeleteRequestPartition] = wire.array(OffsetDeleteRequestPartition)


@wire.request(ApiKey.OFFSET_DELETE, "0")
class OffsetDeleteRequest:
    """OffsetDelete request."""

    group_id: str = wire.string()
    topics: list[OffsetDeleteRequestTopic] = wire.array(OffsetDeleteRequestTopic)


@wire.part
class OffsetDeleteResponsePartition:
    """Part of OffsetDeleteResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()


@wire.part
class OffsetDeleteResponseTopic:
    """Part of OffsetDeleteResponse."""

    name: str = wire.string()
    partitions: list[OffsetDeleteResponsePartition] = wire.array(OffsetDeleteResponsePartition)


@wire.response(ApiKey.OFFSET_DELETE, "0")
class OffsetDeleteResponse:
    """OffsetDelete response."""

    error_code: int = wire.int16()
    throttle_time_ms: int = wire.int32()
    topics: list[OffsetDeleteResponseTopic] = wire.array(OffsetDeleteResponseTopic)
