"""IoLoop: the thread and the selector behind clients over TCP; several clients may share it.

Each client has a channel: an inbox that any thread may put exchanges in, and peers that this thread
alone owns: it connects on demand, writes, reads, times out, and completes futures. A channel is
processed when something was put in its inbox, when one of its sockets is ready, and when one of its
deadlines is due; idle channels cost nothing.
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


class Channel:
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
        if not self.inbox:  # a later exchange wakes the loop
            return
        with self.lock:
            taken = list(self.inbox)
            self.inbox.clear()
        for node_id, exchange in taken:
            self.peers.dispatch(node_id, exchange)


class IoLoop:
    """One thread for all channels that are opened on it."""

    def __init__(self, machine: Machine | None = None) -> None:
        """Start the thread."""
        self._machine = machine or Machine()
        self.clock = self._machine.clock
        self.pid = os.getpid()
        self._lock = concurrency.Lock()  # guards _channels and _closed
        self._channels: dict[Peers, Channel] = {}
        self._touched: deque[Channel] = deque()
        self._due: list[tuple[int, int, Channel]] = []
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
    ) -> Channel:
        """A channel of its own; nothing connects before the first exchange."""
        peers = Peers(config, self._machine, self._selector, on_break)
        peers.use_tls(tls)
        channel = Channel(peers)
        with self._lock:
            if self._closed:
                raise ClientError("the client is closed")
            self._channels[peers] = channel
        return channel

    def touch(self, channel: Channel) -> None:
        """Have the thread look at a channel."""
        self._touched.append(channel)
        self._wake()

    def end(self, channel: Channel) -> None:
        """End a channel and its connections; what is under way on it fails."""
        with channel.lock:
            channel.closed = True
        self.touch(channel)
        if concurrency.current_thread() is not self._thread:
            channel.ended.wait()

    def close(self) -> None:
        """End the thread and all channels."""
        with self._lock:
            self._closed = True
            channels = list(self._channels.values())
        if os.getpid() != self.pid:
            return  # the thread and its sockets belong to the parent
        for channel in channels:
            with channel.lock:
                channel.closed = True
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
                for channel, ready in self._wait().items():
                    if channel.closed:
                        self._end(channel)
                    else:
                        self._step(channel, ready)
                        self._schedule(channel)
        finally:
            with self._lock:
                self._closed = True
                channels = list(self._channels.values())
            for channel in channels:
                self._end(channel)
            self._selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _step(self, channel: Channel, ready: list[Peer]) -> None:
        try:
            channel.step(ready)
        except Exception as error:
            # The thread serves other clients, too: only the connections of this one are closed.
            logger.exception("unexpected error of a client's connections, which are closed")
            channel.peers.end(ConnectionFailed(f"unexpected error: {error!r}"))

    def _end(self, channel: Channel) -> None:
        with self._lock:
            self._channels.pop(channel.peers, None)
        channel.end()

    def _wait(self) -> dict[Channel, list[Peer]]:
        """Wait until some channels have something to do; with the peers whose sockets are ready."""
        found: dict[Channel, list[Peer]] = {}
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
                channel = self._channels.get(peers)
                if channel is not None:
                    found.setdefault(channel, []).append(peer)
        while self._touched:
            found.setdefault(self._touched.popleft(), [])
        self._add_due(found)
        return found

    def _wait_ms(self) -> int:
        if not self._due:
            return WAIT_MS_MAX
        return max(0, min(WAIT_MS_MAX, self._due[0][0] - self.clock.monotonic_ms()))

    def _add_due(self, found: dict[Channel, list[Peer]]) -> None:
        if not self._due:
            return
        now_ms = self.clock.monotonic_ms()
        while self._due and self._due[0][0] <= now_ms:
            due_ms, _, channel = heapq.heappop(self._due)
            if channel.due_ms == due_ms:  # else it was due earlier, and looked at then
                channel.due_ms = None
                found.setdefault(channel, [])

    def _schedule(self, channel: Channel) -> None:
        """Look again when something is due; an entry that is early does no harm, it is renewed."""
        due_ms = channel.peers.due_ms()
        if due_ms is not None and (channel.due_ms is None or due_ms < channel.due_ms):
            channel.due_ms = due_ms
            heapq.heappush(self._due, (due_ms, next(self._order), channel))
