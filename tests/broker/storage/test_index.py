"""Index files: round trips, and lies that are found out."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.storage.index import (
    AbortedRange,
    OffsetIndex,
    StaleIndex,
    TimeIndex,
    aborted_from_bytes,
    aborted_to_bytes,
)

ASCENDING = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=50).map(sorted)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(ASCENDING, ASCENDING)
def test_an_offset_index_reads_what_it_wrote(offsets: list[int], positions: list[int]) -> None:
    index = OffsetIndex()
    for offset, position in zip(offsets, positions, strict=False):
        index.append(offset, position)
    read = OffsetIndex.from_bytes(index.to_bytes(), log_bytes=2**31)
    assert read.offsets == index.offsets
    assert read.positions == index.positions


@given(ASCENDING, st.integers(0, 2**31 - 1))
def test_an_offset_is_looked_for_from_the_entry_before_it_on(
    offsets: list[int], wanted: int
) -> None:
    index = OffsetIndex()
    for number, offset in enumerate(offsets):
        index.append(offset, 10 * number + 1)
    before = [10 * n + 1 for n, offset in enumerate(offsets) if offset <= wanted]
    assert index.position_before(wanted) == (before[-1] if before else 0)


def test_an_offset_index_is_big_endian_pairs() -> None:
    index = OffsetIndex()
    index.append(5, 4096)
    index.append(9, 9000)
    assert index.to_bytes() == struct.pack(">iiii", 5, 4096, 9, 9000)


def test_a_time_index_is_big_endian_and_keeps_only_what_is_later() -> None:
    index = TimeIndex()
    index.append(1000, 5)
    index.append(1000, 7)
    index.append(900, 8)
    index.append(2000, 9)
    assert index.to_bytes() == struct.pack(">qiqi", 1000, 5, 2000, 9)
    assert TimeIndex.from_bytes(index.to_bytes()).timestamps == index.timestamps


@pytest.mark.parametrize(
    "data",
    [
        b"1234567",
        struct.pack(">iiii", 5, 10, 4, 20),
        struct.pack(">iiii", 5, 10, 6, 10),
        struct.pack(">ii", 5, 1000),
        struct.pack(">ii", -5, 10),
    ],
    ids=["half an entry", "offsets fall", "positions stay", "beyond the log", "negative"],
)
def test_an_offset_index_that_cannot_be_true_is_stale(data: bytes) -> None:
    with pytest.raises(StaleIndex):
        OffsetIndex.from_bytes(data, log_bytes=1000)


@pytest.mark.parametrize(
    "data",
    [b"12345", struct.pack(">qiqi", 10, 1, 9, 2), struct.pack(">qi", 10, -1)],
    ids=["half an entry", "time goes back", "negative"],
)
def test_a_time_index_that_cannot_be_true_is_stale(data: bytes) -> None:
    with pytest.raises(StaleIndex):
        TimeIndex.from_bytes(data)


@given(st.lists(st.builds(AbortedRange, INT64, INT64, INT64, INT64), max_size=20))
def test_a_transaction_index_reads_what_it_wrote(ranges: list[AbortedRange]) -> None:
    data = aborted_to_bytes(ranges)
    assert len(data) == 34 * len(ranges)
    assert aborted_from_bytes(data) == ranges


@pytest.mark.parametrize("data", [b"1" * 33, b"\0\7" + bytes(32)], ids=["cut", "version 7"])
def test_a_transaction_index_of_another_kind_is_stale(data: bytes) -> None:
    with pytest.raises(StaleIndex):
        aborted_from_bytes(data)


@given(st.binary(max_size=200))
def test_no_bytes_make_an_index_fail_otherwise(data: bytes) -> None:
    for read in (
        lambda: OffsetIndex.from_bytes(data, log_bytes=100),
        lambda: TimeIndex.from_bytes(data),
        lambda: aborted_from_bytes(data),
    ):
        try:
            read()
        except StaleIndex:
            continue


@given(
    st.lists(INT64, unique=True, max_size=50).map(sorted),
    st.lists(st.integers(0, 2**31 - 1), min_size=50, max_size=50),
)
def test_a_time_index_reads_what_it_wrote(timestamps: list[int], offsets: list[int]) -> None:
    index = TimeIndex()
    for timestamp, offset in zip(timestamps, offsets, strict=False):
        index.append(timestamp, offset)
    data = index.to_bytes()
    assert data == b"".join(
        struct.pack(">qi", *entry) for entry in zip(timestamps, offsets, strict=False)
    )
    read = TimeIndex.from_bytes(data)
    assert (read.timestamps, read.offsets) == (index.timestamps, index.offsets)
