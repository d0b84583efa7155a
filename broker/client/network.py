"""NetworkTransport: the connections of one client to brokers over TCP.

Any thread sends a request: it waits in the inbox. The thread of the I/O loop does everything else:
it gives the request to the peer of its broker, connects on demand with backoff, writes, reads,
times out, and completes the future. When a connection breaks, all its requests fail; the caller
decides whether to retry. Several transports may share an I/O loop.
"""

import os
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from broker import concurrency
from broker.client.config import NetworkConfig, parse_servers
from broker.client.connection import CannotEncode, Connection, ConnectionPhase, Exchange
from broker.client.io_loop import IoLoop
from broker.client.peer import Peer
from broker.client.tls import make_context
from broker.client.transport import Node
from broker.errors import ClientError, ConnectionFailed, MillstreamError, UnsupportedVersion
from broker.machine import Machine
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.groups import JoinGroupRequest, SyncGroupRequest

# A broker handles one request of a connection at a time: late responses have their own connection.
CONNECTIONS: dict[type[object], str] = {
    FetchRequest: "fetch",
    JoinGroupRequest: "group",
    SyncGroupRequest: "group",
}
MAIN_CONNECTION = "main"
SESSION_SHARE = 0.85  # reconnect before the broker ends an authentication that is too old
BACKOFF_JITTER = 0.2
NEVER_MS = 1 << 62


