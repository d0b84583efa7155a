"""HTTP/2 without TLS: connections that begin with its preface use it, others HTTP/1.1.

ksqlDB's clients read push queries and write rows with HTTP/2. Each line of a streamed response is a
separate frame, since some clients read one row per frame.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from starlette.types import Message
from uvicorn import Config
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState

logger = logging.getLogger(__name__)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAMS_MAX = 100  # per connection; h2 announces the same limit to clients
UNSENT_BYTES_MAX = 1024 * 1024  # responses wait before this; larger amounts are replies to pings
IDLE_SECONDS = 600  # ksqlDB's default
NOT_FOR_HTTP_2 = frozenset({b"connection", b"transfer-encoding", b"keep-alive", b"upgrade"})


class HttpConnection(asyncio.Protocol):
    """The protocol of new connections: selects the HTTP version by the first bytes."""

    silent = True  # see broker/rest/idle_connections.py

    # Any: uvicorn passes the state of applications, which is unused.
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: Mapping[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._given = (config, server_state, app_state)
        # Any: uvicorn's type of protocols only includes its own.
        self._connections: Any = server_state.connections
        self._transport: asyncio.Transport | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The HTTP version is not known yet."""
        # Not checked: uvloop's transports have another base class.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected before it sent anything."""
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Pass the connection on when the HTTP version is known."""
        self._received += data
        begun = self._received[: len(PREFACE)]
        if begun == PREFACE:
            self._hand_over(Http2Connection)
        elif not PREFACE.startswith(begun):
            self._hand_over(AutoHTTPProtocol)

    def shutdown(self) -> None:
        """The server is shutting down."""
        if self._transport is not None:
            self._transport.close()

    # Any: uvicorn's protocols are created with its own arguments.
    def _hand_over(self, protocol: Any) -> None:
        assert self._transport is not None
        self._connections.discard(self)
        speaking = protocol(*self._given)
        self._transport.set_protocol(speaking)
        speaking.connection_made(self._transport)
        speaking.data_received(self._received)


class Http2Connection(asyncio.Protocol):
    """One connection with its streams; each is a request to the ASGI application."""

    # Any: see above.
    def __init__(
        self, config: Config, server_state: ServerState, app_state: Mapping[str, Any]
    ) -> None:
        del app_state
        # Any: an ASGI application, possibly wrapped by uvicorn.
        self.application: Any = config.loaded_app
        self._limit = config.limit_concurrency
        # Any: see above.
        self._connections: Any = server_state.connections
        self._tasks = server_state.tasks
        self._transport: asyncio.Transport | None = None
        self.protocol = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._streams: dict[int, Http2Exchange] = {}
        self._running = 0  # including streams that the client has cancelled
        self._ending = False
        self._idle: asyncio.TimerHandle | None = None
        # Set whenever there may be room to send.
        self.room = asyncio.Event()
        self.writable = True

    @property
    def idle(self) -> bool:
        """Whether there is no pending request."""
        return not self._streams

    # --- asyncio ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the connection."""
        # Not checked: uvloop's transports have another base class.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        self.protocol.initiate_connection()
        self.flush()
        self._watch_idleness()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._connections.discard(self)
        self._transport = None
        self._stop_watching()
        self._cancel_all()

    def pause_writing(self) -> None:
        """The client is slow."""
        self.writable = False

    def resume_writing(self) -> None:
        """The client has read enough data."""
        self.writable = True
        self.room.set()

    def data_received(self, data: bytes) -> None:
        """Receive frames, complete or partial."""
        try:
            for event in self.protocol.receive_data(data):
                self._take(event)
        except ProtocolError as error:
            logger.debug("a client violated HTTP/2: %s", error)
            self._close()
            return
        self.flush()
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            transport.abort()  # it requests replies and does not read them

    def shutdown(self) -> None:
        """The server is shutting down: close after pending responses."""
        self._ending = True
        if not self._streams:
            self._close()

    # --- frames -------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._begin(event.stream_id or 0, event.headers or [])
            case DataReceived():
                found = self._streams.get(event.stream_id or 0)
                if found is None:  # already answered: the data is not read
                    self.acknowledge(event.flow_controlled_length or 0, event.stream_id or 0)
                else:
                    found.receive_part(event.data or b"", event.flow_controlled_length or 0)
            case StreamEnded():
                if (found := self._streams.get(event.stream_id or 0)) is not None:
                    found.receive_end()
            case StreamReset():
                if (found := self._streams.pop(event.stream_id or 0, None)) is not None:
                    found.cancel()
                    self.room.set()
            case WindowUpdated() | RemoteSettingsChanged():
                self.room.set()
            case ConnectionTerminated():
                self._close()

    # Any: pairs of bytes, in a type of h2.
    def _begin(self, stream_id: int, headers: list[Any]) -> None:
        limit = self._limit or sys.maxsize
        full = max(len(self._tasks), len(self._connections)) >= limit
        if full or self._ending or self._running >= STREAMS_MAX:
            self.reset(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        self._stop_watching()
        scope = scope_of(headers)
        exchange = Http2Exchange(self, stream_id, has_body=scope["method"] != "HEAD")
        self._streams[stream_id] = exchange
        self._running += 1
        task = asyncio.ensure_future(exchange.run(scope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reset(self, stream_id: int, code: ErrorCodes) -> None:
        """Reset a stream."""
        with suppress(ProtocolError):  # the client was faster
            self.protocol.reset_stream(stream_id, code)
        self.flush()

    def acknowledge(self, length: int, stream_id: int) -> None:
        """Allow the client to send more bytes."""
        if length and self._transport is not None:
            with suppress(ProtocolError):  # closed meanwhile
                self.protocol.acknowledge_received_data(length, stream_id)
            self.flush()

    def finished(self, exchange: "Http2Exchange") -> None:
        """A response was sent, or its client has cancelled the request."""
        self._running -= 1
        self._streams.pop(exchange.stream_id, None)
        if self._streams or self._transport is None:
            return
        if self._ending:
            self._close()
        else:
            self._watch_idleness()

    def flush(self) -> None:
        """Write the pending data of the protocol."""
        data = self.protocol.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    def _cancel_all(self) -> None:
        for each in self._streams.values():
            each.cancel()
        self._streams.clear()
        self.room.set()

    def _close(self) -> None:
        self._cancel_all()
        if self._transport is not None:
            self.protocol.close_connection()
            self.flush()
            self._transport.close()

    def _watch_idleness(self) -> None:
        self._stop_watching()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close)

    def _stop_watching(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class Http2Exchange:
    """A request and its response."""

    def __init__(self, connection: Http2Connection, stream_id: int, *, has_body: bool) -> None:
        """Of one stream; responses to some requests have no body."""
        self._connection = connection
        self.stream_id = stream_id
        self._has_body = has_body
        self._parts: asyncio.Queue[tuple[Message, int]] = asyncio.Queue()
        self._request_ended = False
        self._over = False  # answered or cancelled

    def receive_part(self, data: bytes, length: int) -> None:
        """Add a part of the request's body; it counts until the application reads it."""
        self._parts.put_nowait(({"type": "http.request", "body": data, "more_body": True}, length))

    def receive_end(self) -> None:
        """The request is complete."""
        self._request_ended = True
        self._parts.put_nowait(({"type": "http.request", "body": b"", "more_body": False}, 0))

    def cancel(self) -> None:
        """The client has cancelled the request."""
        self._over = True
        self._parts.put_nowait(({"type": "http.disconnect"}, 0))

    async def run(self, scope: Mapping[str, object]) -> None:
        """Run the application."""
        try:
            await self._connection.application(scope, self._receive, self._send)
        except Exception:
            logger.exception("a request failed")
        finally:
            if not self._over:
                self._fail()
            while not self._parts.empty():  # unread data counts for the whole connection
                self._connection.acknowledge(self._parts.get_nowait()[1], self.stream_id)
            self._connection.finished(self)

    async def _receive(self) -> Message:
        if self._over and self._parts.empty():
            return {"type": "http.disconnect"}
        message, length = await self._parts.get()
        self._connection.acknowledge(length, self.stream_id)
        return message

    async def _send(self, message: Message) -> None:
        if self._over:
            return
        if message["type"] == "http.response.start":
            self._connection.protocol.send_headers(self.stream_id, answered_headers(message))
            self._connection.flush()
        elif message["type"] == "http.response.body":
            body = message.get("body", b"") if self._has_body else b""
            await self._send_body(body, more=message.get("more_body", False))

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        for part in body.splitlines(keepends=True) if more else [body]:
            sent = 0
            while sent < len(part) and not self._over:
                sent += self._send_some(part[sent:])
                await self._wait_for_room(blocked=sent < len(part))
        self._connection.flush()
        if not more and not self._over:
            self._end()

    def _send_some(self, data: bytes) -> int:
        """Send as much as the client accepts in a frame; returns the number of bytes."""
        protocol = self._connection.protocol
        window = protocol.local_flow_control_window(self.stream_id)
        length = min(len(data), window, protocol.max_outbound_frame_size)
        if length <= 0:
            return 0
        protocol.send_data(self.stream_id, data[:length])
        return length

    async def _wait_for_room(self, *, blocked: bool) -> None:
        connection = self._connection
        if blocked:
            connection.flush()
        while not self._over and not (connection.writable and not (blocked and self._is_full())):
            connection.room.clear()
            await connection.room.wait()

    def _is_full(self) -> bool:
        return self._connection.protocol.local_flow_control_window(self.stream_id) <= 0

    def _end(self) -> None:
        self._over = True
        protocol = self._connection.protocol
        protocol.end_stream(self.stream_id)
        if not self._request_ended:  # the rest of it is not needed
            self._connection.reset(self.stream_id, ErrorCodes.NO_ERROR)
        self._connection.flush()
        self._parts.put_nowait(({"type": "http.disconnect"}, 0))

    def _fail(self) -> None:
        self._over = True
        self._connection.reset(self.stream_id, ErrorCodes.INTERNAL_ERROR)


def scope_of(headers: list[tuple[bytes, bytes]]) -> dict[str, object]:
    """The ASGI scope of a request."""
    about = {name: value for name, value in headers if name.startswith(b":")}
    path, _, query = about.get(b":path", b"/").partition(b"?")
    others = [(name, value) for name, value in headers if not name.startswith(b":")]
    if b":authority" in about:
        others.insert(0, (b"host", about[b":authority"]))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "scheme": "http",
        "method": about.get(b":method", b"").decode("ascii", errors="replace"),
        "root_path": "",
        "path": unquote(path.decode("ascii", errors="replace")),
        "raw_path": path,
        "query_string": query,
        "headers": others,
        "server": None,
        "client": None,
    }


def answered_headers(message: Message) -> Iterator[tuple[bytes, bytes]]:
    """The headers of a response in HTTP/2."""
    yield b":status", str(message["status"]).encode()
    for name, value in message.get("headers", ()):
        if name.lower() not in NOT_FOR_HTTP_2:
            yield name.lower(), value
