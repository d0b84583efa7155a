"""IoLoop: the thread and the selector behind clients over TCP; several clients may share it.

Each client has a transport. The thread processes it when requests are in its inbox, when one of its
sockets is ready, and when one of its deadlines is due; idle transports cost nothing.
"""

import heapq
import itertools
import logging
import os
import selectors
from collections import deque
from typing import TYPE_CHECKING

from broker import concurrency
from broker.client.peer import Peer
from broker.errors import ClientError, ConnectionFailed
from broker.machine import Machine

if TYPE_CHECKING:
    from broker.client.network import NetworkTransport

logger = logging.getLogger(__name__)

WAIT_MS_MAX = 60_000


class IoLoop:
    """One thread for all its transports."""

    def __init__(self, machine: Machine | None = None) -> None:
        """Start the thread."""
        self.machine = machine or Machine()
        self.clock = self.machine.clock
        self.pid = os.getpid()
        self._lock = concurrency.Lock()  # guards _transports and _closed
        self._transports: dict[NetworkTransport, None] = {}
        self._changed: deque[NetworkTransport] = deque()
        self._due: list[tuple[int, int, NetworkTransport]] = []
        self._order = itertools.count()
        self._closed = False
        self._woken = False
        sockets = self.machine.sockets
        self._wake_receiver, self._wake_sender = sockets.pair()
        self._wake_receiver.setblocking(False)
        self.selector = sockets.selector()
        self.selector.register(self._wake_receiver, selectors.EVENT_READ, None)
        self._thread = concurrency.Thread(target=self._run, name="millstream-network", daemon=True)
        self._thread.start()

    def add(self, transport: "NetworkTransport") -> None:
        """Add a transport."""
        with self._lock:
            if self._closed:
                raise ClientError("the client is closed")
            self._transports[transport] = None

    def process(self, transport: "NetworkTransport") -> None:
        """Schedule a transport; the thread processes it next."""
        self._changed.append(transport)
        self._wake()

    def is_current_thread(self) -> bool:
        """Whether the caller runs in the I/O thread."""
        return concurrency.current_thread() is self._thread

    def close(self) -> None:
        """End the thread and all transports."""
        with self._lock:
            self._closed = True
            transports = list(self._transports)
        if os.getpid() != self.pid:
            return  # the thread and its sockets belong to the parent
        for transport in transports:
            transport.refuse()
        self._wake()
        if not self.is_current_thread():
            self._thread.join()

    def _wake(self) -> None:
        # One byte is enough until the thread has read it; another one does no harm.
        if not self._woken:
            self._woken = True
            try:
                self._wake_sender.send(b"\0")
            except OSError:
                assert self._closed, "the wake-up pipe broke while the client is open"

    def _run(self) -> None:
        try:
            while not self._closed:
                for transport, ready in self._wait().items():
                    if transport.is_closed:
                        self._end(transport)
                    else:
                        self._step(transport, ready)
                        self._schedule(transport)
        finally:
            with self._lock:
                self._closed = True
                transports = list(self._transports)
            for transport in transports:
                self._end(transport)
            self.selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _step(self, transport: "NetworkTransport", ready: list[Peer]) -> None:
        try:
            transport.step(ready)
        except Exception as error:
            # The thread serves other clients, too: only connections of this client are closed.
            logger.exception("unexpected error of a client's connections, which are closed")
            transport.fail(ConnectionFailed(f"unexpected error: {error!r}"))

    def _end(self, transport: "NetworkTransport") -> None:
        with self._lock:
            self._transports.pop(transport, None)
        transport.end()

    def _wait(self) -> "dict[NetworkTransport, list[Peer]]":
        """Wait for work; returns the transports that have some, with their ready peers."""
        found: dict[NetworkTransport, list[Peer]] = {}
        # Callbacks of futures that just completed may have sent more.
        timeout_ms = 0 if self._changed or self._closed else self._wait_ms()
        for key, _ in self.selector.select(timeout_ms / 1000):
            if key.data is None:
                # Cleared after the bytes are read: a byte that came with the flag up must not be
                # read with the flag left set, or no thread would wake the loop again.
                self._wake_receiver.recv(4096)
                self._woken = False
            else:
                transport, peer = key.data
                if transport in self._transports:
                    found.setdefault(transport, []).append(peer)
        while self._changed:
            found.setdefault(self._changed.popleft(), [])
        self._add_due(found)
        return found

    def _wait_ms(self) -> int:
        if not self._due:
            return WAIT_MS_MAX
        return max(0, min(WAIT_MS_MAX, self._due[0][0] - self.clock.monotonic_ms()))

    def _add_due(self, found: "dict[NetworkTransport, list[Peer]]") -> None:
        if not self._due:
            return
        now_ms = self.clock.monotonic_ms()
        while self._due and self._due[0][0] <= now_ms:
            due_ms, _, transport = heapq.heappop(self._due)
            if transport.scheduled_ms == due_ms:  # else it was due earlier, and processed then
                transport.scheduled_ms = None
                found.setdefault(transport, [])

    def _schedule(self, transport: "NetworkTransport") -> None:
        """Process the transport when something is due; an entry that is too early is renewed."""
        due_ms, scheduled_ms = transport.due_ms(), transport.scheduled_ms
        if due_ms is not None and (scheduled_ms is None or due_ms < scheduled_ms):
            transport.scheduled_ms = due_ms
            heapq.heappush(self._due, (due_ms, next(self._order), transport))
