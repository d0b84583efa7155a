"""Sending: responses to a socket that may be slow, without holding their bytes in memory.

Slices of segment files are sent inside the kernel, as fast as the client receives them; the rest
remains a slice. Small slices are read, so that a response is one system call.
"""

import errno
import os
import socket
from collections import deque
from collections.abc import Sequence

from broker.model import FileSlice
from broker.protocol.message import Attachment
from broker.sockets import Socket

# Below this size copying is cheaper than the two more system calls that sendfile takes.
INLINE_BYTES_MAX = 16 * 1024
# A connection sends at most this much at a time, then others are served.
TURN_BYTES_MAX = 8 * 1024 * 1024
PIECE_BYTES_MAX = 1024 * 1024
READ_BYTES_MAX = 256 * 1024
BUFFERS_MAX = 512  # half of the kernel's limit per call

NO_SENDFILE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


class SendQueue:
    """The unsent data of one connection."""

    __slots__ = ("_parts", "_sendfile_works", "_socket", "bytes_left", "bytes_sent")

    def __init__(self, connected: Socket) -> None:
        self._socket = connected
        self._parts: deque[bytes | bytearray | memoryview | FileSlice] = deque()
        self._sendfile_works = isinstance(connected, socket.socket)  # a simulated one does not
        self.bytes_left = 0
        self.bytes_sent = 0

    def __bool__(self) -> bool:
        """Whether there is unsent data."""
        return bool(self._parts)

    def add(self, parts: Sequence[Attachment]) -> None:
        """Append the parts of a response to the queue."""
        for part in parts:
            self.bytes_left += len(part)
            if isinstance(part, FileSlice):
                self._parts.append(part.read() if part.size <= INLINE_BYTES_MAX else part)
            elif len(part):
                assert isinstance(part, (bytes, bytearray, memoryview))
                self._parts.append(part)

    def send(self) -> bool:
        """Send as much as the socket accepts now; True if everything is sent."""
        parts = self._parts
        turn_end = self.bytes_sent + TURN_BYTES_MAX
        try:
            while parts and self.bytes_sent < turn_end:
                first = parts[0]
                if isinstance(first, FileSlice):
                    self._send_slice(first)
                else:
                    self._send_bytes()
        except (BlockingIOError, InterruptedError):
            pass
        return not parts

    def _send_bytes(self) -> None:
        """Send all buffers in front of the next slice with one call."""
        parts = self._parts
        buffers: list[bytes | bytearray | memoryview] = []
        flags = 0
        for part in parts:
            if isinstance(part, FileSlice) or len(buffers) == BUFFERS_MAX:
                flags = socket.MSG_MORE
                break
            buffers.append(part)
        if len(buffers) == 1:
            sent = self._socket.send(buffers[0], flags)
        else:
            sent = self._socket.sendmsg(buffers, (), flags)
        self._count(sent)
        while sent:
            size = len(buffers[0])
            if sent < size:
                parts[0] = memoryview(buffers[0])[sent:]
                return
            sent -= size
            del buffers[0]
            parts.popleft()

    def _count(self, sent: int) -> None:
        self.bytes_sent += sent
        self.bytes_left -= sent

    def _send_slice(self, part: FileSlice) -> None:
        sent = self._send_piece(part)
        if sent == 0:
            raise ConnectionAbortedError("a segment file ended before the slice to be sent did")
        self._count(sent)
        part.position += sent
        part.size -= sent
        if part.size == 0:
            self._parts.popleft()

    def _send_piece(self, part: FileSlice) -> int:
        if self._sendfile_works:
            try:
                return os.sendfile(
                    self._socket.fileno(),
                    part.file.descriptor,
                    part.position,
                    min(part.size, PIECE_BYTES_MAX),
                )
            except OSError as error:
                if error.errno not in NO_SENDFILE:
                    raise
                self._sendfile_works = False
        size = min(part.size, READ_BYTES_MAX)
        return self._socket.send(part.file.read(size, part.position))
