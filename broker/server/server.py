"""Server: listens, accepts, and gives each connection to the event loop."""

import asyncio
import errno
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from types import TracebackType
from typing import Self

from broker.broker import Broker
from broker.errors import ConfigError
from broker.model import ConnectionInfo
from broker.server.connection import Connection, Surroundings
from broker.server.listeners import (
    Endpoint,
    advertise,
    advertised_endpoints,
    listen_endpoints,
)
from broker.server.metrics_http import MetricsPage
from broker.server.receive import BufferPool

logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE_MAX = 64
# When the process has no descriptors left, accepting is tried again after this time.
ACCEPT_RETRY_SECONDS = 1.0
SHUTDOWN_GRACE_SECONDS = 1.0
IDLE_CHECKS_PER_TIMEOUT = 10
IDLE_CHECK_SECONDS_MAX = 30.0
MAPPED_IPV4 = "::ffff:"  # how addresses of version 4 look on a socket for both versions
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Server:
    """Serves a started broker on its listeners, in a thread with an event loop of its own.

    with Broker(config) as broker, Server(broker) as server:
        server.bootstrap                            # "127.0.0.1:43121"
    """

    def __init__(self, broker: Broker, *, listeners: tuple[str, ...] | None = None) -> None:
        """Nothing listens before `start`; listeners left out are those of the broker's settings."""
        self._broker = broker
        self._config = broker.config
        if listeners is not None:
            self._config = replace(broker.config, listeners=listeners, advertised_listeners=())
        self._listeners: list[socket.socket] = []
        self._connections: set[Connection] = set()
        self._connections_by_host: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._around: Surroundings | None = None
        self._stop = asyncio.Event()
        self.endpoints: list[Endpoint] = []
        self.metrics_port: int | None = None

    @property
    def bootstrap(self) -> str:
        """host:port of the first listener."""
        return str(self.endpoints[0])

    def start(self) -> Self:
        """Listen and serve in a thread; returns when clients can connect."""
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run_thread, args=(started,), name="broker-server", daemon=True
        )
        self._thread.start()
        started.result()
        return self

    def close(self) -> None:
        """Finish what is in flight, close all connections, end the thread."""
        if self._thread is None:
            return
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _run_thread(self, started: Future[None]) -> None:
        try:
            run(self.serve(lambda: started.set_result(None)))
        except BaseException as error:
            if started.done():
                logger.exception("the server failed")
            else:
                started.set_exception(error)

    def stop_soon(self) -> None:
        """Make `serve` come to its end; for the event loop's own thread, as signals are."""
        self._stop.set()

    async def serve(self, ready: Callable[[], None]) -> None:
        """Listen and serve until `stop_soon`; `ready` is called when clients can connect."""
        self._loop = asyncio.get_running_loop()
        self._around = self._surroundings(self._loop)
        page = MetricsPage(self._broker)
        try:
            self._listen(self._loop)
            self.metrics_port = await page.start()
            self._loop.call_soon(self._close_idle)
            ready()
            await self._stop.wait()
        finally:
            await page.close()
            await self._shut_down(self._loop)

    def _surroundings(self, loop: asyncio.AbstractEventLoop) -> Surroundings:
        return Surroundings(
            broker=self._broker,
            loop=loop,
            pool=BufferPool(),
            metrics=self._broker.metrics,
            request_bytes_max=self._config.socket_request_max_bytes,
            queued_bytes_max=self._config.queued_max_request_bytes,
            forget=self._forget,
            thread_id=threading.get_ident(),
        )

    # --- listening ---

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        advertised = advertised_endpoints(self._config)
        for endpoint in listen_endpoints(self._config):
            listening = self._open_listener(endpoint)
            self._listeners.append(listening)
            port = int(listening.getsockname()[1])
            self.endpoints.append(Endpoint(endpoint.name, endpoint.host or "0.0.0.0", port))
            self._broker.advertise(endpoint.name, *advertise(endpoint, advertised, port))
            loop.add_reader(listening, partial(self._accept, listening, endpoint.name))

    def _open_listener(self, endpoint: Endpoint) -> socket.socket:
        # Without a host both families are listened on, where the system can do that.
        everywhere = not endpoint.host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if everywhere or ":" in endpoint.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            if everywhere:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit the sizes; set later they would not count for the window.
            self._set_buffer_sizes(listening)
            listening.bind((endpoint.host, endpoint.port))
            listening.listen(self._config.socket_listen_backlog_size)
            listening.setblocking(False)
        except OSError as error:
            listening.close()
            raise ConfigError(
                f"cannot listen on {endpoint}: {error.strerror}",
                at=f'setting "listeners", {endpoint.name}',
                hint="stop the program that has the address, or choose another port; 0 is any",
            ) from error
        return listening

    def _set_buffer_sizes(self, listening: socket.socket) -> None:
        for option, size in (
            (socket.SO_SNDBUF, self._config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, self._config.socket_receive_buffer_bytes),
        ):
            if size > 0:
                listening.setsockopt(socket.SOL_SOCKET, option, size)

    # --- connections ---

    def _accept(self, listening: socket.socket, listener: str) -> None:
        assert self._loop is not None
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            try:
                connected, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS:
                    raise
                logger.error("cannot accept connections: %s", error.strerror)
                self._loop.remove_reader(listening)
                again = partial(self._accept_again, listening, listener)
                self._loop.call_later(ACCEPT_RETRY_SECONDS, again)
                return
            self._admit(connected, str(address[0]).removeprefix(MAPPED_IPV4), listener)

    def _accept_again(self, listening: socket.socket, listener: str) -> None:
        if self._loop is not None and listening.fileno() >= 0:
            self._loop.add_reader(listening, partial(self._accept, listening, listener))

    def _admit(self, connected: socket.socket, host: str, listener: str) -> None:
        metrics = self._broker.metrics
        if refusal := self._refusal(host):
            logger.warning("refusing connection of %s: %s", host, refusal)
            metrics.connections_refused += 1
            connected.close()
            return
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        metrics.connections_accepted += 1
        metrics.connections_open += 1
        self._connections_by_host[host] += 1
        assert self._around is not None
        info = ConnectionInfo(client_host=host, listener=listener)
        self._connections.add(Connection(self._around, connected, info))

    def _refusal(self, host: str) -> str:
        if len(self._connections) >= self._config.max_connections:
            return f'"max.connections" is {self._config.max_connections}'
        if self._connections_by_host[host] >= self._config.max_connections_per_ip:
            return f'"max.connections.per.ip" is {self._config.max_connections_per_ip}'
        return ""

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._broker.metrics.connections_open -= 1
        host = connection.info.client_host
        self._connections_by_host[host] -= 1
        if not self._connections_by_host[host]:
            del self._connections_by_host[host]

    def _close_idle(self) -> None:
        idle_ms = self._config.connections_max_idle_ms
        if self._loop is None or idle_ms < 0:
            return
        oldest_ns = perf_counter_ns() - idle_ms * 1_000_000
        for connection in list(self._connections):
            if connection.last_active_ns < oldest_ns and not connection.waiting:
                connection.close()
        pause = min(idle_ms / 1000 / IDLE_CHECKS_PER_TIMEOUT, IDLE_CHECK_SECONDS_MAX)
        self._loop.call_later(max(pause, 0.01), self._close_idle)

    async def _shut_down(self, loop: asyncio.AbstractEventLoop) -> None:
        for listening in self._listeners:
            loop.remove_reader(listening)
            listening.close()
        for connection in list(self._connections):
            connection.close_when_sent()
        deadline = loop.time() + SHUTDOWN_GRACE_SECONDS
        while self._connections and loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.close()
        self._loop = None


def run(main: Coroutine[object, object, None]) -> None:
    """Run a coroutine on uvloop where it is installed, else on asyncio's own loop."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
