"""Connection: one socket to one broker, driven by the I/O thread, never blocking.

    CONNECTING --tcp--> SECURING --tls--> OPENING --session--> READY
         |                 |                 |                   |
         +-----------------+--- any error: raised to the owner, which closes and fails its requests

Responses come in the order of the requests. Small ones are cut out of a scratch buffer; one that
does not fit is received into a buffer of its own, and its record bytes stay there (views).
"""

import os
import socket
import ssl
from collections import deque
from concurrent.futures import Future
from enum import Enum
from functools import lru_cache
from itertools import islice
from selectors import EVENT_READ, EVENT_WRITE
from typing import cast

from broker.client.config import NetworkConfig
from broker.client.session import Session, open_session
from broker.errors import (
    AuthenticationFailed,
    ClientError,
    ConnectionFailed,
    ErrorCode,
    MalformedMessage,
)
from broker.protocol import frame
from broker.protocol.messages.metadata import ApiVersionsResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.sockets import Address, Socket, Sockets

SCRATCH_BYTES = 65_536
OUTGOING_BYTES_MAX = 1024 * 1024  # more stays in the queue, where it can still time out
BUFFERS_PER_SEND = 64
CORRELATION_BYTES = 4
CACHED_VERSIONS_MAX = 8
# A broker that vanished is noticed after a minute, even if nothing is sent: a request to join a
# group may wait for minutes. Systems without some of these options use their defaults.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class CannotEncode(ClientError):
    """A request has a value that its field of the protocol cannot hold."""


class Exchange:
    """A request and the future of its response."""

    __slots__ = (
        "correlation_id",
        "deadline_ms",
        "future",
        "request",
        "timeout_ms",
        "version",
        "version_max",
    )

    def __init__(self, request: object, *, timeout_ms: int, deadline_ms: int) -> None:
        self.request = request
        self.timeout_ms = timeout_ms
        self.deadline_ms = deadline_ms
        self.version_max: int | None = None
        self.version = -1
        self.correlation_id = -1
        self.future: Future[object] = Future()
        self.future.set_running_or_notify_cancel()  # requests cannot be cancelled

    @property
    def has_answer(self) -> bool:
        """Whether the broker responds: not to acks=0."""
        return not (isinstance(self.request, ProduceRequest) and self.request.acks == 0)

    @property
    def name(self) -> str:
        """The name of the request, for messages."""
        return type(self.request).__name__.removesuffix("Request")


class ConnectionPhase(Enum):
    """The phases of opening a connection."""

    CONNECTING = "connecting"
    SECURING = "securing"
    OPENING = "opening"
    READY = "ready"