class NetworkTransport:
    """Requests to brokers over TCP; see Transport."""

    def __init__(
        self,
        config: NetworkConfig,
        *,
        machine: Machine | None = None,
        loop: IoLoop | None = None,
        on_break: Callable[[int], None] | None = None,
    ) -> None:
        """Without an I/O loop to share, create one; the first request connects.

        `on_break` is called with the id of a broker whose connection breaks.
        """
        # First: invalid files must not leave sockets open.
        self._tls: ssl.SSLContext | None = make_context(config)
        self._owns_loop = loop is None
        self._loop = loop = loop or IoLoop(machine)
        self._config = config
        self._on_break = on_break
        self._sockets = loop.machine.sockets
        self._clock = loop.clock
        self._random = loop.machine.random
        self._selector = loop.selector
        self._lock = concurrency.Lock()  # guards _inbox and is_closed
        self._inbox: deque[tuple[int | None, Exchange]] = deque()
        self._nodes: dict[int, Node] = {}  # of the latest metadata
        self.is_closed = False
        self.scheduled_ms: int | None = None  # the latest time at which the loop processes it
        self._ended = concurrency.Event()
        # Only the I/O thread uses the fields below.
        self._connected_nodes: dict[int, Node] = {}  # the metadata that the peers follow
        # Bootstrap addresses have no ids yet: negative ones keep them apart from brokers.
        self._bootstrap = [
            Node(-1 - index, host, port)
            for index, (host, port) in enumerate(parse_servers(config.bootstrap_servers))
        ]
        self._peers: dict[tuple[int, str], Peer] = {}
        self._due_ms = 0  # no deadline expires earlier
        loop.add(self)

    # --- any thread ---------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """The brokers of the latest metadata."""
        return list(self._nodes.values())

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers; connections to brokers that left or moved are closed."""
        replaced = {node.id: node for node in nodes}
        if replaced != self._nodes:
            self._nodes = replaced
            self._loop.process(self)

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send a request; see Transport."""
        if os.getpid() != self._loop.pid:
            raise ClientError(
                "a client cannot be used after a fork", hint="create a new one in the child process"
            )
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        exchange = Exchange(request, timeout_ms=timeout_ms, deadline_ms=deadline_ms)
        exchange.version_max = version_max
        with self._lock:
            if self.is_closed:
                raise ClientError("the client is closed")
            self._inbox.append((node_id, exchange))
        self._loop.process(self)
        return exchange.future

    def close(self) -> None:
        """Close all connections, and the thread unless it is shared; pending requests fail."""
        if self._owns_loop:
            self._loop.close()
        elif os.getpid() == self._loop.pid:
            self.refuse()
            self._loop.process(self)
            if not self._loop.is_current_thread():
                self._ended.wait()

    def refuse(self) -> None:
        """Accept no more requests."""
        with self._lock:
            self.is_closed = True

    # --- the I/O thread -----------------------------------------------------------------------

    def step(self, ready: Iterable[Peer]) -> None:
        """Read and write where sockets are ready, then connect, send and time out where due."""
        self._take_inbox()
        for peer in ready:
            self._guard(peer, self._advance)
        now_ms = self._clock.monotonic_ms()
        for peer in list(self._peers.values()):
            if peer.queue or peer.connection is not None:
                if now_ms >= self._due_ms:
                    self._time_out(peer, now_ms)
                self._guard(peer, self._serve)
                self._watch(peer)

    def due_ms(self) -> int | None:
        """The time of the next action, by the monotonic clock; None if there is none."""
        due_ms = NEVER_MS
        for peer in self._peers.values():
            for exchange in peer.queue:
                due_ms = min(due_ms, exchange.deadline_ms)
            if peer.connection is None:
                if peer.queue:
                    due_ms = min(due_ms, peer.retry_at_ms)
            elif peer.connection.phase is not ConnectionPhase.READY:
                due_ms = min(due_ms, peer.connect_deadline_ms)
            else:
                for exchange in peer.connection.in_flight:
                    due_ms = min(due_ms, exchange.deadline_ms)
        self._due_ms = due_ms
        return None if due_ms == NEVER_MS else due_ms

    def fail(self, error: MillstreamError) -> None:
        """Close all connections; all requests fail with the error."""
        for peer in self._peers.values():
            self._break(peer, error)
        self._peers.clear()
        for _, exchange in self._taken_from_inbox():
            exchange.future.set_exception(error)

    def end(self) -> None:
        """Close all connections permanently."""
        self.refuse()
        self.fail(ClientError("the client was closed"))
        self._ended.set()

    # --- requests -----------------------------------------------------------------------------

    def _take_inbox(self) -> None:
        self._follow(self._nodes)
        for node_id, exchange in self._taken_from_inbox():
            self._dispatch(node_id, exchange)

    def _taken_from_inbox(self) -> list[tuple[int | None, Exchange]]:
        if not self._inbox:  # a later request wakes the loop up
            return []
        with self._lock:
            taken = list(self._inbox)
            self._inbox.clear()
        return taken

    def _follow(self, nodes: dict[int, Node]) -> None:
        """Replace the brokers; the requests to brokers that left or moved fail."""
        if nodes is self._connected_nodes:
            return
        self._connected_nodes = nodes
        for key, peer in list(self._peers.items()):
            if key[0] >= 0 and nodes.get(key[0]) != peer.node:
                self._break(peer, ConnectionFailed(f"{peer.node} left the cluster or moved"))
                del self._peers[key]

    def _dispatch(self, node_id: int | None, exchange: Exchange) -> None:
        """Queue a request at the peer of its broker."""
        node = self._any_node() if node_id is None else self._connected_nodes.get(node_id)
        if node is None:
            exchange.future.set_exception(
                ConnectionFailed(f"broker {node_id} is not in the cluster's metadata")
            )
            return
        self._peer(node, CONNECTIONS.get(type(exchange.request), MAIN_CONNECTION)).queue.append(
            exchange
        )
        self._due_ms = min(self._due_ms, exchange.deadline_ms)

    def _peer(self, node: Node, connection: str) -> Peer:
        key = (node.id, connection)
        if key not in self._peers:
            self._peers[key] = Peer(node)
        return self._peers[key]

    def _any_node(self) -> Node:
        """The least busy connected broker, else one that may connect, else the soonest to retry."""
        now_ms = self._clock.monotonic_ms()
        nodes = list(self._connected_nodes.values()) or self._bootstrap
        peers = {node: self._peers.get((node.id, MAIN_CONNECTION)) for node in nodes}
        if all(peer is not None and peer.failures for peer in peers.values()):
            # All known brokers fail: the whole cluster may have moved, so try the bootstrap
            # addresses, too.
            for node in self._bootstrap:
                peers[node] = self._peers.get((node.id, MAIN_CONNECTION))
        ready = [peer for peer in peers.values() if peer is not None and peer.ready]
        if ready:
            return min(ready, key=lambda peer: peer.load).node
        order = list(peers)
        self._random.shuffle(order)

        def retry_at_ms(node: Node) -> int:
            peer = peers[node]
            return 0 if peer is None else max(0, peer.retry_at_ms - now_ms)

        return min(order, key=retry_at_ms)

    # --- one peer -----------------------------------------------------------------------------

    def _guard(self, peer: Peer, action: Callable[[Peer], None]) -> None:
        try:
            action(peer)
        except MillstreamError as error:
            self._break(peer, error)

    def _advance(self, peer: Peer) -> None:
        connection = peer.connection
        if connection is None:
            return
        was_ready = peer.ready
        connection.advance()
        if peer.ready and not was_ready:
            peer.failures, peer.failure = 0, ""
            lifetime_ms = connection.session.lifetime_ms
            if lifetime_ms > 0:
                now_ms = self._clock.monotonic_ms()
                peer.expires_ms = now_ms + int(lifetime_ms * SESSION_SHARE)

    def _serve(self, peer: Peer) -> None:
        if peer.expires_ms is not None and self._clock.monotonic_ms() >= peer.expires_ms:
            self._retire(peer)
        if peer.connection is None:
            self._connect(peer)
        connection = peer.connection
        if connection is None or peer.expires_ms == 0:
            return
        while peer.queue and connection.accepts:
            exchange = peer.queue.popleft()
            try:
                connection.send(exchange)
            except (CannotEncode, UnsupportedVersion) as error:
                exchange.future.set_exception(error)
        if connection.has_outgoing:
            connection.flush()

    def _retire(self, peer: Peer) -> None:
        """Close a connection whose authentication expires soon, once its requests are answered."""
        peer.expires_ms = 0
        if peer.connection is not None and not peer.connection.in_flight:
            self._disconnect(peer)

    def _connect(self, peer: Peer) -> None:
        now_ms = self._clock.monotonic_ms()
        if not peer.queue or now_ms < peer.retry_at_ms:
            return
        peer.connect_deadline_ms = now_ms + self._config.socket_connection_setup_timeout_ms
        address = (peer.node.host, peer.node.port)
        peer.connection = Connection(address, self._config, self._tls, self._sockets)

    def _time_out(self, peer: Peer, now_ms: int) -> None:
        if peer.connection is not None:
            if not peer.ready and now_ms >= peer.connect_deadline_ms:
                waited_ms = self._config.socket_connection_setup_timeout_ms
                self._break(
                    peer,
                    ConnectionFailed(
                        f"{peer.node} did not accept the connection within {waited_ms} ms"
                    ),
                )
                return
            late = [e for e in peer.connection.in_flight if now_ms >= e.deadline_ms]
            if peer.ready and late:
                # Responses are in order: after a lost one, no other can arrive. Reconnect.
                self._fail_late(peer, late)
                self._break(peer, ConnectionFailed(f"{peer.node} stopped answering"))
                return
        for exchange in [e for e in peer.queue if now_ms >= e.deadline_ms]:
            peer.queue.remove(exchange)
            exchange.future.set_exception(peer.not_sent(exchange))

    def _fail_late(self, peer: Peer, late: list[Exchange]) -> None:
        assert peer.connection is not None
        for exchange in late:
            peer.connection.in_flight.remove(exchange)
            exchange.future.set_exception(peer.timeout(exchange))

    def _break(self, peer: Peer, error: MillstreamError) -> None:
        """Drop the connection, fail all requests, and wait before the next attempt."""
        waiting = peer.waiting()
        had_ready = peer.ready
        self._disconnect(peer)
        peer.queue.clear()
        if not had_ready:
            peer.failures += 1
            peer.failure = error.message
        peer.retry_at_ms = self._clock.monotonic_ms() + self._backoff_ms(peer.failures)
        if had_ready and self._on_break is not None:
            self._on_break(peer.node.id)
        for exchange in waiting:
            exchange.future.set_exception(error)

    def _backoff_ms(self, failures: int) -> int:
        if failures == 0:
            return 0
        base_ms = self._config.reconnect_backoff_ms * 2 ** min(failures - 1, 20)
        jitter = self._random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
        return int(min(base_ms, self._config.reconnect_backoff_max_ms) * jitter)

    def _disconnect(self, peer: Peer) -> None:
        if peer.watched is not None:
            self._selector.unregister(peer.watched[0])  # type: ignore[arg-type]
            peer.watched = None
        if peer.connection is not None:
            peer.connection.close()
            peer.connection = None
        peer.expires_ms = None

    def _watch(self, peer: Peer) -> None:
        """Register the events that the connection waits for."""
        if peer.connection is None:
            return
        socket, events = wanted = (peer.connection.socket, peer.connection.events)
        watched = peer.watched
        if watched is not None and watched[0] is socket and watched[1] == events:
            return
        if peer.watched is not None and peer.watched[0] is wanted[0]:
            self._selector.modify(*wanted, (self, peer))
        else:
            if peer.watched is not None:
                self._selector.unregister(peer.watched[0])  # type: ignore[arg-type]
            self._selector.register(*wanted, (self, peer))
        peer.watched = wanted
