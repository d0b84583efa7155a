"""SharedTransports: transports of many clients to one cluster, with shared threads and reads."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import Self

from broker import concurrency
from broker.client.config import NetworkConfig, refuse_unknown
from broker.client.embedded import RequestHandler
from broker.client.remote import Remote, machine_of
from broker.client.sharing.fetches import Reader
from broker.client.sharing.reads import ReadCounts, SharedReads, can_share
from broker.client.sharing.transport_factories import (
    EmbeddedTransportFactory,
    NetworkTransportFactory,
)
from broker.client.sharing.transport_pool import TransportPool
from broker.client.transport import Node, Transport
from broker.clock import Clock
from broker.errors import ClientError
from broker.protocol.messages.fetch import FetchRequest

CACHE_BYTES = 64 * 1024 * 1024
READS_CLIENT_ID = "millstream-shared-reads"


class SharedTransport:
    """The transport of one client: its own connections, shared threads and reads."""

    takes_many_fetches = True  # a waiting fetch does not block others

    def __init__(
        self,
        own: Transport,
        reader: Reader,
        reads: SharedReads,
        on_close: Callable[["SharedTransport"], None],
    ) -> None:
        """Fetches use the shared reads; all other requests use the own transport."""
        self._own = own
        self._on_close = on_close
        self._reader = reader
        self._reads = reads

    def nodes(self) -> list[Node]:
        """The brokers of the last metadata."""
        return self._own.nodes()

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers, also for the shared reads."""
        known = list(nodes)
        self._own.update_nodes(known)
        self._reader.pool.update_nodes(known)

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
                return self._reads.fetch(self._reader, node_id, request, timeout_ms=timeout_ms)
            self._reads.count_private()
        return self._own.send(node_id, request, timeout_ms=timeout_ms, version_max=version_max)

    def close(self) -> None:
        """Fail the requests of this client only."""
        self._on_close(self)
        self._reads.leave(self._reader)
        self._own.close()


class SharedTransports:
    """Opens transports to one broker or cluster that share an I/O thread and reads.

    Clients accept it in place of a broker or "host:port":

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
        """`cache_bytes` limits the cache for readers that are a little behind."""
        self._lock = concurrency.Lock()
        self._target = target
        self.machine = machine_of(target, clock)
        self._factory: EmbeddedTransportFactory | NetworkTransportFactory = (
            NetworkTransportFactory(str(target), self.machine)
            if isinstance(target, str | Remote)
            else EmbeddedTransportFactory(target, self.machine)
        )
        self._reads = SharedReads(cache_bytes=cache_bytes, clock=self.machine.clock)
        self._pools: dict[NetworkConfig, TransportPool] = {}
        self._opened: dict[SharedTransport, None] = {}
        self._closed = False

    @property
    def counts(self) -> ReadCounts:
        """The numbers of reads and bytes so far."""
        return self._reads.counts

    def open(self, options: dict[str, object], *taken: type[object]) -> Transport:
        """A transport with the remaining options; unknown ones are refused."""
        settings = self._factory.settings(options)
        refuse_unknown(options, NetworkConfig, *taken)
        pool = self._pool_of(replace(settings, client_id=READS_CLIENT_ID))
        opened = SharedTransport(
            self._factory.open(settings), Reader(pool), self._reads, self._forget
        )
        with self._lock:
            if not self._closed:
                self._opened[opened] = None
                return opened
        opened.close()
        raise ClientError("the client is closed")

    def close(self) -> None:
        """Close all transports; pending requests fail."""
        with self._lock:
            self._closed = True
            opened, pools = list(self._opened), list(self._pools.values())
        for transport in opened:
            transport.close()
        for each in pools:
            each.close()
        self._factory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self, transport: SharedTransport) -> None:
        self._opened.pop(transport, None)

    def _pool_of(self, settings: NetworkConfig) -> TransportPool:
        """The pool for reads; clients with different credentials do not share one."""
        with self._lock:
            pool = self._pools.get(settings)
            if pool is None:
                pool = self._pools[settings] = TransportPool(
                    lambda broke: self._factory.open(settings, broke), self._reads.forget_node
                )
            return pool
