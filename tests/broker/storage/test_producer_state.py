"""Idempotence and transactions as the log keeps them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.batch.layout import SEQUENCE_COUNT, BatchHeader, read_header
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import ProducerIdentity
from broker.storage.producer_state import Marker, ProducerStates
from tests.broker.storage.support import NOW_MS, batch

LAST = SEQUENCE_COUNT - 1


def header(
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    offset: int = 0,
    transactional: bool = False,
) -> BatchHeader:
    """The header of a producer's batch."""
    found = read_header(
        batch(
            count,
            producer=ProducerIdentity(7, epoch),
            sequence=sequence,
            transactional=transactional,
        )
    )
    found.base_offset = offset
    return found


def marker_header(offset: int, *, epoch: int = 0) -> BatchHeader:
    """The header of a marker."""
    found = header(-1, epoch=epoch, offset=offset, transactional=True)
    found.attributes |= 0x20
    return found


def written(*headers: BatchHeader) -> ProducerStates:
    """The state after batches."""
    states = ProducerStates()
    for item in headers:
        states.wrote(item)
    return states


@pytest.mark.parametrize(
    ("before", "attempt"),
    [
        ([], header(0)),
        ([], header(42)),
        ([header(0)], header(1)),
        ([header(0, count=3)], header(3)),
        ([header(LAST)], header(0)),
        ([header(LAST - 1, count=4)], header(2)),
        ([header(5)], header(0, epoch=1)),
    ],
    ids=[
        "first",
        "unknown producer at any sequence",
        "next",
        "after three",
        "after the last there is",
        "after a batch that wraps",
        "new epoch from 0",
    ],
)
def test_a_sequence_in_order_is_taken(before: list[BatchHeader], attempt: BatchHeader) -> None:
    assert written(*before).check(attempt, sequences=True) is None


@pytest.mark.parametrize(
    ("before", "attempt", "code"),
    [
        ([header(0)], header(2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(9)], header(8), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(3)], header(4, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, epoch=3)], header(1, epoch=2), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([header(0, epoch=3)], header(0, epoch=2), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([header(0, count=3)], header(0, count=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, transactional=True)], header(1), ErrorCode.INVALID_TXN_STATE),
    ],
    ids=[
        "gap",
        "back",
        "new epoch not from 0",
        "old epoch",
        "old epoch from 0",
        "half a duplicate",
        "outside of the open transaction",
    ],
)
def test_what_is_out_of_order_is_refused(
    before: list[BatchHeader], attempt: BatchHeader, code: ErrorCode
) -> None:
    with pytest.raises(BrokerError) as caught:
        written(*before).check(attempt, sequences=True)
    assert caught.value.code is code


def test_the_last_five_batches_are_known_and_no_more() -> None:
    headers = [header(2 * n, count=2, offset=100 + 2 * n) for n in range(6)]
    states = written(*headers)
    for item in headers[1:]:
        found = states.check(item, sequences=True)
        assert found is not None
        assert (found.first_offset, found.last_offset) == (item.base_offset, item.last_offset)
    with pytest.raises(BrokerError) as caught:
        states.check(headers[0], sequences=True)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_that_wraps_is_known() -> None:
    wrapping = header(LAST - 1, count=4, offset=10)
    found = written(wrapping).check(wrapping, sequences=True)
    assert found is not None
    assert found.first_offset == 10


def test_coordinators_are_not_asked_for_sequences() -> None:
    assert written(header(0)).check(header(-1), sequences=False) is None


def test_an_old_coordinator_is_fenced() -> None:
    states = ProducerStates()
    states.ended(marker_header(3), Marker(commit=True, coordinator_epoch=5))
    with pytest.raises(BrokerError) as caught:
        states.check_marker(ProducerIdentity(7, 0), Marker(commit=True, coordinator_epoch=4))
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_with_a_new_epoch_starts_the_sequences_anew() -> None:
    states = written(header(0, transactional=True))
    states.ended(marker_header(1, epoch=1), Marker(commit=False, coordinator_epoch=0))
    with pytest.raises(BrokerError):
        states.check(header(1, transactional=True), sequences=True)
    assert states.check(header(0, epoch=1, transactional=True), sequences=True) is None


