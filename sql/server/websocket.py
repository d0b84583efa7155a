"""WebSocketConnection: one WebSocket (RFC 6455) of the HTTP server for an ASGI application.

Text frames are sent, waiting while the client is slow. Frames of the client are validated and
ignored, except for pings, which are answered, and close frames.
"""

import asyncio
import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from typing import Any, cast

from starlette.types import Message
from uvicorn import Config
from uvicorn.server import ServerState

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
VERSION = b"13"
KEY_BYTES = 16
FRAME_BYTES_MAX = 64 * 1024
REASON_BYTES_MAX = 123
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTINUATION = 0
OPCODES = frozenset({CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG})
FINAL, MASKED, RESERVED = 0x80, 0x80, 0x70
LENGTH_16, LENGTH_64 = 126, 127
GOING_AWAY, PROTOCOL_ERROR, TOO_BIG, INTERNAL_ERROR = 1001, 1002, 1009, 1011


class FrameError(Exception):
    """The client sent an invalid frame."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is the close code of the connection."""
        super().__init__(message)
        self.code = code


def frame(opcode: int, content: bytes) -> bytes:
    """A whole frame, as sent by servers."""
    length = len(content)
    if length < LENGTH_16:
        head = struct.pack("!BB", FINAL | opcode, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", FINAL | opcode, LENGTH_16, length)
    else:
        head = struct.pack("!BBQ", FINAL | opcode, LENGTH_64, length)
    return head + content


def take_frame(data: bytearray) -> tuple[int, bytes] | None:
    """Remove and return the first frame of received data; None if it is incomplete."""
    if len(data) < 2:
        return None
    opcode, length, start = data[0] & 0x0F, data[1] & 0x7F, 2
    if data[0] & RESERVED or opcode not in OPCODES or not data[1] & MASKED:
        raise FrameError(PROTOCOL_ERROR, "not a frame")
    if opcode >= CLOSE and (length >= LENGTH_16 or not data[0] & FINAL):
        raise FrameError(PROTOCOL_ERROR, "not a control frame")
    if length >= LENGTH_16:
        size = 2 if length == LENGTH_16 else 8
        if len(data) < start + size:
            return None
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if length > FRAME_BYTES_MAX:
        raise FrameError(TOO_BIG, "too long")
    end = start + 4 + length
    if len(data) < end:
        return None
    mask = data[start : start + 4]
    content = bytes(byte ^ mask[at & 3] for at, byte in enumerate(data[start + 4 : end]))
    del data[:end]
    return opcode, content


def accept_token(key: bytes) -> bytes | None:
    """The Sec-WebSocket-Accept of a key; None if the key is invalid."""
    try:
        if len(base64.b64decode(key, validate=True)) != KEY_BYTES:
            return None
    except binascii.Error:
        return None
    digest = hashlib.sha1(key + MAGIC, usedforsecurity=False).digest()
    return base64.b64encode(digest)


class WebSocketConnection(asyncio.Protocol):
    """The protocol of connections whose client requests a WebSocket."""

    # Any: uvicorn passes the state of applications, which is unused.
    def __init__(
        self, config: Config, server_state: ServerState, app_state: Mapping[str, Any]
    ) -> None:
        del app_state
        # Any: an ASGI application, possibly wrapped by uvicorn.
        self._application: Any = config.loaded_app
        self._state = server_state
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._token: bytes | None = None
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._accepted = False
        self._ended = False

    # --- asyncio ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the connection."""
        # Not checked: uvloop's transports have another base class.
        self._transport = cast("asyncio.Transport", transport)
        # Any: uvicorn's type of protocols only includes its own.
        connections: Any = self._state.connections
        connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        # Any: see above.
        connections: Any = self._state.connections
        connections.discard(self)
        self._end()

    def pause_writing(self) -> None:
        """The client is slow."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client has read enough data."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Receive the request, which is complete, then frames."""
        if self._token is None:
            self._open(data)
            return
        self._received += data
        try:
            while (found := take_frame(self._received)) is not None:
                self._take(*found)
        except FrameError as error:
            self._close(error.code, str(error))

    def shutdown(self) -> None:
        """The server is shutting down."""
        self._close(GOING_AWAY, "the server is shutting down")

    # --- the handshake ------------------------------------------------------------------------

    def _open(self, request: bytes) -> None:
        line, *lines = request.split(b"\r\n")
        headers = []
        for each in lines:
            name, colon, value = each.partition(b":")
            if colon:
                headers.append((name.strip().lower(), value.strip()))
        given = dict(headers)
        self._token = accept_token(given.get(b"sec-websocket-key", b""))
        if self._token is None or given.get(b"sec-websocket-version") != VERSION:
            self._token = self._token or b""
            self._refuse(b"400 Bad Request")
            return
        path, _, query = line.split(b" ")[1].partition(b"?")
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "path": path.decode("ascii", errors="replace"),
            "query_string": query,
            "headers": headers,
        }
        self._events.put_nowait({"type": "websocket.connect"})
        task = asyncio.ensure_future(self._run(scope))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _run(self, scope: Mapping[str, object]) -> None:
        try:
            await self._application(scope, self._events.get, self._send)
        finally:
            self._close(INTERNAL_ERROR, "the application has ended")

    def _refuse(self, status: bytes) -> None:
        self._write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self._end()

    # --- from the application -------------------------------------------------------------------

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "websocket.accept":
                self._accepted = True
                self._write(
                    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                    b"connection: Upgrade\r\nsec-websocket-accept: "
                    + (self._token or b"")
                    + b"\r\n\r\n"
                )
            case "websocket.send":
                self._write(frame(TEXT, message["text"].encode()))
                await self._writable.wait()
            case "websocket.close":
                self._close(message.get("code", 1000), message.get("reason") or "")

    # --- from the client ------------------------------------------------------------------------

    def _take(self, opcode: int, content: bytes) -> None:
        if opcode == PING and self._writable.is_set():  # a client that does not read gets no reply
            self._write(frame(PONG, content))
        elif opcode == CLOSE:
            self._write(frame(CLOSE, content[:2]))
            self._end()

    def _close(self, code: int, reason: str) -> None:
        if self._ended:
            return
        if not self._accepted:
            self._refuse(b"403 Forbidden")
            return
        # A truncated reason must not end inside a character.
        shown = reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore").encode()
        self._write(frame(CLOSE, struct.pack("!H", code) + shown))
        self._end()

    def _write(self, data: bytes) -> None:
        if not self._ended and self._transport is not None:
            self._transport.write(data)

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._writable.set()
        self._events.put_nowait({"type": "websocket.disconnect", "code": 1000})
        if self._transport is not None:
            self._transport.close()
