"""A client that is a plain socket: it sends whatever bytes a test likes."""

import socket
from struct import Struct
from types import TracebackType
from typing import Self, TypeVar, cast

from broker.protocol.frame import decode_response, encode_request
from broker.protocol.wire import SPECS

T = TypeVar("T")

SIZE = Struct(">i")
TIMEOUT_SECONDS = 20.0


class RawClient:
    """One connection."""

    def __init__(self, address: str, *, receive_buffer_bytes: int = 0) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(TIMEOUT_SECONDS)
        try:
            self.socket.connect((host, int(port)))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame without its size; EOFError when the broker has closed."""
        (size,) = SIZE.unpack(self.receive(SIZE.size))
        return self.receive(size)

    def receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def is_closed(self) -> bool:
        """Wait for the broker to close; False if it sends something first."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def ask(self, request: object, response: type[T], version: int | None = None) -> T:
        spec = SPECS[type(request)]
        version = spec.versions.last if version is None else version
        self.send(frame_of(request, version))
        return decode_response(response, version, memoryview(self.receive_frame()))


def frame_of(request: object, version: int, correlation_id: int = 1) -> bytes:
    """A request frame, size included."""
    parts = encode_request(request, version, correlation_id=correlation_id, client_id="raw")
    return b"".join(bytes(cast(bytes, part)) for part in parts)


def correlation_id_of(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")
