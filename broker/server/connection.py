"""Connection: requests in, one at a time and in order, responses out.

    reading ──request──> handling ──answer──> sending ──all sent──> reading
                             └──Pending──> waiting ──answer──┘

The socket is always registered with the event loop for reading. It is unregistered only when a
client sends more data while its request is pending, so that the kernel's buffers slow the client
down.
The event loop is asyncio's, or that of a simulation: five of its calls are used.
"""

import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter_ns
from typing import Protocol

from broker import concurrency
from broker.broker import Broker
from broker.errors import BrokerError, MalformedMessage, UnsupportedVersion
from broker.metrics import Metrics, RequestStats
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.frame import Request, decode_request, encode_response, peek_header
from broker.server.receive import BufferPool, FrameReader
from broker.server.send import SendQueue
from broker.sockets import Socket

logger = logging.getLogger(__name__)

# Responses to pipelined requests are sent together, up to this size.
TOGETHER_BYTES_MAX = 64 * 1024


class EventLoop(Protocol):
    """The part of asyncio's event loop that a server uses."""

    def add_reader(self, fd: Socket, callback: Callable[[], object], /) -> None:
        """Call back whenever there is data to receive."""
        ...

    def remove_reader(self, fd: Socket, /) -> bool:
        """Stop calling back."""
        ...

    def add_writer(self, fd: Socket, callback: Callable[[], object], /) -> None:
        """Call back whenever the socket accepts bytes."""
        ...

    def remove_writer(self, fd: Socket, /) -> bool:
        """Stop calling back."""
        ...

    def call_soon(self, callback: Callable[..., object], /, *args: object) -> object:
        """Call back after the callbacks that are ready now."""
        ...

    def call_soon_threadsafe(self, callback: Callable[..., object], /, *args: object) -> object:
        """The same, from another thread."""
        ...

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> object:
        """Call back after a delay in seconds."""
        ...


@dataclass(slots=True)
class ConnectionContext:
    """The resources that all connections of a server share."""

    broker: Broker
    loop: EventLoop
    pool: BufferPool
    metrics: Metrics
    request_bytes_max: int
    queued_bytes_max: int  # of incomplete requests; negative: no limit
    forget: Callable[["Connection"], None]
    thread_id: int
    background: Executor  # runs large requests, so that the loop can serve others
    now_ns: Callable[[], int] = perf_counter_ns
    # Connections that must wait for memory before they receive more.
    held: deque["Connection"] = field(default_factory=deque)
    # The connection that continues although memory is full, so that its request completes.
    completing: "Connection | None" = None

    def memory_is_full(self) -> bool:
        """Whether incomplete requests use all memory that they may."""
        return 0 <= self.queued_bytes_max < self.pool.bytes_in_use

    def may_receive(self, connection: "Connection") -> bool:
        """Whether a connection may use more memory: at most one request may exceed the limit."""
        if not self.memory_is_full():
            return True
        if self.completing is None and connection.in_pieces:
            self.completing = connection
        return self.completing is connection

    def resume_held(self) -> None:
        """Wake connections that wait for memory: all if there is some, otherwise the next one."""
        if self.completing is not None and not self.completing.in_pieces:
            self.completing = None
        while self.held and not self.memory_is_full():
            self.loop.call_soon(self.held.popleft().listen)
        if self.completing is None:
            following = next((each for each in self.held if each.in_pieces), None)
            if following is not None:
                self.held.remove(following)
                self.completing = following
                self.loop.call_soon(following.listen)


@dataclass(slots=True)
class _PendingRequest:
    """A request from its arrival to the last byte of its response."""

    request: Request
    stats: RequestStats
    handled_ns: int
    pending: Pending[object]


