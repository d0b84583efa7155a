"""Transactions as records of __transaction_state, in Kafka's format, so its tools can read them.

key      int16 0 | transactional id
value    int16 1 | producer id, epoch, timeout, state, partitions, times, tagged: previous and
         next producer id, version of the client's transactions; null: tombstone
"""

from collections import defaultdict

from broker.batch.codec import Record
from broker.coordinator.internal_topics import (
    PREFIX,
    CoordinatorRecord,
    InternalLog,
    prefixed,
    read_prefix,
)
from broker.coordinator.transaction import TRANSACTIONS_V1, Transaction, TransactionState
from broker.errors import MalformedMessage
from broker.model import TopicPartition
from broker.protocol import message
from broker.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

KEY_VERSION = 0
VALUE_VERSION = 1
PRODUCER_ID_MAX = (1 << 63) - 1_000_000  # higher ones leave no ids for other producers
WRITTEN_STATES = frozenset(TransactionState) - {
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
}


def read_transactions(log: InternalLog) -> dict[str, Transaction]:
    """The newest state of all transactional ids; an invalid record is reported and skipped."""
    found: dict[str, Transaction] = {}
    for batch in log.replay():
        if batch.header.is_control:
            continue
        for record in batch.records:
            try:
                _take_record(found, record)
            except Exception as error:  # whatever the bytes are, the start continues
                log.skip(batch.partition, record.offset, f"{error!r}, key {record.key!r:.100}")
    log.report_skipped()
    return found


def _take_record(found: dict[str, Transaction], record: Record) -> None:
    transactional_id = _read_key(record)
    if record.value is None:
        found.pop(transactional_id, None)
    else:
        found[transactional_id] = _read_value(transactional_id, record.value)


def to_record(transaction: Transaction) -> CoordinatorRecord:
    """The record with the state of a transactional id."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_partition_list(transaction),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), prefixed(VALUE_VERSION, value, VALUE_VERSION)


def to_tombstone(transactional_id: str) -> CoordinatorRecord:
    """The tombstone of a transactional id."""
    return _key(transactional_id), None


def _key(transactional_id: str) -> bytes:
    return prefixed(KEY_VERSION, TransactionLogKey(transactional_id), KEY_VERSION)


def _partition_list(transaction: Transaction) -> list[PartitionsSchema] | None:
    # Kafka writes null, not an empty list, if no transaction is open.
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return [PartitionsSchema(topic, numbers) for topic, numbers in by_topic.items()]


def _read_key(record: Record) -> str:
    if record.key is None or read_prefix(record.key) != KEY_VERSION:
        raise MalformedMessage("the key is not a transactional id")
    key = message.from_bytes(TransactionLogKey, record.key[PREFIX.size :], KEY_VERSION)
    return key.transactional_id


def _check_value(value: TransactionLogValue) -> None:
    """Refuse values that no broker writes: using them would affect other producers."""
    ids = (value.producer_id, value.previous_producer_id, value.next_producer_id)
    if value.producer_id < 0 or max(ids) > PRODUCER_ID_MAX:
        raise MalformedMessage(f"producer ids {ids} are out of range")
    if value.transaction_status not in WRITTEN_STATES:
        raise MalformedMessage(f"transaction state {value.transaction_status} is not known")


def _read_value(transactional_id: str, data: bytes | memoryview) -> Transaction:
    version = read_prefix(data)
    if not 0 <= version <= VALUE_VERSION:
        raise MalformedMessage(f"transaction record of version {version} is not known")
    value = message.from_bytes(TransactionLogValue, data[PREFIX.size :], version)
    _check_value(value)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(part.topic, number)
            for part in value.transaction_partitions or []
            for number in part.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        client_version=max(value.client_transaction_version, TRANSACTIONS_V1),
    )