class Connection:
    """One connection; every method belongs to the I/O thread."""

    def __init__(
        self,
        address: tuple[str, int],
        config: NetworkConfig,
        tls: ssl.SSLContext | None,
        sockets: Sockets,
    ) -> None:
        """Start to connect; raises ConnectionFailed if the address cannot be resolved."""
        self.phase = ConnectionPhase.CONNECTING
        self.session = Session({})
        self.in_flight: deque[Exchange] = deque()
        self._host, self._port = address
        self._config = config
        self._tls = tls
        self._sockets = sockets
        self._opening = open_session(config)
        self._correlation_id = 0
        self._outgoing: deque[memoryview] = deque()
        self._outgoing_bytes = 0
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_filled = 0
        self._body: bytearray | None = None
        self._body_filled = 0
        self._tls_wants_write = False
        # A slow name server stops the I/O thread: names are looked up at each connect, as the
        # addresses behind them move, and the standard library has no asynchronous lookup.
        self._addresses = self._resolve()
        self.socket = self._connect_next()

    def _resolve(self) -> deque[tuple[int, Address]]:
        try:
            return deque(self._sockets.resolve(self._host, self._port))
        except OSError as error:
            raise ConnectionFailed(f'cannot resolve "{self._host}": {error}') from error

    def _connect_next(self) -> Socket:
        failure: OSError | None = None
        while self._addresses:
            family, address = self._addresses.popleft()
            made = self._sockets.open(family)
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(made)
            for option, size in (
                (socket.SO_SNDBUF, self._config.send_buffer_bytes),
                (socket.SO_RCVBUF, self._config.receive_buffer_bytes),
            ):
                if size > 0:
                    made.setsockopt(socket.SOL_SOCKET, option, size)
            try:
                made.connect(address)
            except BlockingIOError:
                return made
            except OSError as error:
                made.close()
                failure = error
            else:
                return made
        raise ConnectionFailed(f"cannot connect to {self.peer}: {failure}")

    @property
    def peer(self) -> str:
        """The address, for messages."""
        return f"{self._host}:{self._port}"

    @property
    def events(self) -> int:
        """The events that the selector must watch."""
        if self.phase is ConnectionPhase.CONNECTING:
            return EVENT_WRITE
        if self.phase is ConnectionPhase.SECURING:
            return EVENT_WRITE if self._tls_wants_write else EVENT_READ
        return EVENT_READ | EVENT_WRITE if self._outgoing else EVENT_READ

    @property
    def accepts(self) -> bool:
        """Whether another request may be written now."""
        return (
            self.phase is ConnectionPhase.READY
            and len(self.in_flight) < self._config.requests_in_flight_max
            and self._outgoing_bytes < OUTGOING_BYTES_MAX
        )

    @property
    def has_outgoing(self) -> bool:
        """Whether bytes wait to be written."""
        return bool(self._outgoing)

    def close(self) -> None:
        """Close the socket; the owner fails the requests in flight."""
        self.socket.close()

    # --- the owner's calls --------------------------------------------------------------------

    def advance(self) -> None:
        """Do what the socket allows; raises when the connection is broken."""
        if self.phase is ConnectionPhase.CONNECTING:
            self._finish_connect()
        if self.phase is ConnectionPhase.SECURING:
            self._finish_tls()
        if self.phase in (ConnectionPhase.OPENING, ConnectionPhase.READY):
            self._receive()
            self.flush()

    def send(self, exchange: Exchange) -> None:
        """Encode a request in the highest common version and queue its bytes."""
        exchange.version = self.session.version(exchange.request, exchange.version_max)
        self._queue(exchange)

    def flush(self) -> None:
        """Write as many bytes as the socket accepts."""
        try:
            while self._outgoing:
                if self._tls is None:
                    parts = list(islice(self._outgoing, BUFFERS_PER_SEND))
                    self._drop_sent(self.socket.sendmsg(parts))
                else:
                    self._drop_sent(self.socket.send(self._outgoing[0]))
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise self._broken(error) from error

    # --- opening ------------------------------------------------------------------------------

    def _finish_connect(self) -> None:
        failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self.socket.close()
            if not self._addresses:
                reason = os.strerror(failed).lower()
                raise ConnectionFailed(f"cannot connect to {self.peer}: {reason}")
            self.socket = self._connect_next()
            return
        if self._tls is None:
            self._open()
            return
        self.phase = ConnectionPhase.SECURING
        try:
            secured = self._tls.wrap_socket(
                cast(socket.socket, self.socket),
                server_hostname=self._host,
                do_handshake_on_connect=False,
            )
            self.socket = cast(Socket, secured)
        except OSError as error:  # the peer has just closed the connection
            raise self._broken(error) from error

    def _finish_tls(self) -> None:
        secured = cast(ssl.SSLSocket, self.socket)
        try:
            secured.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as wanted:
            self._tls_wants_write = isinstance(wanted, ssl.SSLWantWriteError)
            return
        except OSError as error:
            raise self._broken(error) from error
        self._open()

    def _open(self) -> None:
        self.phase = ConnectionPhase.OPENING
        self._continue_opening(None)

    def _continue_opening(self, response: object) -> None:
        try:
            request, version = self._opening.send(cast("None", response))
        except StopIteration as done:
            self.session = cast(Session, done.value)
            self.phase = ConnectionPhase.READY
            return
        step = Exchange(request, timeout_ms=0, deadline_ms=0)
        step.version = version
        self._queue(step)

    # --- writing ------------------------------------------------------------------------------

    def _queue(self, exchange: Exchange) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        exchange.correlation_id = self._correlation_id
        try:
            parts = frame.encode_request(
                exchange.request,
                exchange.version,
                correlation_id=exchange.correlation_id,
                client_id=self._config.client_id,
            )
        except Exception as error:
            raise CannotEncode(f"cannot encode {exchange.name}: {error}") from error
        for part in parts:
            view = memoryview(cast(bytes, part))
            self._outgoing.append(view)
            self._outgoing_bytes += len(view)
        if exchange.has_answer:
            self.in_flight.append(exchange)
        else:
            exchange.future.set_result(None)

    def _drop_sent(self, count: int) -> None:
        self._outgoing_bytes -= count
        while count:
            first = self._outgoing[0]
            if count < len(first):
                self._outgoing[0] = first[count:]
                return
            count -= len(first)
            self._outgoing.popleft()

    # --- reading ------------------------------------------------------------------------------

    def _receive(self) -> None:
        try:
            while True:
                into = self._free_space()
                count = self.socket.recv_into(into)
                if count == 0:
                    raise ConnectionFailed(f"{self.peer} closed the connection")
                self._take(count)
                # The selector reports a plain socket again; TLS may hold decrypted bytes back.
                if self._tls is None and count < len(into):
                    return
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise self._broken(error) from error

    def _free_space(self) -> memoryview:
        if self._body is not None:
            return memoryview(self._body)[self._body_filled :]
        return memoryview(self._scratch)[self._scratch_filled :]

    def _take(self, count: int) -> None:
        if self._body is None:
            self._scratch_filled += count
            self._cut_frames()
            return
        self._body_filled += count
        if self._body_filled == len(self._body):
            body, self._body = self._body, None
            self._answer(memoryview(body))

    def _cut_frames(self) -> None:
        filled, position = self._scratch_filled, 0
        scratch = memoryview(self._scratch)
        while filled - position >= frame.SIZE_BYTES:
            (size,) = frame.SIZE.unpack_from(scratch, position)
            self._check_size(size)
            start = position + frame.SIZE_BYTES
            if filled - start < size:
                self._body = bytearray(size)
                self._body_filled = filled - start
                self._body[: self._body_filled] = scratch[start:filled]
                self._scratch_filled = 0
                return
            position = start + size
            self._answer(memoryview(bytes(scratch[start:position])))
        rest = bytes(scratch[position:filled])
        scratch[: len(rest)] = rest
        self._scratch_filled = len(rest)

    def _check_size(self, size: int) -> None:
        if not CORRELATION_BYTES <= size <= self._config.receive_bytes_max:
            raise MalformedMessage(
                f"{self.peer} announces a response of {size} bytes; between {CORRELATION_BYTES} "
                f"and {self._config.receive_bytes_max} are accepted"
            )

    def _answer(self, received: memoryview) -> None:
        if not self.in_flight:
            raise MalformedMessage(f"{self.peer} sent an unexpected response")
        exchange = self.in_flight[0]
        (correlation_id,) = frame.SIZE.unpack_from(received)
        if correlation_id != exchange.correlation_id:
            raise MalformedMessage(
                f"{self.peer} answered request {correlation_id} when {exchange.correlation_id} "
                f"({exchange.name}) was due"
            )
        response = _decode(exchange, received)
        self.in_flight.popleft()
        if self.phase is ConnectionPhase.OPENING:
            self._continue_opening(response)
        else:
            exchange.future.set_result(response)

    def _broken(self, error: OSError) -> ConnectionFailed | AuthenticationFailed:
        hint = ""
        if self._tls is not None and self.phase is not ConnectionPhase.READY:
            hint = "check security_protocol, the port, and the certificates on both sides"
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                return AuthenticationFailed(f"TLS with {self.peer} failed: {error}", hint=hint)
        return ConnectionFailed(f"the connection to {self.peer} broke: {error}", hint=hint)


def _keep_alive(made: Socket) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)


def _decode(exchange: Exchange, received: memoryview) -> object:
    """Decode a response; a refused ApiVersions request has a response of version 0."""
    cls = frame.response_class(exchange.request)
    if cls is not ApiVersionsResponse:
        return frame.decode_response(cls, exchange.version, received)
    refused = received[CORRELATION_BYTES : CORRELATION_BYTES + 2] == _UNSUPPORTED_VERSION
    return _decode_versions(0 if refused else exchange.version, bytes(received))


@lru_cache(maxsize=CACHED_VERSIONS_MAX)
def _decode_versions(version: int, received: bytes) -> object:
    """Decode the first response of every connection, which is long and always the same."""
    return frame.decode_response(ApiVersionsResponse, version, memoryview(received))


_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