def test_the_last_stable_offset_waits_for_the_first_open_transaction() -> None:
    states = ProducerStates()
    states.wrote(header(0, offset=3, transactional=True))
    other = header(0, offset=5, transactional=True)
    other.producer_id = 8
    states.wrote(other)
    assert states.first_unstable_offset(10) == 3
    aborted = states.ended(marker_header(10), Marker(commit=False, coordinator_epoch=0))
    assert aborted is not None
    assert (aborted.first_offset, aborted.last_offset) == (3, 10)
    assert aborted.last_stable_offset == 5
    assert states.first_unstable_offset(11) == 5


def test_a_marker_counts_once_it_is_below_the_high_watermark() -> None:
    states = written(header(0, offset=3, transactional=True))
    states.ended(marker_header(4), Marker(commit=True, coordinator_epoch=0))
    assert states.first_unstable_offset(4) == 3
    assert states.first_unstable_offset(5) == 5


def test_a_marker_without_transaction_aborts_nothing() -> None:
    assert ProducerStates().ended(marker_header(4), Marker(False, 0)) is None


def test_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    states = written(header(0))
    other = header(0, transactional=True)
    other.producer_id = 8
    states.wrote(other)
    states.expire(NOW_MS, after_ms=100)
    states.expire(NOW_MS + 100, after_ms=100)
    assert [entry.producer_id for entry in states.entries()] == [8]


def test_a_producer_of_old_records_is_remembered_as_long_as_it_writes() -> None:
    states = written(header(0))
    long_after_ms = NOW_MS + 10 * 86_400_000
    for number in range(1, 5):
        states.expire(long_after_ms + 60 * number, after_ms=100)
        states.wrote(header(number))
    assert [entry.producer_id for entry in states.entries()] == [7]
    states.expire(long_after_ms + 1000, after_ms=100)
    states.expire(long_after_ms + 1099, after_ms=100)
    assert [entry.producer_id for entry in states.entries()] == [7]
    states.expire(long_after_ms + 1100, after_ms=100)
    assert list(states.entries()) == []


def test_a_snapshot_is_laid_out_as_kafka_does() -> None:
    states = written(header(4, count=3, epoch=2, offset=50, transactional=True))
    data = states.to_snapshot()
    assert data[:2] == b"\0\1"
    assert struct.unpack(">i", data[6:10]) == (1,)
    assert struct.unpack(">qhiqiqiq", data[10:]) == (7, 2, 6, 52, 2, NOW_MS, -1, 50)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans(), st.booleans()), max_size=30
    )
)
def test_a_snapshot_restores_what_counts(steps: list[tuple[int, int, bool, bool]]) -> None:
    states = ProducerStates()
    offset = 0
    for producer_id, count, end, commit in steps:
        item = marker_header(offset) if end else header(0, count=count, transactional=True)
        item.producer_id, item.base_offset = producer_id, offset
        if end:
            states.ended(item, Marker(commit, 0))
        else:
            states.wrote(item)
        offset = item.next_offset
    restored = ProducerStates.from_snapshot(states.to_snapshot())
    assert restored.open_transactions == states.open_transactions
    assert list(restored.open_transactions.values()) == sorted(restored.open_transactions.values())
    for entry in states.entries():
        again = restored.get(entry.producer_id)
        assert again is not None
        assert (again.epoch, again.last_sequence, again.last_offset) == (
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
        )


@given(st.binary(max_size=120))
def test_bytes_that_are_no_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(StorageError):
        ProducerStates.from_snapshot(data)


@given(st.integers(0, 500), st.integers(0, 7))
def test_a_damaged_snapshot_is_refused(at: int, bit: int) -> None:
    data = bytearray(written(header(0), header(1)).to_snapshot())
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(StorageError):
        ProducerStates.from_snapshot(bytes(data))
