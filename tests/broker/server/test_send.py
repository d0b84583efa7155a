"""Sending parts and file slices through sockets that take little at a time."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import FileSlice, OpenFile
from broker.server import send
from broker.server.send import INLINE_BYTES_MAX, SendQueue

CONTENT = bytes(range(256)) * 2000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        yield left, right


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> OpenFile:
    path = tmp_path_factory.mktemp("segment") / "file"
    path.write_bytes(CONTENT)
    return OpenFile(str(path), os.O_RDONLY)


def pump(queue: SendQueue, receiver: socket.socket, size: int) -> bytes:
    """Send and receive in turns until all has arrived."""
    received = bytearray()
    while len(received) < size:
        queue.send()
        received += receiver.recv(50_000)
    assert queue.send()
    assert not queue
    assert queue.bytes_left == 0
    return bytes(received)


Part = bytes | tuple[int, int]
parts = st.lists(
    st.one_of(
        st.binary(max_size=100),
        st.tuples(st.integers(0, 1000), st.sampled_from([1, 100, INLINE_BYTES_MAX + 1, 200_000])),
    ),
    max_size=6,
)


@given(parts=parts, sendfile_works=st.booleans())
def test_what_arrives_is_what_was_sent(
    file: OpenFile, parts: list[Part], sendfile_works: bool
) -> None:
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        queue = SendQueue(left)
        queue._sendfile_works = sendfile_works
        expected = b""
        made: list[bytes | FileSlice] = []
        for part in parts:
            if isinstance(part, bytes):
                made.append(part)
                expected += part
            else:
                made.append(FileSlice(file, *part))
                expected += CONTENT[part[0] : part[0] + part[1]]
        queue.add(made)
        assert pump(queue, right, len(expected)) == expected


def test_more_buffers_than_the_kernel_takes_at_once(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    left, right = pair
    queue = SendQueue(left)
    queue.add([b"x"] * 3000)
    assert pump(queue, right, 3000) == b"x" * 3000


def test_one_turn_is_limited(
    pair: tuple[socket.socket, socket.socket], file: OpenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "TURN_BYTES_MAX", 1000)
    monkeypatch.setattr(send, "PIECE_BYTES_MAX", 500)
    left, _ = pair
    queue = SendQueue(left)
    queue.add([FileSlice(file, 0, 100_000)])
    assert not queue.send()
    assert queue.bytes_sent == 1000


def test_a_file_that_is_too_short_breaks_the_connection(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 10)
    left, _ = pair
    queue = SendQueue(left)
    queue.add([FileSlice(OpenFile(str(path)), 0, INLINE_BYTES_MAX + 1)])
    with pytest.raises(ConnectionAbortedError):
        queue.send()
