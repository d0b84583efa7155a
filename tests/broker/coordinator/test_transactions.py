"""The transaction coordinator over real logs: ends, crashes in between, timeouts, expiry."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import pytest

from broker.coordinator.transaction import EPOCH_EXHAUSTED, TRANSACTIONS_V2, TransactionState
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import TRANSACTION_TOPIC, ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.storage.partition_log import PartitionLog
from tests.broker.coordinator.transaction_fixture import (
    TransactionBench,
    committed_values,
    offsets_partition,
)

T = TypeVar("T")

ORDERS = TopicPartition("orders", 0)
BILLS = TopicPartition("bills", 0)
NOBODY = ProducerIdentity()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[TransactionBench]:
    made = TransactionBench(tmp_path)
    for topic in ("orders", "bills"):
        made.topics.create(topic, partition_count=1)
    yield made
    made.close()


def state_of(bench: TransactionBench, name: str = "bank") -> TransactionState:
    found = bench.coordinator.get(name)
    assert found is not None
    return found.state


def open_transaction(bench: TransactionBench, name: str = "bank") -> ProducerIdentity:
    producer = bench.begin(name)
    bench.produce(name, producer, ORDERS, sequence=0, value=b"order")
    bench.produce(name, producer, BILLS, sequence=0, value=b"bill")
    return producer


def test_idempotent_producers_get_ids_of_their_own(bench: TransactionBench) -> None:
    answers = [
        bench.coordinator.init_producer_id(None, timeout_ms=-1, expected=NOBODY) for _ in range(3)
    ]
    assert len(set(answers)) == 3
    assert all(isinstance(answer, ProducerIdentity) and answer.epoch == 0 for answer in answers)


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_reaches_every_partition(bench: TransactionBench, commit: bool) -> None:
    producer = open_transaction(bench)
    assert committed_values(bench.log(ORDERS)) == []
    bench.end("bank", producer, commit=commit)
    assert committed_values(bench.log(ORDERS)) == ([b"order"] if commit else [])
    assert committed_values(bench.log(BILLS)) == ([b"bill"] if commit else [])
    assert state_of(bench).is_complete


def test_the_end_of_offsets_reaches_the_group_coordinator(bench: TransactionBench) -> None:
    producer = bench.begin("bank")
    partition = offsets_partition(bench, "group")
    bench.coordinator.add_partitions("bank", producer, [partition, ORDERS])
    bench.end("bank", producer, commit=True)
    assert bench.completed == [(producer, True)]


def test_a_new_producer_aborts_the_open_transaction_of_the_old_one(
    bench: TransactionBench,
) -> None:
    old = open_transaction(bench)
    with pytest.raises(BrokerError) as caught:
        bench.begin("bank")
    assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
    new = bench.begin("bank")
    assert new == ProducerIdentity(old.producer_id, old.epoch + 2)
    assert committed_values(bench.log(ORDERS)) == []
    for attempt in (
        lambda: bench.coordinator.add_partitions("bank", old, [ORDERS]),
        lambda: bench.end("bank", old, commit=True),
    ):
        with pytest.raises(BrokerError) as caught:
            attempt()
        assert caught.value.code is ErrorCode.PRODUCER_FENCED
    with pytest.raises(BrokerError) as caught:
        bench.write("bank", old, ORDERS, sequence=1, value=b"late")
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds_is_refused(bench: TransactionBench, timeout_ms: int) -> None:
    with pytest.raises(BrokerError) as caught:
        bench.begin("bank", timeout_ms=timeout_ms)
    assert caught.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_unknown_id_has_no_producer(bench: TransactionBench) -> None:
    with pytest.raises(BrokerError) as caught:
        bench.end("bank", ProducerIdentity(0, 0), commit=True)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_partition_that_was_not_added_cannot_be_written(bench: TransactionBench) -> None:
    producer = bench.begin("bank")
    bench.coordinator.add_partitions("bank", producer, [ORDERS])
    with pytest.raises(BrokerError) as caught:
        bench.write("bank", producer, BILLS, sequence=0, value=b"bill")
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_an_overdue_transaction_is_aborted_and_its_producer_fenced(
    bench: TransactionBench,
) -> None:
    producer = bench.begin("bank", timeout_ms=5000)
    bench.produce("bank", producer, ORDERS, sequence=0, value=b"order")
    bench.advance(5000)
    assert state_of(bench) is TransactionState.ONGOING
    bench.advance(1001)
    assert state_of(bench) is TransactionState.COMPLETE_ABORT
    assert committed_values(bench.log(ORDERS)) == []
    with pytest.raises(BrokerError) as caught:
        bench.end("bank", producer, commit=True)
    assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_an_overdue_transaction_is_aborted_after_a_restart_too(bench: TransactionBench) -> None:
    producer = bench.begin("bank", timeout_ms=5000)
    bench.produce("bank", producer, ORDERS, sequence=0, value=b"order")
    bench.clock.advance(6000)
    bench.crash()
    assert state_of(bench) is TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000, 0])
def test_a_wall_clock_that_jumps_changes_nothing_about_timeouts(
    bench: TransactionBench, jump_ms: int, restart: bool
) -> None:
    producer = bench.begin("bank", timeout_ms=3000)
    bench.produce("bank", producer, ORDERS, sequence=0, value=b"order")
    bench.clock.set_wall_clock(bench.clock.now_ms() + jump_ms)
    bench.advance(1000)
    if restart:
        bench.crash()
    forward = restart and jump_ms > 0  # then nothing else is known of the time before
    expected = TransactionState.COMPLETE_ABORT if forward else TransactionState.ONGOING
    assert state_of(bench) is expected
    bench.advance(4001)
    assert state_of(bench) is TransactionState.COMPLETE_ABORT
    assert committed_values(bench.log(ORDERS)) == []


def test_a_marker_that_fails_is_tried_again_alone(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = open_transaction(bench)
    append, failing = PartitionLog.append, {ORDERS}

    def fails(log: PartitionLog, *arguments: object, **options: object) -> object:
        if log.topic_partition in failing:
            raise StorageError("no space left")
        return append(log, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(PartitionLog, "append", fails)
    assert isinstance(bench.coordinator.end("bank", producer, commit=True), Pending)
    for _ in range(10):
        bench.advance(500)
    failing.clear()
    bench.advance(500)
    assert state_of(bench) is TransactionState.COMPLETE_COMMIT
    assert committed_values(bench.log(ORDERS)) == [b"order"]
    assert committed_values(bench.log(BILLS)) == [b"bill"]
    # The record and one marker.
    assert (bench.log(ORDERS).end_offset, bench.log(BILLS).end_offset) == (2, 2)


def test_one_unexpected_exception_does_not_end_what_is_done_regularly(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = bench.begin("bank", timeout_ms=3000)
    bench.produce("bank", producer, ORDERS, sequence=0, value=b"order")
    with monkeypatch.context() as patch:
        patch.setattr(bench.coordinator, "_abort_overdue", unexpected)
        patch.setattr(bench.coordinator, "_forget", unexpected)
        bench.advance(5_000)
    bench.advance(1_001)
    assert state_of(bench) is TransactionState.COMPLETE_ABORT
    with monkeypatch.context() as patch:
        patch.setattr(bench.coordinator, "_forget", unexpected)
        bench.advance(4_000_000)
    bench.advance(60_000)
    assert bench.coordinator.get("bank") is None


def unexpected(*_: object) -> None:
    raise RuntimeError("unexpected")


def test_an_unused_id_is_forgotten_for_good(bench: TransactionBench) -> None:
    producer = open_transaction(bench)
    bench.end("bank", producer, commit=True)
    bench.begin("other")
    bench.advance(3_599_000)
    bench.begin("other")
    bench.advance(61_000)
    assert [found.transactional_id for found in bench.coordinator.transactions()] == ["other"]
    bench.crash()
    assert [found.transactional_id for found in bench.coordinator.transactions()] == ["other"]
    assert bench.begin("bank").producer_id > producer.producer_id


def test_an_open_transaction_goes_on_after_a_crash(bench: TransactionBench) -> None:
    producer = open_transaction(bench)
    bench.crash()
    bench.produce("bank", producer, ORDERS, sequence=1, value=b"second")
    bench.end("bank", producer, commit=True)
    assert committed_values(bench.log(ORDERS)) == [b"order", b"second"]


@pytest.mark.parametrize("markers", [0, 1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_crash_after_the_decision_is_finished_at_the_start(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch, commit: bool, markers: int
) -> None:
    producer = open_transaction(bench)
    with monkeypatch.context() as patch:
        stop_after(patch, appends=1 + markers)
        with pytest.raises(Stopped):
            bench.end("bank", producer, commit=commit)
    bench.crash()
    outcome = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
    assert state_of(bench) is outcome
    assert committed_values(bench.log(ORDERS)) == ([b"order"] if commit else [])
    assert committed_values(bench.log(BILLS)) == ([b"bill"] if commit else [])
    bench.end("bank", producer, commit=commit)
    bench.produce("bank", producer, ORDERS, sequence=1, value=b"next")
    bench.end("bank", producer, commit=True)
    assert committed_values(bench.log(ORDERS))[-1:] == [b"next"]


class Stopped(BaseException):
    """The process ends here."""


def stop_after(patch: pytest.MonkeyPatch, *, appends: int) -> None:
    """Let some appends through and end the process at the next."""
    append = PartitionLog.append
    done = 0

    def counted(log: PartitionLog, *arguments: object, **options: object) -> object:
        nonlocal done
        if done == appends:
            raise Stopped
        done += 1
        return append(log, *arguments, **options)  # type: ignore[arg-type]

    patch.setattr(PartitionLog, "append", counted)


def test_markers_that_the_disk_refuses_are_tried_again(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = open_transaction(bench)
    append = PartitionLog.append

    def full(log: PartitionLog, *arguments: object, **options: object) -> object:
        if log.topic_partition.topic != TRANSACTION_TOPIC:
            raise StorageError("no space left on device")
        return append(log, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "append", full)
        answer = bench.coordinator.end("bank", producer, commit=True)
        bench.advance(600)
        assert isinstance(answer, Pending)
        assert not answer.done
        assert state_of(bench) is TransactionState.PREPARE_COMMIT
        with pytest.raises(BrokerError) as caught:
            bench.coordinator.end("bank", producer, commit=True)
        assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.advance(600)
    assert answer.done
    assert committed_values(bench.log(ORDERS)) == [b"order"]


def test_a_state_that_cannot_be_written_is_not_taken(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = open_transaction(bench)

    def full(log: PartitionLog, *arguments: object, **options: object) -> object:
        raise StorageError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "append", full)
        with pytest.raises(StorageError):
            bench.end("bank", producer, commit=True)
        bench.advance(61_001)
    assert state_of(bench) is TransactionState.ONGOING


def test_the_end_skips_a_topic_that_was_deleted(bench: TransactionBench) -> None:
    producer = open_transaction(bench)
    bench.topics.delete("bills")
    bench.end("bank", producer, commit=True)
    assert committed_values(bench.log(ORDERS)) == [b"order"]


def test_a_hanging_transaction_is_ended_by_hand(bench: TransactionBench) -> None:
    producer = open_transaction(bench)
    answer = bench.coordinator.write_markers(
        producer,
        [ORDERS, TopicPartition("nowhere", 0)],
        commit=False,
        coordinator_epoch=0,
    )
    assert answer == {
        ORDERS: ErrorCode.NONE,
        TopicPartition("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert bench.log(ORDERS).last_stable_offset == bench.log(ORDERS).end_offset
    assert bench.log(BILLS).last_stable_offset == 0


def test_a_v2_producer_gets_a_new_id_when_its_epochs_run_out(bench: TransactionBench) -> None:
    producer = bench.begin("bank")
    entry = bench.coordinator._entries["bank"]
    entry.transaction = replace(entry.transaction, epoch=EPOCH_EXHAUSTED)
    last = ProducerIdentity(producer.producer_id, EPOCH_EXHAUSTED)
    bench.coordinator.add_partitions("bank", last, [ORDERS], client_version=TRANSACTIONS_V2)
    answer = bench.coordinator.end("bank", last, commit=True, client_version=TRANSACTIONS_V2)
    assert isinstance(answer, ProducerIdentity)
    assert (answer.producer_id > last.producer_id, answer.epoch) == (True, 0)
    bench.crash()
    again = bench.coordinator.end("bank", last, commit=True, client_version=TRANSACTIONS_V2)
    assert again == answer


def test_answers_wait_until_their_records_are_on_the_disk(tmp_path: Path) -> None:
    bench = TransactionBench(tmp_path, {"durability": "fsync"})
    bench.topics.create("orders", partition_count=1)
    with bench.lock:
        # The flusher needs the lock to finish a flush, so nothing is durable in here.
        begun = bench.coordinator.init_producer_id("bank", timeout_ms=60_000, expected=NOBODY)
        assert isinstance(begun, Pending)
        assert not begun.done
    producer = waited(bench, begun)
    with bench.lock:
        added = bench.coordinator.add_partitions("bank", producer, [ORDERS])
        assert isinstance(added, Pending)
    assert waited(bench, added) is ErrorCode.NONE
    with bench.lock:
        bench.write("bank", producer, ORDERS, sequence=0, value=b"order")
        ended = bench.coordinator.end("bank", producer, commit=True)
        assert state_of(bench) is TransactionState.PREPARE_COMMIT
        assert isinstance(ended, Pending)
    assert waited(bench, ended) == producer
    assert state_of(bench) is TransactionState.COMPLETE_COMMIT
    with bench.lock:
        log = bench.log(ORDERS)
        assert log.durable_offset == log.end_offset == 2
    assert committed_values(log) == [b"order"]
    bench.close()


def waited(bench: TransactionBench, answer: Pending[T]) -> T:
    """The answer, once the flusher's thread has made it possible."""
    found: SimpleQueue[T] = SimpleQueue()
    with bench.lock:
        answer.then(found.put)
    return found.get(timeout=60)
