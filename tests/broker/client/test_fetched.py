"""FetchedRun: which batches of an answer a reader sees, and answers that lie."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.batch.codec import control_batch, decode_records, encode_batch, place_batch
from broker.client.fetched import FetchedRun
from broker.errors import (
    BrokerError,
    CorruptBatch,
    CorruptBatchError,
    ErrorCode,
    MillstreamError,
)
from broker.model import AbortedTransaction, ProducerIdentity, TopicPartition

TP = TopicPartition("t", 3)
Part = tuple[str, int]  # "plain", "data", "commit" or "abort"; the producer


def lay_out(parts: list[Part]) -> tuple[bytes, list[tuple[int, Part]]]:
    """The bytes of a log, and the first offset of each part: data has two records."""
    placed: list[tuple[int, Part]] = []
    batches = []
    offset = 0
    for kind, producer_id in parts:
        producer = ProducerIdentity(producer_id, 0)
        if kind in ("commit", "abort"):
            batch = control_batch(
                commit=kind == "commit", producer=producer, coordinator_epoch=0, timestamp_ms=0
            )
            count = 1
        else:
            fields = {"producer": producer, "base_sequence": 0} if kind == "data" else {}
            batch = encode_batch(
                [(None, b"%d" % n, (), 0) for n in range(2)],
                transactional=kind == "data",
                **fields,  # type: ignore[arg-type]
            )
            count = 2
        written = bytearray(batch)
        place_batch(memoryview(written), 0, base_offset=offset, leader_epoch=3)
        batches.append(bytes(written))
        placed.append((offset, (kind, producer_id)))
        offset += count
    return b"".join(batches), placed


def visible(run: FetchedRun) -> list[int]:
    """Base offsets of the batches that are shown."""
    found = []
    while (head := run.peek()) is not None:
        assert run.peek() is head
        found.append(head[1].base_offset)
        run.advance()
    return found


parts = st.lists(
    st.tuples(st.sampled_from(["plain", "data", "commit", "abort"]), st.integers(1, 3)),
    min_size=1,
    max_size=20,
)


@given(parts)
def test_a_committed_reader_sees_exactly_what_no_abort_follows(log: list[Part]) -> None:
    data, placed = lay_out(log)
    expected = []
    aborted = []
    for index, (offset, (kind, producer_id)) in enumerate(placed):
        ending = next(
            (k for _, (k, p) in placed[index:] if p == producer_id and k in ("commit", "abort")),
            "commit",  # what is still open lies beyond what a committed reader is sent
        )
        if kind == "plain" or (kind == "data" and ending == "commit"):
            expected.append(offset)
        before = [k for _, (k, p) in placed[:index] if p == producer_id and k != "plain"]
        starts = kind == "data" and (not before or before[-1] != "data")
        if starts and ending == "abort":
            aborted.append(AbortedTransaction(producer_id, offset))
    run = FetchedRun(TP, memoryview(data), offsets=(0, 100), aborted=aborted)
    assert visible(run) == expected
    end = placed[-1][0] + (2 if placed[-1][1][0] in ("plain", "data") else 1)
    assert run.next_offset == end


@given(parts)
def test_an_uncommitted_reader_sees_all_but_the_markers(log: list[Part]) -> None:
    data, placed = lay_out(log)
    run = FetchedRun(TP, memoryview(data), offsets=(0, 100))
    assert visible(run) == [at for at, (kind, _) in placed if kind in ("plain", "data")]


@given(parts, st.integers(0, 5000))
def test_a_cut_answer_ends_with_its_last_whole_batch(log: list[Part], cut: int) -> None:
    data, placed = lay_out(log)
    sizes = [len(lay_out([part])[0]) for part in log]
    ends = list(accumulate(sizes))
    kept = sum(end <= cut for end in ends)
    view = memoryview(data[:cut])
    if not view or not kept:
        with pytest.raises(BrokerError) as caught:
            FetchedRun(TP, view, offsets=(0, 100))
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        return
    run = FetchedRun(TP, view, offsets=(0, 100))
    shown = [at for at, (kind, _) in placed[:kept] if kind in ("plain", "data")]
    assert visible(run) == shown


def test_bytes_that_were_changed_are_refused_when_their_batch_comes() -> None:
    data, _ = lay_out([("plain", 1), ("plain", 1)])
    broken = bytearray(data)
    broken[-1] ^= 1
    run = FetchedRun(TP, memoryview(broken), offsets=(0, 100))
    first = run.peek()
    assert first is not None
    assert [record.value for record in decode_records(first[0])] == [b"0", b"1"]
    run.advance()
    with pytest.raises(CorruptBatch, match="CRC"):
        run.peek()
    unchecked = FetchedRun(TP, memoryview(broken), offsets=(0, 100), check_crcs=False)
    assert visible(unchecked) == [0, 2]


@pytest.mark.parametrize("length", [-1, -12, 0, 48, -(2**31)])
def test_a_batch_that_lies_about_its_length_is_refused(length: int) -> None:
    data = bytearray(lay_out([("plain", 1)])[0])
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="claims to have"):
        FetchedRun(TP, memoryview(data), offsets=(0, 100))


def test_batches_before_one_that_lies_about_its_length_are_read() -> None:
    data = bytearray(lay_out([("plain", 1), ("plain", 1)])[0])
    data[len(data) // 2 + 8 : len(data) // 2 + 12] = bytes(4)
    run = FetchedRun(TP, memoryview(data), offsets=(0, 100))
    assert run.peek() is not None
    run.advance()
    with pytest.raises(CorruptBatchError) as caught:
        run.peek()
    assert (caught.value.offset, caught.value.next_offset) == (2, 4)


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [(4, (2, 4)), (3, (2, 3))],
    ids=["the header can be true", "the header runs past the end of the log"],
)
def test_the_error_says_where_the_batch_is_and_what_follows(
    end_offset: int, expected: tuple[int, int]
) -> None:
    data = bytearray(lay_out([("plain", 1), ("plain", 1)])[0])
    data[-1] ^= 1
    run = FetchedRun(TP, memoryview(data), offsets=(0, end_offset))
    run.peek()
    run.advance()
    with pytest.raises(CorruptBatchError) as caught:
        run.peek()
    error = caught.value
    assert (error.topic, error.partition) == TP
    assert (error.offset, error.next_offset) == expected
    assert not error.retriable
    assert error.at == 'topic "t" partition 3 offset 2'


def test_an_answer_that_does_not_go_forward_is_refused() -> None:
    data, _ = lay_out([("plain", 1)])
    with pytest.raises(CorruptBatch, match="older records"):
        FetchedRun(TP, memoryview(data), offsets=(2, 100))


@given(st.binary(max_size=200))
def test_any_bytes_end_in_batches_or_a_clear_error(data: bytes) -> None:
    try:
        visible(FetchedRun(TP, memoryview(data), offsets=(0, 100)))
    except MillstreamError:
        return
