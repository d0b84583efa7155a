"""IoLoop: the thread and the selector behind clients over TCP; several clients may share it.

Each client has a lane: an inbox that any thread may put exchanges in, and peers that this thread
alone owns: it connects on demand, writes, reads, times out, and completes futures. A lane is looked
at when something was put in its inbox, when one of its sockets is ready, and when something of it
is due; lanes that have nothing to do cost nothing.
"""

import heapq
import itertools
import logging
import os
import selectors
import ssl
from collections import deque
from collections.abc import Callable

from broker import concurrency
from broker.client.config import NetworkConfig
from broker.client.connection import Exchange
from broker.client.peers import Peer, Peers
from broker.client.transport import Node
from broker.errors import ClientError, ConnectionFailed
from broker.machine import Machine

logger = logging.getLogger(__name__)

WAIT_MS_MAX = 60_000


class Lane:
    """One client's exchanges and connections."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.nodes: dict[int, Node] = {}
        self.lock = concurrency.Lock()  # guards inbox and closed
        self.inbox: deque[tuple[int | None, Exchange]] = deque()
        self.closed = False
        self.ended = concurrency.Event()
        self.due_ms: int | None = None  # when the loop looks at it at the latest

    def put(self, node_id: int | None, exchange: Exchange) -> None:
        """Queue a request; the loop must be woken up afterwards."""
        with self.lock:
            if self.closed:
                raise ClientError("the client is closed")
            self.inbox.append((node_id, exchange))

    def step(self, ready: list[Peer]) -> None:
        """Do what can be done now."""
        self._take_inbox()
        self.peers.step(ready)

    def end(self) -> None:
        """Fail everything, close all connections."""
        with self.lock:
            self.closed = True
        self._take_inbox()
        self.peers.end(ClientError("the client was closed"))
        self.ended.set()

    def _take_inbox(self) -> None:
        self.peers.update_nodes(self.nodes)
        with self.lock:
            taken = list(self.inbox)
            self.inbox.clear()
        for node_id, exchange in taken:
            self.peers.dispatch(node_id, exchange)


class IoLoop:
    """One thread for all lanes that are opened on it."""

    def __init__(self, machine: Machine | None = None) -> None:
        """Start the thread."""
        self._machine = machine or Machine()
        self.clock = self._machine.clock
        self.pid = os.getpid()
        self._lock = concurrency.Lock()  # guards _lanes and _closed
        self._lanes: dict[Peers, Lane] = {}
        self._touched: deque[Lane] = deque()
        self._due: list[tuple[int, int, Lane]] = []
        self._order = itertools.count()
        self._closed = False
        self._woken = False
        sockets = self._machine.sockets
        self._wake_receiver, self._wake_sender = sockets.pair()
        self._wake_receiver.setblocking(False)
        self._selector = sockets.selector()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)
        self._thread = concurrency.Thread(target=self._run, name="millstream-network", daemon=True)
        self._thread.start()

    def open(
        self,
        config: NetworkConfig,
        tls: ssl.SSLContext | None,
        *,
        on_break: Callable[[int], None] | None = None,
    ) -> Lane:
        """A lane of its own; nothing connects before the first exchange."""
        peers = Peers(config, self._machine, self._selector, on_break)
        peers.use_tls(tls)
        lane = Lane(peers)
        with self._lock:
            if self._closed:
                raise ClientError("the client is closed")
            self._lanes[peers] = lane
        return lane

    def touch(self, lane: Lane) -> None:
        """Have the thread look at a lane."""
        self._touched.append(lane)
        self._wake()

    def end(self, lane: Lane) -> None:
        """End a lane and its connections; what is under way on it fails."""
        with lane.lock:
            lane.closed = True
        self.touch(lane)
        if concurrency.current_thread() is not self._thread:
            lane.ended.wait()

    def close(self) -> None:
        """End the thread and all lanes."""
        with self._lock:
            self._closed = True
            lanes = list(self._lanes.values())
        if os.getpid() != self.pid:
            return  # the thread and its sockets belong to the parent
        for lane in lanes:
            with lane.lock:
                lane.closed = True
        self._wake()
        if concurrency.current_thread() is not self._thread:
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
            while not self._closed:
                for lane, ready in self._wait().items():
                    if lane.closed:
                        self._end(lane)
                    else:
                        self._step(lane, ready)
                        self._schedule(lane)
        finally:
            with self._lock:
                self._closed = True
                lanes = list(self._lanes.values())
            for lane in lanes:
                self._end(lane)
            self._selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _step(self, lane: Lane, ready: list[Peer]) -> None:
        try:
            lane.step(ready)
        except Exception as error:
            # The thread serves other clients, too: only the connections of this one are closed.
            logger.exception("unexpected error of a client's connections, which are closed")
            lane.peers.end(ConnectionFailed(f"unexpected error: {error!r}"))

    def _end(self, lane: Lane) -> None:
        with self._lock:
            self._lanes.pop(lane.peers, None)
        lane.end()

    def _wait(self) -> dict[Lane, list[Peer]]:
        """Wait until some lanes have something to do; with the peers whose sockets are ready."""
        found: dict[Lane, list[Peer]] = {}
        # Callbacks of futures that just completed may have sent more.
        timeout_ms = 0 if self._touched or self._closed else self._wait_ms()
        for key, _ in self._selector.select(timeout_ms / 1000):
            if key.data is None:
                # Cleared after the bytes are read: a byte that came with the flag up must not be
                # read with the flag left set, or no thread would wake the loop again.
                self._wake_receiver.recv(4096)
                self._woken = False
            else:
                peers, peer = key.data
                lane = self._lanes.get(peers)
                if lane is not None:
                    found.setdefault(lane, []).append(peer)
        while self._touched:
            found.setdefault(self._touched.popleft(), [])
        self._add_due(found)
        return found

    def _wait_ms(self) -> int:
        if not self._due:
            return WAIT_MS_MAX
        return max(0, min(WAIT_MS_MAX, self._due[0][0] - self.clock.monotonic_ms()))

    def _add_due(self, found: dict[Lane, list[Peer]]) -> None:
        if not self._due:
            return
        now_ms = self.clock.monotonic_ms()
        while self._due and self._due[0][0] <= now_ms:
            due_ms, _, lane = heapq.heappop(self._due)
            if lane.due_ms == due_ms:  # else it was due earlier, and looked at then
                lane.due_ms = None
                found.setdefault(lane, [])

    def _schedule(self, lane: Lane) -> None:
        """Look again when something is due; an entry that is early does no harm, it is renewed."""
        due_ms = lane.peers.due_ms()
        if due_ms is not None and (lane.due_ms is None or due_ms < lane.due_ms):
            lane.due_ms = due_ms
            heapq.heappush(self._due, (due_ms, next(self._order), lane))
