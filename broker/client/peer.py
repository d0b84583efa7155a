"""Peer: one connection to a broker or a bootstrap address, and the requests queued for it."""

from collections import deque

from broker.client.connection import Connection, ConnectionPhase, Exchange
from broker.client.transport import Node
from broker.errors import ConnectionFailed, MillstreamError, RequestTimeout


class Peer:
    """A connection, once it is open, and its queue; only the I/O thread uses it."""

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
        self.expires_ms: int | None = None  # of the authentication; 0: the connection is retired
        self.watched: tuple[object, int] | None = None  # socket and events in the selector

    @property
    def ready(self) -> bool:
        """Whether a request would be written immediately."""
        return self.connection is not None and self.connection.phase is ConnectionPhase.READY

    @property
    def load(self) -> int:
        """The number of requests that are queued or in flight."""
        return len(self.queue) + (len(self.connection.in_flight) if self.connection else 0)

    def waiting(self) -> list[Exchange]:
        """All requests without a response, oldest first, except those that open the connection."""
        in_flight = self.connection.in_flight if self.connection and self.ready else ()
        return [*in_flight, *self.queue]

    def not_sent(self, exchange: Exchange) -> MillstreamError:
        """The error of a request that was not sent: why connecting failed, or else a timeout."""
        return ConnectionFailed(self.failure) if self.failure else self.timeout(exchange)

    def timeout(self, exchange: Exchange) -> RequestTimeout:
        """The error of a request that was not answered in time."""
        return RequestTimeout(
            f"{exchange.name} to {self.node} was not answered within {exchange.timeout_ms} ms",
            hint="check that the broker is up and reachable, or raise request_timeout_ms",
        )
