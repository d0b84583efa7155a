"""Partitions: who leads them, and what they answer."""

import threading
from pathlib import Path

import pytest

from broker.batch.codec import encode_batch
from broker.clock import ManualClock
from broker.config import BrokerConfig, TopicConfig
from broker.coordinator.partition import Partition, Role
from broker.coordinator.partitions import Partitions
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from broker.storage.data_directory import DataDirectory

TP = TopicPartition("orders", 0)
COMPACTED = TopicPartition("tables", 0)


@pytest.fixture
def storage(tmp_path: Path) -> DataDirectory:
    return DataDirectory(
        tmp_path, config=BrokerConfig(), clock=ManualClock(), lock=threading.RLock()
    )


@pytest.fixture
def partitions(storage: DataDirectory) -> Partitions:
    made = Partitions(storage)
    made.create(TP, bytes(16), TopicConfig())
    made.create(COMPACTED, bytes(16), TopicConfig(cleanup_policy=("compact",)))
    return made


def append(partition: Partition, *values: bytes) -> int:
    batch = encode_batch([(None, value, (), 1000) for value in values])
    return partition.append_internal(batch, now_ms=1000).last_offset


def test_a_partition_that_is_not_there(partitions: Partitions) -> None:
    missing = TopicPartition("orders", 1)
    assert partitions.get(missing) is None
    with pytest.raises(BrokerError) as refused:
        partitions.leader(missing)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions.delete(TP)
    assert partitions.get(TP) is None


def test_a_new_partition_is_led(partitions: Partitions) -> None:
    assert partitions.leader(TP).role is Role.LEADER


def test_a_partition_that_nobody_leads_answers_no_client(storage: DataDirectory) -> None:
    partition = Partition(storage.create(TP, bytes(16), TopicConfig()), storage)
    with pytest.raises(BrokerError) as refused:
        partition.check_leads()
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.lead(3)
    partition.check_leads()
    assert partition.leader_epoch == 3


@pytest.mark.parametrize(
    ("epoch", "code"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_client_that_knows_another_epoch(
    partitions: Partitions, epoch: int, code: ErrorCode
) -> None:
    partitions.leader(TP).lead(5)
    assert partitions.leader(TP, -1) is partitions.leader(TP, 5)
    with pytest.raises(BrokerError) as refused:
        partitions.leader(TP, epoch)
    assert refused.value.code is code


def test_records_have_the_epoch_they_were_written_in(partitions: Partitions) -> None:
    partition = partitions.leader(TP)
    append(partition, b"a", b"b")
    partition.lead(2)
    append(partition, b"c")
    assert partition.end_of_epoch(0) == (0, 2)
    assert partition.end_of_epoch(2) == (2, 3)
    assert partition.diverges(2, 0) is None
    assert partition.diverges(3, 0) == (0, 2)
    assert partition.earliest() == (0, -1, 0)
    assert partition.latest(committed=True) == (3, -1, 2)


def test_records_are_deleted_where_the_topic_deletes_records(partitions: Partitions) -> None:
    partition = partitions.leader(TP)
    append(partition, b"a", b"b", b"c")
    assert partition.delete_records_before(1) == 1
    assert partition.delete_records_before(None) == partition.high_watermark == 3
    for offset in (-5, 4):
        with pytest.raises(BrokerError) as refused:
            partition.delete_records_before(offset)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(BrokerError) as refused:
        partitions.leader(COMPACTED).delete_records_before(0)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
