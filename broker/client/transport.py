"""Transport: how a request reaches a broker; all that embedded and network clients differ in."""

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Node:
    """A broker: its id and where it listens."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        """As messages name it."""
        return f"broker {self.id} ({self.host}:{self.port})"


class Transport(Protocol):
    """Sends requests, completes futures.

    Requests to one node are answered in the order they were sent, with two exceptions that have
    connections of their own, because a broker answers them late: fetches, and joins and syncs of
    groups. Futures complete on the transport's thread, or before `send` returns: callbacks must be
    short and must expect both.
    """

    def nodes(self) -> list[Node]:
        """The brokers it knows; empty until `update_nodes` is called."""
        ...

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send a request message to a node (None: to any); the future holds the response message.

        The version is the highest that both sides know, at most `version_max`. A request without
        an answer (Produce with acks=0) completes with None. Failures: ConnectionFailed,
        RequestTimeout, AuthenticationFailed, UnsupportedVersion, MalformedMessage.
        """
        ...

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Tell which brokers there are, after a metadata response."""
        ...

    def close(self) -> None:
        """Fail all requests in flight and release all resources."""
        ...
