"""NetworkTransport: requests to brokers over TCP, by one thread.

Any thread puts an exchange in the inbox and wakes the I/O thread. That thread alone owns peers and
connections: it connects on demand, writes, reads, times out, and completes futures.
"""

import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from random import Random

from broker.client.config import NetworkConfig
from broker.client.connection import Exchange
from broker.client.peers import Peer, Peers
from broker.client.tls import make_context
from broker.client.transport import Node
from broker.clock import Clock, SystemClock
from broker.errors import ClientError


class NetworkTransport:
    """Requests to brokers over TCP; see Transport."""

    def __init__(
        self, config: NetworkConfig, *, clock: Clock | None = None, random: Random | None = None
    ) -> None:
        """Start the I/O thread; nothing connects before the first request."""
        tls = make_context(config)  # first: wrong files must not leave sockets behind
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()  # guards _inbox and _closed
        self._nodes: dict[int, Node] = {}
        self._inbox: deque[tuple[int | None, Exchange]] = deque()
        self._closed = False
        self._woken = False
        self._pid = os.getpid()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)
        self._peers = Peers(config, self._clock, random or Random(), self._selector)
        self._peers.use_tls(tls)
        self._thread = threading.Thread(target=self._run, name="millstream-network", daemon=True)
        self._thread.start()

    def nodes(self) -> list[Node]:
        """The brokers of the last metadata."""
        return list(self._nodes.values())

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers; connections to those that are gone or moved end."""
        replaced = {node.id: node for node in nodes}
        if replaced != self._nodes:
            self._nodes = replaced
            self._wake()

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send a request; see Transport."""
        if os.getpid() != self._pid:
            raise ClientError(
                "a client cannot be used after a fork", hint="make a new one in the child process"
            )
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        exchange = Exchange(request, timeout_ms=timeout_ms, deadline_ms=deadline_ms)
        exchange.version_max = version_max
        with self._lock:
            if self._closed:
                raise ClientError("the client is closed")
            self._inbox.append((node_id, exchange))
        self._wake()
        return exchange.future

    def close(self) -> None:
        """End the thread and all connections; what is under way fails."""
        with self._lock:
            self._closed = True
        if os.getpid() != self._pid:
            return  # the thread and its sockets belong to the parent
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wake(self) -> None:
        # One byte is enough until the thread has seen it; one too many does no harm.
        if not self._woken:
            self._woken = True
            try:
                self._wake_sender.send(b"\0")
            except OSError:
                assert self._closed, "the wake-up pipe broke while the client is open"

    def _run(self) -> None:
        try:
            ready: list[Peer] = []
            while not self._closed:
                self._take_inbox()
                self._peers.step(ready)
                ready = self._wait()
        finally:
            with self._lock:
                self._closed = True
            self._take_inbox()
            self._peers.end(ClientError("the client was closed"))
            self._selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _take_inbox(self) -> None:
        self._peers.update_nodes(self._nodes)
        with self._lock:
            taken = list(self._inbox)
            self._inbox.clear()
        for node_id, exchange in taken:
            self._peers.dispatch(node_id, exchange)

    def _wait(self) -> list[Peer]:
        # Callbacks of futures that just completed may have sent more.
        timeout_ms = 0 if self._inbox or self._closed else self._peers.wait_ms()
        ready: list[Peer] = []
        for key, _ in self._selector.select(timeout_ms / 1000):
            if key.data is None:
                # Cleared after the bytes are read: a byte that came with the flag up must not be
                # read with the flag left up, or nobody would wake us again.
                self._wake_receiver.recv(4096)
                self._woken = False
            else:
                ready.append(key.data)
        return ready