class Connection:
    """One client's connection; everything here runs on the event loop's thread."""

    __slots__ = (
        "_closing",
        "_context",
        "_in_flight",
        "_listening",
        "_queue",
        "_reader",
        "_sender",
        "_socket",
        "_writing",
        "closed",
        "info",
        "last_active_ns",
    )  # fmt: skip

    def __init__(self, context: ConnectionContext, connected: Socket, info: ConnectionInfo) -> None:
        self._context = context
        self._socket = connected
        self._reader = FrameReader(context.pool, size_max=context.request_bytes_max)
        self._queue = SendQueue(connected)
        self._in_flight: _PendingRequest | None = None
        self._sender: RequestStats | None = None  # whose response is being sent
        self._listening = False
        self._writing = False
        self._closing = False
        self.info = info
        self.closed = False
        self.last_active_ns = context.now_ns()
        self.listen()

    @property
    def busy(self) -> bool:
        """Whether a request is being handled, or a response is being sent."""
        return self._in_flight is not None or bool(self._queue)

    @property
    def waiting(self) -> bool:
        """Whether a request is pending."""
        return self._in_flight is not None

    @property
    def in_pieces(self) -> bool:
        """Whether a request has arrived incompletely."""
        return not self.closed and self._reader.in_pieces

    def listen(self) -> None:
        """Register for reading with the event loop."""
        if not self.closed and not self._listening:
            self._listening = True
            self._context.loop.add_reader(self._socket, self._readable)

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            self._context.loop.remove_reader(self._socket)

    def close(self, reason: str = "") -> None:
        """Close immediately; unsent data is lost. A reason is given if the client is at fault."""
        if self.closed:
            return
        self.closed = True
        if reason:
            logger.info("closing connection from %s: %s", self.info.client_host, reason)
            self._context.metrics.connections_failed += 1
        self._stop_listening()
        if self._writing:
            self._context.loop.remove_writer(self._socket)
        self._socket.close()
        self._reader.release()
        if self._in_flight is not None:
            self._context.broker.abandon(self._in_flight.pending)
        self._in_flight = None
        self._context.metrics.bytes_sent += self._queue.bytes_sent
        self._context.forget(self)
        self._context.resume_held()

    def _broke(self, error: OSError) -> None:
        # A client that disconnects is not worth a log entry.
        gone = isinstance(error, (ConnectionResetError, BrokenPipeError, TimeoutError))
        self.close("" if gone else error.strerror or str(error))

    def close_when_sent(self) -> None:
        """Accept no more requests; close after the pending response."""
        self._closing = True
        self._stop_listening()
        if not self.busy:
            self.close()

    # --- receiving ---

    def _readable(self) -> None:
        try:
            if self.busy:
                self._readable_while_busy()
                return
            if not self._context.may_receive(self):
                self._stop_listening()
                self._context.held.append(self)
                return
            count = self._socket.recv_into(self._reader.space())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._broke(error)
            return
        if count == 0:
            self.close()
            return
        self._context.metrics.bytes_received += count
        self._reader.received(count)
        self._serve()

    def _readable_while_busy(self) -> None:
        """Leave more requests in the kernel; close if the client has disconnected."""
        if self._socket.recv(1, socket.MSG_PEEK):
            self._stop_listening()
        elif self._in_flight is not None:
            self.close()
        else:
            self.close_when_sent()

    def _serve(self) -> None:
        """Handle the requests that have arrived, until one is pending."""
        self.last_active_ns = self._context.now_ns()
        try:
            while self._handle_arrived():
                self._flush()
                if self.closed or self.busy:
                    break
        except BrokerError as error:
            self.close(error.message)
        except Exception:
            logger.exception("connection from %s failed", self.info.client_host)
            self.close("an unexpected error")
        if not self.closed:
            self._reader.keep()
            self._flush()
            if self._context.held or self._context.completing is self:
                self._context.resume_held()

    def _handle_arrived(self) -> bool:
        """Handle requests until all are done (False), one is pending, or much is to be sent."""
        reader = self._reader
        arrived_ns = self.last_active_ns
        while self._in_flight is None and not self.closed:
            if self._queue.bytes_left > TOGETHER_BYTES_MAX:
                return True
            frame = reader.next_frame()
            if frame is None:
                return False
            self._handle(frame, arrived_ns)
        return False

    def _go_on(self) -> None:
        """After a response was sent: handle requests that arrived meanwhile, and listen again."""
        if self.closed or self.busy:
            return
        if self._closing:
            self.close()
            return
        if self._reader.has_kept:
            self._serve()
        if not self.busy:
            self.listen()

    # --- handling ---

    def _handle(self, frame: memoryview, arrived_ns: int) -> None:
        context = self._context
        started_ns = context.now_ns()
        try:
            request = decode_request(frame)
        except UnsupportedVersion:
            self._refuse_version(frame)
            return
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a string is not UTF-8: {error.reason}") from error
        self.info.client_id = request.client_id
        stats = context.metrics.request(request.api_key)
        stats.count += 1
        stats.queue_ns += started_ns - arrived_ns
        answer = context.broker.handle(
            request.api_key,
            request.api_version,
            request.body,
            self.info,
            background=context.background,
        )
        handled_ns = context.now_ns()
        stats.local_ns += handled_ns - started_ns
        if answer is None:
            return
        if isinstance(answer, Pending):
            self._wait(answer, _PendingRequest(request, stats, handled_ns, answer))
        else:
            self._answer(request, stats, answer)

    def _refuse_version(self, frame: memoryview) -> None:
        """A client may request ApiVersions in an unknown version, and gets version 0."""
        key, version, correlation_id = peek_header(frame)
        if key != ApiKey.API_VERSIONS:
            raise MalformedMessage(f"version {version} of API {key} is not supported")
        answer = self._context.broker.unsupported_api_versions()
        self._queue.add(encode_response(ApiKey.API_VERSIONS, 0, correlation_id, answer))

    def _wait(self, pending: Pending[object], in_flight: _PendingRequest) -> None:
        self._in_flight = in_flight
        self._context.broker.when_done(pending, partial(self._completed, in_flight))

    def _completed(self, in_flight: _PendingRequest, answer: object) -> None:
        """Called when the response is complete, on the thread that completed it."""
        if concurrency.get_ident() == self._context.thread_id:
            self._finish(in_flight, answer)
            return
        # An event loop that has ended has closed its connections: no client waits for this.
        with contextlib.suppress(RuntimeError):
            self._context.loop.call_soon_threadsafe(self._finish, in_flight, answer)

    def _finish(self, in_flight: _PendingRequest, answer: object) -> None:
        if self.closed or self._in_flight is not in_flight:
            return
        self._in_flight = None
        in_flight.stats.remote_ns += self._context.now_ns() - in_flight.handled_ns
        if isinstance(answer, BrokerError):
            self.close(answer.message)
            return
        try:
            self._answer(in_flight.request, in_flight.stats, answer)
            self._flush()
        except Exception:
            # The caller, possibly another request, must not fail because of it.
            logger.exception("connection from %s failed", self.info.client_host)
            self.close("an unexpected error")
            return
        if self._reader.has_kept or not self._listening:
            # This may run inside another connection's request, so the next request is handled
            # later.
            self._context.loop.call_soon(self._go_on)

    # --- sending ---

    def _answer(self, request: Request, stats: RequestStats, answer: object) -> None:
        if getattr(answer, "error_code", 0):
            stats.errors += 1
        self._sender = stats
        self._queue.add(
            encode_response(request.api_key, request.api_version, request.correlation_id, answer)
        )

    def _flush(self) -> None:
        """Send as much as possible; the event loop calls back when the socket accepts more."""
        if not self._queue or self._writing:
            return
        if not self._send() and not self.closed:
            self._writing = True
            self._context.loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        if self._send() and not self.closed:
            self._writing = False
            self._context.loop.remove_writer(self._socket)
            self.last_active_ns = self._context.now_ns()
            self._go_on()

    def _send(self) -> bool:
        started_ns = self._context.now_ns()
        try:
            done = self._queue.send()
        except OSError as error:
            self._broke(error)
            return True
        if self._sender is not None:
            self._sender.send_ns += self._context.now_ns() - started_ns
        return done
