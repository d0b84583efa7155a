"""SharedTransports: ways to one cluster for many clients, over shared threads and reads."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import Self

from broker import concurrency
from broker.client.config import NetworkConfig, refuse_unknown
from broker.client.embedded import RequestHandler
from broker.client.remote import Remote, machine_of
from broker.client.sharing.flights import Reader
from broker.client.sharing.lanes import Lanes
from broker.client.sharing.reads import ReadCounts, SharedReads, can_share
from broker.client.sharing.ways import EmbeddedWays, NetworkWays
from broker.client.transport import Node, Transport
from broker.clock import Clock
from broker.errors import ClientError
from broker.protocol.messages.fetch import FetchRequest

CACHE_BYTES = 64 * 1024 * 1024
READS_CLIENT_ID = "millstream-shared-reads"


class SharedTransport:
    """One client's way: its own connections, shared threads, shared reads; see Transport."""

    takes_many_fetches = True  # one that waits does not hold up the others

    def __init__(
        self,
        own: Transport,
        reader: Reader,
        reads: SharedReads,
        on_close: Callable[["SharedTransport"], None],
    ) -> None:
        """Send fetches through the shared reads, everything else through the own transport."""
        self._own = own
        self._on_close = on_close
        self._reader = reader
        self._reads = reads

    def nodes(self) -> list[Node]:
        """The brokers of the last metadata."""
        return self._own.nodes()

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers, for the shared reads too."""
        known = list(nodes)
        self._own.update_nodes(known)
        self._reader.lanes.update_nodes(known)

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send a request; see Transport."""
        if isinstance(request, FetchRequest):
            if node_id is not None and can_share(request, version_max):
                return self._reads.ask(self._reader, node_id, request, timeout_ms=timeout_ms)
            self._reads.count_private()
        return self._own.send(node_id, request, timeout_ms=timeout_ms, version_max=version_max)

    def close(self) -> None:
        """Fail what this client has under way; others do not notice."""
        self._on_close(self)
        self._reads.leave(self._reader)
        self._own.close()


class SharedTransports:
    """Opens transports to one broker or cluster that share an I/O thread and what they read.

    It may stand wherever a client takes a broker or "host:port":

    >>> with SharedTransports(broker) as shared:
    ...     readers = [consumer(shared, auto_offset_reset="earliest") for _ in range(50)]
    """

    def __init__(
        self,
        target: RequestHandler | str | Remote,
        *,
        clock: Clock | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Keep at most so many bytes of what was read, for readers that come a little later."""
        self._lock = concurrency.Lock()
        self._target = target
        self.machine = machine_of(target, clock)
        self._ways: EmbeddedWays | NetworkWays = (
            NetworkWays(str(target), self.machine)
            if isinstance(target, str | Remote)
            else EmbeddedWays(target, self.machine)
        )
        self._reads = SharedReads(cache_bytes=cache_bytes, clock=self.machine.clock)
        self._lanes: dict[NetworkConfig, Lanes] = {}
        self._opened: dict[SharedTransport, None] = {}
        self._closed = False

    @property
    def counts(self) -> ReadCounts:
        """What was read from brokers and handed out so far."""
        return self._reads.counts

    def open(self, options: dict[str, object], *taken: type[object]) -> Transport:
        """A transport with the options that are left; unknown ones are refused."""
        settings = self._ways.settings(options)
        refuse_unknown(options, NetworkConfig, *taken)
        lanes = self._lanes_of(replace(settings, client_id=READS_CLIENT_ID))
        opened = SharedTransport(
            self._ways.open(settings), Reader(lanes), self._reads, self._forget
        )
        with self._lock:
            if not self._closed:
                self._opened[opened] = None
                return opened
        opened.close()
        raise ClientError("the client is closed")

    def close(self) -> None:
        """Close all transports; what is under way fails."""
        with self._lock:
            self._closed = True
            opened, lanes = list(self._opened), list(self._lanes.values())
        for transport in opened:
            transport.close()
        for each in lanes:
            each.close()
        self._ways.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self, transport: SharedTransport) -> None:
        self._opened.pop(transport, None)

    def _lanes_of(self, settings: NetworkConfig) -> Lanes:
        """The lanes that reads go by; who authenticates differently reads for itself."""
        with self._lock:
            lanes = self._lanes.get(settings)
            if lanes is None:
                lanes = self._lanes[settings] = Lanes(
                    lambda broke: self._ways.open(settings, broke), self._reads.forget_node
                )
            return lanes
