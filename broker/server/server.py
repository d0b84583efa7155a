"""Server: listens, accepts connections, and serves them on an event loop."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Self

from broker import concurrency, descriptors
from broker.broker import Broker
from broker.errors import ConfigError
from broker.server.connections import BACKGROUND_THREADS, Connections
from broker.server.listeners import (
    Endpoint,
    advertise,
    advertised_endpoints,
    listen_endpoints,
)

logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE_MAX = 64
# When the process has no free descriptors, accepting is retried after this time.
ACCEPT_RETRY_SECONDS = 1.0
SHUTDOWN_GRACE_SECONDS = 1.0
MAPPED_IPV4 = "::ffff:"  # the form of IPv4 addresses on dual-stack sockets
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Server:
    """Serves a started broker on its listeners, in a thread with its own event loop.

    with Broker(config) as broker, Server(broker) as server:
        server.bootstrap                            # "127.0.0.1:43121"
    """

    def __init__(self, broker: Broker, *, listeners: tuple[str, ...] | None = None) -> None:
        """Nothing listens before `start`; the default listeners are from the broker's settings."""
        self._broker = broker
        self._config = broker.config
        if listeners is not None:
            self._config = replace(broker.config, listeners=listeners, advertised_listeners=())
        self._listeners: list[socket.socket] = []
        self._connections: Connections | None = None
        self._thread: concurrency.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background = concurrency.ThreadPoolExecutor(BACKGROUND_THREADS, "large-requests")
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
        self._thread = concurrency.Thread(
            target=self._run_thread, args=(started,), name="broker-server", daemon=True
        )
        self._thread.start()
        started.result()
        return self

    def close(self) -> None:
        """Finish pending requests, close all connections, end the thread."""
        if self._thread is None:
            return
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
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
        """Stop `serve`; called on the event loop's thread, as for signals."""
        self._stop.set()

    async def serve(self, ready: Callable[[], None]) -> None:
        """Listen and serve until `stop_soon`; `ready` is called when clients can connect."""
        self._loop = asyncio.get_running_loop()
        self._connections = Connections(self._broker, self._config, self._loop, self._background)
        page = ExitStack()
        try:
            self._listen(self._loop)
            self._start_page(page)
            self._loop.call_soon(self._connections.close_idle)
            ready()
            await self._stop.wait()
        finally:
            await asyncio.to_thread(page.close)
            await self._shut_down(self._loop, self._connections)

    def _start_page(self, opened: ExitStack) -> None:
        """Serve the metrics page, if the settings give it a port."""
        port = self._broker.config.metrics_port
        if port is None:
            return
        from broker.server.metrics_http import MetricsPage  # loads an HTTP server

        try:
            page = opened.enter_context(MetricsPage(self._broker, port))
        except ConfigError as error:
            message = error.message.replace("listen", f"listen on {error.at}", 1)
            raise ConfigError(message, at='setting "metrics.port"', hint=error.hint) from error
        self.metrics_port = int(page.address.rpartition(":")[2])

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
        # Without a host it listens on IPv4 and IPv6, where the system supports this.
        everywhere = not endpoint.host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if everywhere or ":" in endpoint.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            if everywhere:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit the sizes; set later they would not affect the window.
            self._set_buffer_sizes(listening)
            listening.bind((endpoint.host, endpoint.port))
            listening.listen(self._config.socket_listen_backlog_size)
            listening.setblocking(False)
        except OSError as error:
            listening.close()
            raise ConfigError(
                f"cannot listen on {endpoint}: {error.strerror}",
                at=f'setting "listeners", {endpoint.name}',
                hint="stop the program that uses the address, or choose another port; 0 "
                "chooses a free one",
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
        assert self._connections is not None
        # Descriptors are assigned from the lowest on: a high one shows how many are in use.
        too_many = len(self._connections) >= descriptors.connections_max()
        if too_many or connected.fileno() >= descriptors.limit() - descriptors.reserve():
            reason = f"the process may have {descriptors.limit()} open files (see ulimit -n)"
            self._connections.refuse(connected, host, reason)
        else:
            self._connections.admit(connected, host, listener)

    async def _shut_down(self, loop: asyncio.AbstractEventLoop, connections: Connections) -> None:
        for listening in self._listeners:
            loop.remove_reader(listening)
            listening.close()
        connections.close_when_sent()
        deadline = loop.time() + SHUTDOWN_GRACE_SECONDS
        while connections and loop.time() < deadline:
            await asyncio.sleep(0.01)
        connections.close()
        self._background.shutdown(wait=False, cancel_futures=True)
        self._loop = None


def run(main: Coroutine[object, object, None]) -> None:
    """Run a coroutine on uvloop if it is installed, otherwise on asyncio's event loop."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
