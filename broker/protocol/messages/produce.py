"""Produce requests."""

from broker.model import Records
from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class PartitionProduceData:
    """Part of ProduceRequest."""

    index: int = wire.int32()
    records: Records | None = wire.records(nullable="0+")


@wire.part
class TopicProduceData:
    """Part of ProduceRequest."""

    name: str = wire.string("0-12")
    topic_id: bytes = wire.uuid("13+")
    partition_data: list[PartitionProduceData] = wire.array(PartitionProduceData)


@wire.request(ApiKey.PRODUCE, "3-13", flexible=9)
class ProduceRequest:
    """Produce request."""

    transactional_id: str | None = wire.string("3+", default=None, nullable="3+")
    acks: int = wire.int16()
    timeout_ms: int = wire.int32()
    topic_data: list[TopicProduceData] = wire.array(TopicProduceData)


@wire.part
class BatchIndexAndErrorMessage:
    """Part of ProduceResponse."""

    batch_index: int = wire.int32("8+")
    batch_index_error_message: str | None = wire.string("8+", default=None, nullable="8+")


@wire.part
class LeaderIdAndEpoch:
    """Part of ProduceResponse."""

    leader_id: int = wire.int32("10+", default=-1)
    leader_epoch: int = wire.int32("10+", default=-1)


@wire.part
class PartitionProduceResponse:
    """Part of ProduceResponse."""

    index: int = wire.int32()
    error_code: int = wire.int16()
    base_offset: int = wire.int64()
    log_append_time_ms: int = wire.int64("2+", default=-1)
    log_start_offset: int = wire.int64("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = wire.array(BatchIndexAndErrorMessage, "8+")
    error_message: str | None = wire.string("8+", default=None, nullable="8+")
    current_leader: LeaderIdAndEpoch = wire.struct(LeaderIdAndEpoch, "10+", tag=0)


@wire.part
class TopicProduceResponse:
    """Part of ProduceResponse."""

    name: str = wire.string("0-12")
    topic_id: bytes = wire.uuid("13+")
    partition_responses: list[PartitionProduceResponse] = wire.array(PartitionProduceResponse)


@wire.part
class NodeEndpoint:
    """Part of ProduceResponse."""

    node_id: int = wire.int32("10+")
    host: str = wire.string("10+")
    port: int = wire.int32("10+")
    rack: str | None = wire.string("10+", default=None, nullable="10+")


@wire.response(ApiKey.PRODUCE, "3-13", flexible=9)
class ProduceResponse:
    """Produce response."""

    responses: list[TopicProduceResponse] = wire.array(TopicProduceResponse)
    throttle_time_ms: int = wire.int32("1+")
    node_endpoints: list[NodeEndpoint] = wire.array(NodeEndpoint, "10+", tag=0)
