"""Producer ids and transactions."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.request(ApiKey.INIT_PRODUCER_ID, "0-5", flexible=2)
class InitProducerIdRequest:
    """InitProducerId request."""

    transactional_id: str | None = wire.string(nullable="0+")
    transaction_timeout_ms: int = wire.int32()
    producer_id: int = wire.int64("3+", default=-1)
    producer_epoch: int = wire.int16("3+", default=-1)


@wire.response(ApiKey.INIT_PRODUCER_ID, "0-5", flexible=2)
class InitProducerIdResponse:
    """InitProducerId response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    producer_id: int = wire.int64(default=-1)
    producer_epoch: int = wire.int16()


@wire.part
class AddPartitionsToTxnTopic:
    """Part of AddPartitionsToTxnRequest."""

    name: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.part
class AddPartitionsToTxnTransaction:
    """Part of AddPartitionsToTxnRequest."""

    transactional_id: str = wire.string("4+")
    producer_id: int = wire.int64("4+")
    producer_epoch: int = wire.int16("4+")
    verify_only: bool = wire.boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = wire.array(AddPartitionsToTxnTopic, "4+")


@wire.request(ApiKey.ADD_PARTITIONS_TO_TXN, "0-5", flexible=3)
class AddPartitionsToTxnRequest:
    """AddPartitionsToTxn request."""

    transactions: list[AddPartitionsToTxnTransaction] = wire.array(
        AddPartitionsToTxnTransaction, "4+"
    )
    v3_and_below_transactional_id: str = wire.string("0-3")
    v3_and_below_producer_id: int = wire.int64("0-3")
    v3_and_below_producer_epoch: int = wire.int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire.array(AddPartitionsToTxnTopic, "0-3")


@wire.part
class AddPartitionsToTxnPartitionResult:
    """Part of AddPartitionsToTxnResponse."""

    partition_index: int = wire.int32()
    partition_error_code: int = wire.int16()


@wire.part
class AddPartitionsToTxnTopicResult:
    """Part of AddPartitionsToTxnResponse."""

    name: str = wire.string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire.array(
        AddPartitionsToTxnPartitionResult
    )


@wire.part
class AddPartitionsToTxnResult:
    """Part of AddPartitionsToTxnResponse."""

    transactional_id: str = wire.string("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = wire.array(
        AddPartitionsToTxnTopicResult, "4+"
    )


@wire.response(ApiKey.ADD_PARTITIONS_TO_TXN, "0-5", flexible=3)
class AddPartitionsToTxnResponse:
    """AddPartitionsToTxn response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16("4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = wire.array(
        AddPartitionsToTxnResult, "4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire.array(
        AddPartitionsToTxnTopicResult, "0-3"
    )


@wire.request(ApiKey.ADD_OFFSETS_TO_TXN, "0-4", flexible=3)
class AddOffsetsToTxnRequest:
    """AddOffsetsToTxn request."""

    transactional_id: str = wire.string()
    producer_id: int = wire.int64()
    producer_epoch: int = wire.int16()
    group_id: str = wire.string()


@wire.response(ApiKey.ADD_OFFSETS_TO_TXN, "0-4", flexible=3)
class AddOffsetsToTxnResponse:
    """AddOffsetsToTxn response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()


@wire.request(ApiKey.END_TXN, "0-5", flexible=3)
class EndTxnRequest:
    """EndTxn request."""

    transactional_id: str = wire.string()
    producer_id: int = wire.int64()
    producer_epoch: int = wire.int16()
    committed: bool = wire.boolean()


@wire.response(ApiKey.END_TXN, "0-5", flexible=3)
class EndTxnResponse:
    """EndTxn response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    producer_id: int = wire.int64("5+", default=-1)
    producer_epoch: int = wire.int16("5+", default=-1)


@wire.part
class TxnOffsetCommitRequestPartition:
    """Part of TxnOffsetCommitRequest."""

    partition_index: int = wire.int32()
    committed_offset: int = wire.int64()
    committed_leader_epoch: int = wire.int32("2+", default=-1)
    committed_metadata: str | None = wire.string(nullable="0+")


@wire.part
class TxnOffsetCommitRequestTopic:
    """Part of TxnOffsetCommitRequest."""

    name: str = wire.string()
    partitions: list[TxnOffsetCommitRequestPartition] = wire.array(TxnOffsetCommitRequestPartition)


@wire.request(ApiKey.TXN_OFFSET_COMMIT, "0-5", flexible=3)
class TxnOffsetCommitRequest:
    """TxnOffsetCommit request."""

    transactional_id: str = wire.string()
    group_id: str = wire.string()
    producer_id: int = wire.int64()
    producer_epoch: int = wire.int16()
    generation_id: int = wire.int32("3+", default=-1)
    member_id: str = wire.string("3+", default="")
    group_instance_id: str | None = wire.string("3+", default=None, nullable="3+")
    topics: list[TxnOffsetCommitRequestTopic] = wire.array(TxnOffsetCommitRequestTopic)


@wire.part
class TxnOffsetCommitResponsePartition:
    """Part of TxnOffsetCommitResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()


@wire.part
class TxnOffsetCommitResponseTopic:
    """Part of TxnOffsetCommitResponse."""

    name: str = wire.string()
    partitions: list[TxnOffsetCommitResponsePartition] = wire.array(
        TxnOffsetCommitResponsePartition
    )


