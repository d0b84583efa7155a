"""Peers: the brokers as the I/O thread sees them: queues, connections, backoff, timeouts.

A peer is one connection's worth of a broker (or of a bootstrap address): requests wait in its queue
while it connects or has too much in flight. When its connection breaks, all its requests fail;
who asked decides whether to ask again.
"""

import ssl
from collections import deque
from collections.abc import Callable, Iterable
from selectors import BaseSelector

from broker.client.config import NetworkConfig, parse_servers
from broker.client.connection import CannotEncode, Connection, ConnectionPhase, Exchange
from broker.client.transport import Node
from broker.errors import ConnectionFailed, MillstreamError, RequestTimeout, UnsupportedVersion
from broker.machine import Machine
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.groups import JoinGroupRequest, SyncGroupRequest

# A broker handles one request of a connection at a time: what it answers late goes elsewhere.
CONNECTIONS: dict[type[object], str] = {
    FetchRequest: "fetch",
    JoinGroupRequest: "group",
    SyncGroupRequest: "group",
}
MAIN_CONNECTION = "main"
SESSION_SHARE = 0.85  # leave before the broker cuts off an authentication that grew too old
BACKOFF_JITTER = 0.2
NEVER_MS = 1 << 62


class Peer:
    """One connection's worth of a broker."""

    __slots__ = (
        "connect_deadline_ms",
        "connection",
        "expires_ms",
        "failure",
        "failures",
        "node",
        "queue",
        "retry_at_ms",
        "watched",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.queue: deque[Exchange] = deque()
        self.connection: Connection | None = None
        self.failures = 0
        self.failure = ""  # why the last attempt to connect failed
        self.retry_at_ms = 0
        self.connect_deadline_ms = 0
        self.expires_ms: int | None = None
        self.watched: tuple[object, int] | None = None

    @property
    def ready(self) -> bool:
        """Whether a request would be written at once."""
        return self.connection is not None and self.connection.phase is ConnectionPhase.READY

    @property
    def load(self) -> int:
        """How many requests wait here or are in flight."""
        return len(self.queue) + (len(self.connection.in_flight) if self.connection else 0)

    def waiting(self) -> list[Exchange]:
        """All requests without an answer, oldest first; not those that open the connection."""
        in_flight = self.connection.in_flight if self.connection and self.ready else ()
        return [*in_flight, *self.queue]


class Peers:
    """All peers; every method belongs to the I/O thread."""

    def __init__(
        self,
        config: NetworkConfig,
        machine: Machine,
        selector: BaseSelector,
        on_break: Callable[[int], None] | None = None,
    ) -> None:
        """Only the bootstrap addresses are known; `on_break` is called when a connection breaks."""
        self._config = config
        self._on_break = on_break
        self._sockets = machine.sockets
        self._clock = machine.clock
        self._random = machine.random
        self._selector = selector
        self._tls: ssl.SSLContext | None = None
        self._nodes: dict[int, Node] = {}
        # Bootstrap addresses have no ids yet: negative ones keep them apart from brokers.
        self._bootstrap = [
            Node(-1 - index, host, port)
            for index, (host, port) in enumerate(parse_servers(config.bootstrap_servers))
        ]
        self._peers: dict[tuple[int, str], Peer] = {}
        self._due_ms = 0  # no deadline expires before

    def use_tls(self, context: ssl.SSLContext | None) -> None:
        """Encrypt connections made from now on."""
        self._tls = context

    def update_nodes(self, nodes: dict[int, Node]) -> None:
        """Replace the brokers; a peer that moved or went away fails what it still holds."""
        if nodes is self._nodes:
            return
        self._nodes = nodes
        for key, peer in list(self._peers.items()):
            if key[0] >= 0 and nodes.get(key[0]) != peer.node:
                self._break(peer, ConnectionFailed(f"{peer.node} left the cluster or moved"))
                del self._peers[key]

    def dispatch(self, node_id: int | None, exchange: Exchange) -> None:
        """Queue a request at the peer it is for."""
        node = self._any_node() if node_id is None else self._nodes.get(node_id)
        if node is None:
            exchange.future.set_exception(
                ConnectionFailed(f"broker {node_id} is not in the cluster's metadata")
            )
            return
        self._peer(node, CONNECTIONS.get(type(exchange.request), MAIN_CONNECTION)).queue.append(
            exchange
        )
        self._due_ms = min(self._due_ms, exchange.deadline_ms)

    def step(self, ready: Iterable[Peer]) -> None:
        """Read and write where sockets are ready, then connect, send and time out where due."""
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
        """When something will be due next, by the clock's monotonic time; None: nothing will."""
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

    def end(self, error: MillstreamError) -> None:
        """Fail everything."""
        for peer in self._peers.values():
            self._break(peer, error)
        self._peers.clear()

    # --- which peer ---------------------------------------------------------------------------

    def _peer(self, node: Node, connection: str) -> Peer:
        key = (node.id, connection)
        if key not in self._peers:
            self._peers[key] = Peer(node)
        return self._peers[key]

    def _any_node(self) -> Node:
        """The least busy connected broker, else one that may connect, else the soonest to retry."""
        now_ms = self._clock.monotonic_ms()
        nodes = list(self._nodes.values()) or self._bootstrap
        peers = {node: self._peers.get((node.id, MAIN_CONNECTION)) for node in nodes}
        if all(peer is not None and peer.failures for peer in peers.values()):
            # Every broker we know fails: the whole cluster may have moved, so ask the addresses
            # we were given too.
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
        """Let a connection whose authentication runs out answer what it has, then drop it."""
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
                # Nothing behind a lost response can be trusted to arrive: reconnect.
                self._fail_late(peer, late)
                self._break(peer, ConnectionFailed(f"{peer.node} stopped answering"))
                return
        for exchange in [e for e in peer.queue if now_ms >= e.deadline_ms]:
            peer.queue.remove(exchange)
            exchange.future.set_exception(_not_sent(peer, exchange))

    def _fail_late(self, peer: Peer, late: list[Exchange]) -> None:
        assert peer.connection is not None
        for exchange in late:
            peer.connection.in_flight.remove(exchange)
            exchange.future.set_exception(_timeout(peer, exchange))

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
        """Tell the selector what the connection waits for now."""
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


def _not_sent(peer: Peer, exchange: Exchange) -> MillstreamError:
    """Why there is no connection says more than that the request waited for one."""
    return ConnectionFailed(peer.failure) if peer.failure else _timeout(peer, exchange)


def _timeout(peer: Peer, exchange: Exchange) -> RequestTimeout:
    return RequestTimeout(
        f"{exchange.name} to {peer.node} was not answered within {exchange.timeout_ms} ms",
        hint="check that the broker is up and reachable, or raise request_timeout_ms",
    )
