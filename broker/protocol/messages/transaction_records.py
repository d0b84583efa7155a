"""Records of __transaction_state; each begins with an int16 version."""

from broker.protocol import wire


@wire.data("0")
class TransactionLogKey:
    """TransactionLogKey."""

    transactional_id: str = wire.string("0")


@wire.part
class PartitionsSchema:
    """Part of TransactionLogValue."""

    topic: str = wire.string()
    partition_ids: list[int] = wire.array("int32")


@wire.data("0-1", flexible=1)
class TransactionLogValue:
    """TransactionLogValue."""

    producer_id: int = wire.int64()
    previous_producer_id: int = wire.int64("1+", default=-1, tag=0)
    next_producer_id: int = wire.int64("1+", default=-1, tag=1)
    producer_epoch: int = wire.int16()
    next_producer_epoch: int = wire.int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = wire.int32()
    transaction_status: int = wire.int8()
    transaction_partitions: list[PartitionsSchema] | None = wire.array(
        PartitionsSchema, nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = wire.int64()
    transaction_start_timestamp_ms: int = wire.int64()
    client_transaction_version: int = wire.int16("1+", tag=2)