@wire.response(ApiKey.TXN_OFFSET_COMMIT, "0-5", flexible=3)
class TxnOffsetCommitResponse:
    """TxnOffsetCommit response."""

    throttle_time_ms: int = wire.int32()
    topics: list[TxnOffsetCommitResponseTopic] = wire.array(TxnOffsetCommitResponseTopic)


@wire.part
class WritableTxnMarkerTopic:
    """Part of WriteTxnMarkersRequest."""

    name: str = wire.string()
    partition_indexes: list[int] = wire.array("int32")


@wire.part
class WritableTxnMarker:
    """Part of WriteTxnMarkersRequest."""

    producer_id: int = wire.int64()
    producer_epoch: int = wire.int16()
    transaction_result: bool = wire.boolean()
    topics: list[WritableTxnMarkerTopic] = wire.array(WritableTxnMarkerTopic)
    coordinator_epoch: int = wire.int32()
    transaction_version: int = wire.int8("2+")


@wire.request(ApiKey.WRITE_TXN_MARKERS, "1-2", flexible=1)
class WriteTxnMarkersRequest:
    """WriteTxnMarkers request."""

    markers: list[WritableTxnMarker] = wire.array(WritableTxnMarker)


@wire.part
class WritableTxnMarkerPartitionResult:
    """Part of WriteTxnMarkersResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()


@wire.part
class WritableTxnMarkerTopicResult:
    """Part of WriteTxnMarkersResponse."""

    name: str = wire.string()
    partitions: list[WritableTxnMarkerPartitionResult] = wire.array(
        WritableTxnMarkerPartitionResult
    )


@wire.part
class WritableTxnMarkerResult:
    """Part of WriteTxnMarkersResponse."""

    producer_id: int = wire.int64()
    topics: list[WritableTxnMarkerTopicResult] = wire.array(WritableTxnMarkerTopicResult)


@wire.response(ApiKey.WRITE_TXN_MARKERS, "1-2", flexible=1)
class WriteTxnMarkersResponse:
    """WriteTxnMarkers response."""

    markers: list[WritableTxnMarkerResult] = wire.array(WritableTxnMarkerResult)


@wire.part
class TopicRequest:
    """Part of DescribeProducersRequest."""

    name: str = wire.string()
    partition_indexes: list[int] = wire.array("int32")


@wire.request(ApiKey.DESCRIBE_PRODUCERS, "0", flexible=0)
class DescribeProducersRequest:
    """DescribeProducers request."""

    topics: list[TopicRequest] = wire.array(TopicRequest)


@wire.part
class ProducerState:
    """Part of DescribeProducersResponse."""

    producer_id: int = wire.int64()
    producer_epoch: int = wire.int32()
    last_sequence: int = wire.int32(default=-1)
    last_timestamp: int = wire.int64(default=-1)
    coordinator_epoch: int = wire.int32()
    current_txn_start_offset: int = wire.int64(default=-1)


@wire.part
class PartitionResponse:
    """Part of DescribeProducersResponse."""

    partition_index: int = wire.int32()
    error_code: int = wire.int16()
    error_message: str | None = wire.string(default=None, nullable="0+")
    active_producers: list[ProducerState] = wire.array(ProducerState)


@wire.part
class TopicResponse:
    """Part of DescribeProducersResponse."""

    name: str = wire.string()
    partitions: list[PartitionResponse] = wire.array(PartitionResponse)


@wire.response(ApiKey.DESCRIBE_PRODUCERS, "0", flexible=0)
class DescribeProducersResponse:
    """DescribeProducers response."""

    throttle_time_ms: int = wire.int32()
    topics: list[TopicResponse] = wire.array(TopicResponse)


@wire.request(ApiKey.DESCRIBE_TRANSACTIONS, "0", flexible=0)
class DescribeTransactionsRequest:
    """DescribeTransactions request."""

    transactional_ids: list[str] = wire.array("string")


@wire.part
class TopicData:
    """Part of DescribeTransactionsResponse."""

    topic: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.part
class TransactionState:
    """Part of DescribeTransactionsResponse."""

    error_code: int = wire.int16()
    transactional_id: str = wire.string()
    transaction_state: str = wire.string()
    transaction_timeout_ms: int = wire.int32()
    transaction_start_time_ms: int = wire.int64()
    producer_id: int = wire.int64()
    producer_epoch: int = wire.int16()
    topics: list[TopicData] = wire.array(TopicData)


@wire.response(ApiKey.DESCRIBE_TRANSACTIONS, "0", flexible=0)
class DescribeTransactionsResponse:
    """DescribeTransactions response."""

    throttle_time_ms: int = wire.int32()
    transaction_states: list[TransactionState] = wire.array(TransactionState)


@wire.request(ApiKey.LIST_TRANSACTIONS, "0-2", flexible=0)
class ListTransactionsRequest:
    """ListTransactions request."""

    state_filters: list[str] = wire.array("string")
    producer_id_filters: list[int] = wire.array("int64")
    duration_filter: int = wire.int64("1+", default=-1)
    transactional_id_pattern: str | None = wire.string("2+", default=None, nullable="2+")


@wire.part
class ListTransactionsResponseTransactionState:
    """Part of ListTransactionsResponse."""

    transactional_id: str = wire.string()
    producer_id: int = wire.int64()
    transaction_state: str = wire.string()


@wire.response(ApiKey.LIST_TRANSACTIONS, "0-2", flexible=0)
class ListTransactionsResponse:
    """ListTransactions response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    unknown_state_filters: list[str] = wire.array("string")
    transaction_states: list[ListTransactionsResponseTransactionState] = wire.array(
        ListTransactionsResponseTransactionState
    )
