"""A plain socket client that sends arbitrary bytes."""

import socket
from struct import Struct
from typing import Self, TypeVar, cast

from broker.protocol.frame import decode_response, encode_request
from broker.protocol.wire import SPECS

T = TypeVar("T")

SIZE = Struct(">i")


class RawClient:
    """One connection; a broken one raises OSError or EOFError."""

    def __init__(
        self, address: str, *, timeout_s: float = 60.0, receive_buffer_bytes: int = 0
    ) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect((host, int(port)))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: object, response: type[T], version: int | None = None) -> T:
        """Send a request, by default in its latest version, and read the response."""
        version = SPECS[type(request)].versions.last if version is None else version
        self.send(frame_of(request, version))
        return decode_response(response, version, memoryview(self.receive_frame()))

    def send(self, data: bytes | bytearray) -> None:
        """Send bytes unchanged."""
        self.socket.sendall(data)

    def send_frame(self, frame: bytes | bytearray) -> None:
        """Send bytes prefixed with their size."""
        self.send(SIZE.pack(len(frame)) + frame)

    def receive_frame(self) -> bytes:
        """Receive the next frame, without its size; raise EOFError if the broker has closed."""
        (size,) = SIZE.unpack(self.receive(SIZE.size))
        return self.receive(size)

    def receive(self, size: int) -> bytes:
        """Receive `size` bytes; raise EOFError if the broker has closed."""
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return bytes(data)

    def is_closed(self) -> bool:
        """Wait for the broker to close the connection; return False if it sends data first."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def frame_of(request: object, version: int, correlation_id: int = 1) -> bytes:
    """A request frame, size included."""
    parts = encode_request(request, version, correlation_id=correlation_id, client_id="raw")
    return b"".join(bytes(cast(bytes, part)) for part in parts)


def correlation_id_of(frame: bytes) -> int:
    """The correlation id of a response frame."""
    return int.from_bytes(frame[:4], "big")
