"""A broker of a few lines on a real socket: the test says what it answers, or how it lies."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Self

from broker.protocol import frame
from broker.protocol.message import to_bytes
from broker.protocol.messages import REQUESTS
from broker.protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from broker.protocol.wire import SPECS

# Answers a decoded request with a response, with raw bytes instead of a frame, or None: hang up.
REQUEST_BYTES_MAX = 1_000_000
Script = Callable[[frame.Request], object]


def all_versions() -> ApiVersionsResponse:
    """Everything our codec knows."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, SPECS[cls].versions.first, SPECS[cls].versions.last)
            for key, cls in REQUESTS.items()
        ]
    )


class FakeBroker:
    """Accepts connections, one thread each, and answers by the script."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.requests: list[frame.Request] = []
        self.connections_made = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(60)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections_made += 1
            self._start(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._connections.append(connection)
            while self._answer(connection):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def _answer(self, connection: socket.socket) -> bool:
        head = _receive(connection, 4)
        if head is None:
            return False
        (size,) = struct.unpack(">i", head)
        body = _receive(connection, size) if 0 < size < REQUEST_BYTES_MAX else None
        if body is None:
            return False
        request = frame.decode_request(memoryview(body))
        self.requests.append(request)
        answer = self._script(request)
        if answer is None and isinstance(request.body, ApiVersionsRequest):
            answer = all_versions()
        if answer is None:
            return False
        if not isinstance(answer, bytes):
            parts = frame.encode_response(
                request.api_key, request.api_version, request.correlation_id, answer
            )
            answer = b"".join(bytes(part) for part in parts)  # type: ignore[call-overload]
        connection.sendall(answer)
        return True


def refused_versions(correlation_id: int) -> bytes:
    """ApiVersions in an unknown version, as brokers answer it: version 0 with an error."""
    body = struct.pack(">i", correlation_id) + to_bytes(
        ApiVersionsResponse(35, all_versions().api_keys), 0
    )
    return struct.pack(">i", len(body)) + body


def _receive(connection: socket.socket, size: int) -> bytes | None:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            return None
        received += piece
    return received
