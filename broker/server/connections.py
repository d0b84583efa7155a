"""Connections of a server: limits, and closing of idle connections."""

import logging
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter_ns

from broker import concurrency
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.model import ConnectionInfo
from broker.server.connection import Connection, ConnectionContext, EventLoop
from broker.server.receive import BufferPool
from broker.sockets import Socket

logger = logging.getLogger(__name__)

IDLE_CHECKS_PER_TIMEOUT = 10
IDLE_CHECK_SECONDS_MAX = 30.0
BACKGROUND_THREADS = 2


class Connections:
    """Used only on the event loop's thread."""

    def __init__(
        self,
        broker: Broker,
        config: BrokerConfig,
        loop: EventLoop,
        background: Executor,
        *,
        now_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        """No connections yet; the settings of the server may differ from the broker's."""
        self._config = config
        self._loop = loop
        self._metrics = broker.metrics
        self._now_ns = now_ns
        self._open: dict[Connection, None] = {}
        self._by_host: Counter[str] = Counter()
        self._closed = False
        self._context = ConnectionContext(
            broker=broker,
            loop=loop,
            pool=BufferPool(),
            metrics=broker.metrics,
            request_bytes_max=config.socket_request_max_bytes,
            queued_bytes_max=config.queued_max_request_bytes,
            forget=self._forget,
            thread_id=concurrency.get_ident(),
            background=background,
            now_ns=now_ns,
        )

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def admit(self, connected: Socket, host: str, listener: str) -> None:
        """Serve a connection, unless there are too many."""
        if refusal := self._refusal(host):
            self.refuse(connected, host, refusal)
            return
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._metrics.connections_accepted += 1
        self._metrics.connections_open += 1
        self._by_host[host] += 1
        info = ConnectionInfo(client_host=host, listener=listener)
        self._open[Connection(self._context, connected, info)] = None

    def refuse(self, connected: Socket, host: str, reason: str) -> None:
        """Close a connection that cannot be served."""
        logger.warning("refusing connection from %s: %s", host, reason)
        self._metrics.connections_refused += 1
        connected.close()

    def _refusal(self, host: str) -> str:
        if len(self._open) >= self._config.max_connections:
            return f'"max.connections" is {self._config.max_connections}'
        if self._by_host[host] >= self._config.max_connections_per_ip:
            return f'"max.connections.per.ip" is {self._config.max_connections_per_ip}'
        return ""

    def _forget(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self._metrics.connections_open -= 1
        host = connection.info.client_host
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def close_idle(self) -> None:
        """Close connections that have been idle too long, now and periodically."""
        idle_ms = self._config.connections_max_idle_ms
        if self._closed or idle_ms < 0:
            return
        oldest_ns = self._now_ns() - idle_ms * 1_000_000
        for connection in list(self._open):
            if connection.last_active_ns < oldest_ns and not connection.waiting:
                connection.close()
        pause = min(idle_ms / 1000 / IDLE_CHECKS_PER_TIMEOUT, IDLE_CHECK_SECONDS_MAX)
        self._loop.call_later(max(pause, 0.01), self.close_idle)

    def close_when_sent(self) -> None:
        """Accept no more requests; each connection is closed after its pending response."""
        self._closed = True
        for connection in list(self._open):
            connection.close_when_sent()

    def close(self) -> None:
        """Close all immediately."""
        self._closed = True
        for connection in list(self._open):
            connection.close()
