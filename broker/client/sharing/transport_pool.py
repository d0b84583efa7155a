"""TransportPool: transports to brokers, one for each concurrent read.

A broker answers the requests of a connection in order, and long polls late: unrelated reads must
not share a connection.
"""

from collections.abc import Callable, Iterable
from functools import partial

from broker import concurrency
from broker.client.transport import Node, Transport


class TransportPool:
    """Transports with one read at a time each; a new one is opened when all are in use."""

    def __init__(
        self,
        open_transport: Callable[[Callable[[int], None]], Transport],
        on_break: Callable[["TransportPool", int], None],
    ) -> None:
        """`on_break` is called with the node whose connection broke."""
        self._open_transport = open_transport
        self._on_break = on_break
        self._lock = concurrency.Lock()
        self._nodes: list[Node] = []
        self._free: dict[int, list[Transport]] = {}  # by node
        self._all: list[Transport] = []

    def take(self, node_id: int) -> Transport:
        """A free transport for a read from a node."""
        try:
            return self._free[node_id].pop()  # lists are safe to take from without the lock
        except LookupError:
            pass
        transport = self._open_transport(partial(self._on_break, self))
        with self._lock:
            self._all.append(transport)
            transport.update_nodes(self._nodes)
        return transport

    def give_back(self, node_id: int, transport: Transport) -> None:
        """Return a transport after a read."""
        self._free.setdefault(node_id, []).append(transport)

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers of all transports."""
        known = list(nodes)
        with self._lock:
            if known == self._nodes:
                return
            self._nodes = known
            for transport in self._all:
                transport.update_nodes(known)

    def close(self) -> None:
        """Close all transports; pending requests fail."""
        with self._lock:
            transports, self._all = self._all, []
            self._free.clear()
        for transport in transports:
            transport.close()
