"""Fetch requests, and lookups of offsets."""

from broker.model import Records
from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class ReplicaState:
    """Part of FetchRequest."""

    replica_id: int = wire.int32("15+", default=-1)
    replica_epoch: int = wire.int64("15+", default=-1)


@wire.part
class FetchPartition:
    """Part of FetchRequest."""

    partition: int = wire.int32()
    current_leader_epoch: int = wire.int32("9+", default=-1)
    fetch_offset: int = wire.int64()
    last_fetched_epoch: int = wire.int32("12+", default=-1)
    log_start_offset: int = wire.int64("5+", default=-1)
    partition_max_bytes: int = wire.int32()
    replica_directory_id: bytes = wire.uuid("17+", tag=0)
    high_watermark: int = wire.int64("18+", default=9223372036854775807, tag=1)


@wire.part
class FetchTopic:
    """Part of FetchRequest."""

    topic: str = wire.string("0-12")
    topic_id: bytes = wire.uuid("13+")
    partitions: list[FetchPartition] = wire.array(FetchPartition)


@wire.part
class ForgottenTopic:
    """Part of FetchRequest."""

    topic: str = wire.string("7-12")
    topic_id: bytes = wire.uuid("13+")
    partitions: list[int] = wire.array("int32", "7+")


@wire.request(ApiKey.FETCH, "4-18", flexible=12)
class FetchRequest:
    """Fetch request."""

    cluster_id: str | None = wire.string("12+", default=None, nullable="12+", tag=0)
    replica_id: int = wire.int32("0-14", default=-1)
    replica_state: ReplicaState = wire.struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = wire.int32()
    min_bytes: int = wire.int32()
    max_bytes: int = wire.int32("3+", default=2147483647)
    isolation_level: int = wire.int8("4+")
    session_id: int = wire.int32("7+")
    session_epoch: int = wire.int32("7+", default=-1)
    topics: list[FetchTopic] = wire.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = wire.array(ForgottenTopic, "7+")
    rack_id: str = wire.string("11+", default="")


@wire.part
class EpochEndOffset:
    """Part of FetchResponse."""

    epoch: int = wire.int32("12+", default=-1)
    end_offset: int = wire.int64("12+", default=-1)


@wire.part
class LeaderIdAndEpoch:
    """Part of FetchResponse."""

    leader_id: int = wire.int32("12+", default=-1)
    leader_epoch: int = wire.int32("12+", default=-1)


@wire.part
class SnapshotId:
    """Part of FetchResponse."""

    end_offset: int = wire.int64(default=-1)
    epoch: int = wire.int32(default=-1)


@wire.part
class AbortedTransaction:
    """Part of FetchResponse."""

    producer_id: int = wire.int64("4+")
    first_offset: int = wire.int64("4+")


@wire.part
class PartitionData:
    """Part of FetchResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()
    high_watermark: int = wire.int64()
    last_stable_offset: int = wire.int64("4+", default=-1)
    log_start_offset: int = wire.int64("5+", default=-1)
    diverging_epoch: EpochEndOffset = wire.struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = wire.struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = wire.struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = wire.array(
        AbortedTransaction, "4+", nullable="4+"
    )
    preferred_read_replica: int = wire.int32("11+", default=-1)
    records: Records | None = wire.records(nullable="0+")


@wire.part
class FetchableTopicResponse:
    """Part of FetchResponse."""

    topic: str = wire.string("0-12")
    topic_id: bytes = wire.uuid("13+")
    partitions: list[PartitionData] = wire.array(PartitionData)


@wire.part
class NodeEndpoint:
    """Part of FetchResponse."""

    node_id: int = wire.int32("16+")
    host: str = wire.string("16+")
    port: int = wire.int32("16+")
    rack: str | None = wire.string("16+", default=None, nullable="16+")


@wire.response(ApiKey.FETCH, "4-18", flexible=12)
class FetchResponse:
    """Fetch response."""

    throttle_time_ms: int = wire.int32("1+")
    error_code: int = wire.int16("7+")
    session_id: int = wire.int32("7+")
    responses: list[FetchableTopicResponse] = wire.array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = wire.array(NodeEndpoint, "16+", tag=0)


@wire.part
class ListOffsetsPartition:
    """Part of ListOffsetsRequest."""

    partition_index: int = wire.int32()
    current_leader_epoch: int = wire.int32("4+", default=-1)
    timestamp: int = wire.int64()


@wire.part
class ListOffsetsTopic:
    """Part of ListOffsetsRequest."""

    name: str = wire.string()
    partitions: list[ListOffsetsPartition] = wire.array(ListOffsetsPartition)


@wire.request(ApiKey.LIST_OFFSETS, "1-11", flexible=6)
class ListOffsetsRequest:
    """ListOffsets request."""

    replica_id: int = wire.int32()
    isolation_level: int = wire.int8("2+")
    topics: list[ListOffsetsTopic] = wire.array(ListOffsetsTopic)
    timeout_ms: int = wire.int32("10+")


@wire.part
class ListOffsetsPartitionResponse:
    """Part of ListOffsetsResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()
    timestamp: int = wire.int64("1+", default=-1)
    offset: int = wire.int64("1+", default=-1)
    leader_epoch: int = wire.int32("4+", default=-1)


@wire.part
class ListOffsetsTopicResponse:
    """Part of ListOffsetsResponse."""

    name: str = wire.string()
    partitions: list[ListOffsetsPartitionResponse] = wire.array(ListOffsetsPartitionResponse)


@wire.response(ApiKey.LIST_OFFSETS, "1-11", flexible=6)
class ListOffsetsResponse:
    """ListOffsets response."""

    throttle_time_ms: int = wire.int32("2+")
    topics: list[ListOffsetsTopicResponse] = wire.array(ListOffsetsTopicResponse)


@wire.part
class OffsetForLeaderPartition:
    """Part of OffsetForLeaderEpochRequest."""

    partition: int = wire.int32()
    current_leader_epoch: int = wire.int32("2+", default=-1)
    leader_epoch: int = wire.int32()


@wire.part
class OffsetForLeaderTopic:
    """Part of OffsetForLeaderEpochRequest."""

    topic: str = wire.string()
    partitions: list[OffsetForLeaderPartition] = wire.array(OffsetForLeaderPartition)


@wire.request(ApiKey.OFFSET_FOR_LEADER_EPOCH, "2-4", flexible=4)
class OffsetForLeaderEpochRequest:
    """OffsetForLeaderEpoch request."""

    replica_id: int = wire.int32("3+", default=-2)
    topics: list[OffsetForLeaderTopic] = wire.array(OffsetForLeaderTopic)


@wire.part
class OffsetForLeaderEpochResponseEpochEndOffset:
    """Part of OffsetForLeaderEpochResponse."""

    error_code: int = wire.int16()
    partition: int = wire.int32()
    leader_epoch: int = wire.int32("1+", default=-1)
    end_offset: int = wire.int64(default=-1)


@wire.part
class OffsetForLeaderTopicResult:
    """Part of OffsetForLeaderEpochResponse."""

    topic: str = wire.string()
    partitions: list[OffsetForLeaderEpochResponseEpochEndOffset] = wire.array(
        OffsetForLeaderEpochResponseEpochEndOffset
    )


@wire.response(ApiKey.OFFSET_FOR_LEADER_EPOCH, "2-4", flexible=4)
class OffsetForLeaderEpochResponse:
    """OffsetForLeaderEpoch response."""

    throttle_time_ms: int = wire.int32("2+")
    topics: list[OffsetForLeaderTopicResult] = wire.array(OffsetForLeaderTopicResult)
