"""Lanes: ways to the brokers, one for each read that is under way at a time.

A broker answers the requests of a connection one after the other, and a long poll late: reads that
do not belong together must not share one.
"""

from collections.abc import Callable, Iterable
from functools import partial

from broker import concurrency
from broker.client.transport import Node, Transport


class Lanes:
    """Transports that carry one read at a time each; opened when all others are in use."""

    def __init__(
        self,
        open_lane: Callable[[Callable[[int], None]], Transport],
        on_break: Callable[["Lanes", int], None],
    ) -> None:
        """Open none yet; `on_break` hears to which node a connection broke."""
        self._open_lane = open_lane
        self._on_break = on_break
        self._lock = concurrency.Lock()
        self._nodes: list[Node] = []
        self._free: dict[int, list[Transport]] = {}  # by node
        self._all: list[Transport] = []

    def take(self, node_id: int) -> Transport:
        """One that is free, for a read of a node."""
        try:
            return self._free[node_id].pop()  # lists are safe to take from without the lock
        except LookupError:
            pass
        lane = self._open_lane(partial(self._on_break, self))
        with self._lock:
            self._all.append(lane)
            lane.update_nodes(self._nodes)
        return lane

    def give_back(self, node_id: int, lane: Transport) -> None:
        """The read is over."""
        self._free.setdefault(node_id, []).append(lane)

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Tell all which brokers there are."""
        known = list(nodes)
        with self._lock:
            if known == self._nodes:
                return
            self._nodes = known
            for lane in self._all:
                lane.update_nodes(known)

    def close(self) -> None:
        """Close all; what is under way fails."""
        with self._lock:
            lanes, self._all = self._all, []
            self._free.clear()
        for lane in lanes:
            lane.close()
