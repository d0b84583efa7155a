"""A client of one socket that sends what it is told, byte by byte if need be."""

import socket
from struct import Struct
from types import TracebackType
from typing import Self, TypeVar

from broker.protocol.frame import decode_response, encode_request

T = TypeVar("T")

SIZE = Struct(">i")


class RawClient:
    """One connection; a broken one raises OSError or EOFError."""

    def __init__(self, address: str, *, timeout_s: float = 10.0) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)

    def call(self, request: object, version: int, response: type[T]) -> T:
        """Sends a request and reads its response."""
        parts = encode_request(request, version, correlation_id=1, client_id="raw")
        self.send(b"".join(bytes(part) for part in parts))  # type: ignore[call-overload]
        return decode_response(response, version, memoryview(self.receive()))

    def send(self, data: bytes | bytearray) -> None:
        """Sends bytes as they are."""
        self._socket.sendall(data)

    def send_frame(self, frame: bytes | bytearray) -> None:
        """Sends bytes with their size before them."""
        self.send(SIZE.pack(len(frame)) + frame)

    def receive(self) -> bytes:
        """Reads a frame, without its size."""
        (size,) = SIZE.unpack(self._exactly(SIZE.size))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
