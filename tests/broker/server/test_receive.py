"""Cutting a byte stream into frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import MalformedMessage
from broker.server.receive import (
    POOLED_BYTES_MIN,
    SHARED_BYTES,
    STEP_BYTES,
    BufferPool,
    FrameReader,
)

SIZE_MAX = 10_000_000


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def feed(reader: FrameReader, data: bytes, piece: int) -> list[bytes]:
    """All frames, receiving at most `piece` bytes at a time."""
    found = []
    position = 0
    while position < len(data):
        space = reader.space()
        count = min(len(space), piece, len(data) - position)
        space[:count] = data[position : position + count]
        reader.received(count)
        position += count
        while (frame := reader.next_frame()) is not None:
            found.append(bytes(frame))
        reader.keep()
    return found


@given(bodies=st.lists(st.binary(max_size=300), max_size=8), piece=st.integers(1, 400))
def test_frames_are_the_same_however_they_arrive(bodies: list[bytes], piece: int) -> None:
    pool = BufferPool()
    assert feed(FrameReader(pool, size_max=SIZE_MAX), framed(*bodies), piece) == bodies
    assert pool.bytes_in_use == 0


@pytest.mark.parametrize("size", [SHARED_BYTES, STEP_BYTES - 1, STEP_BYTES + 1, 3 * STEP_BYTES])
def test_big_frames_arrive_whole(size: int) -> None:
    pool = BufferPool()
    bodies = [b"a" * 10, bytes(range(256)) * (size // 256), b"z"]
    assert feed(FrameReader(pool, size_max=SIZE_MAX), framed(*bodies), 100_000) == bodies
    assert pool.bytes_in_use == 0


def test_a_reader_that_stops_early_goes_on_later() -> None:
    pool = BufferPool()
    first, second = FrameReader(pool, size_max=100), FrameReader(pool, size_max=100)
    data = framed(b"one", b"two", b"three")
    space = first.space()
    space[: len(data)] = data
    first.received(len(data))
    frame = first.next_frame()
    assert frame is not None
    assert bytes(frame) == b"one"
    first.keep()
    assert feed(second, framed(b"other"), 100) == [b"other"]
    assert first.has_kept
    rest = []
    while (frame := first.next_frame()) is not None:
        rest.append(bytes(frame))
    assert rest == [b"two", b"three"]


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    reader = FrameReader(BufferPool(), size_max=100)
    with pytest.raises(MalformedMessage):
        feed(reader, size.to_bytes(4, "big", signed=True), 4)


def test_a_size_that_is_only_announced_costs_a_few_kilobytes() -> None:
    pool = BufferPool()
    readers = [FrameReader(pool, size_max=2**31 - 1) for _ in range(2_000)]
    for reader in readers:
        assert feed(reader, (2**20).to_bytes(4, "big") + bytes(100), 104) == []
        assert reader.in_pieces
    assert pool.bytes_in_use == 2_000 * POOLED_BYTES_MIN <= 8 << 20
    for reader in readers:
        reader.release()
    assert pool.bytes_in_use == 0


@pytest.mark.parametrize("arrived", [1, 5_000, 70_000, 300_000, 2_000_000])
def test_a_buffer_is_at_most_twice_as_large_as_what_arrived(arrived: int) -> None:
    pool = BufferPool()
    reader = FrameReader(pool, size_max=2**31 - 1)
    assert feed(reader, (2**30).to_bytes(4, "big") + bytes(arrived), 1_000) == []
    assert pool.bytes_in_use <= max(2 * arrived, POOLED_BYTES_MIN)


def test_the_last_of_many_requests_arrives_in_one_more_read() -> None:
    pool = BufferPool()
    reader = FrameReader(pool, size_max=SIZE_MAX)
    sent = framed(*[bytes(64_000)] * 5)
    arrived = len(reader.space())
    reader.space()[:] = sent[:arrived]
    reader.received(arrived)
    while reader.next_frame() is not None:
        pass
    assert len(reader.space()) == len(sent) - arrived  # not a few KiB of it


def test_buffers_are_used_again() -> None:
    pool = BufferPool()
    first = pool.take(70_000)
    pool.give(first)
    assert pool.take(100_000) is first
