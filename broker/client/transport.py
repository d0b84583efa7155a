"""Transport: sends requests to brokers; embedded and network clients differ only here."""

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Node:
    """A broker: its id and address."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.id} ({self.host}:{self.port})"


class Transport(Protocol):
    """Sends requests and completes futures.

    Requests to one node are answered in order, except fetches, and joins and syncs of groups: a
    broker answers these late, so they have connections of their own. Futures complete on the
    transport's thread, or before `send` returns: callbacks must be short and must expect both.
    """

    def nodes(self) -> list[Node]:
        """The known brokers; empty until `update_nodes` is called."""
        ...

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Send a request to a node (None: to any); the future holds the response.

        The version is the highest that both sides know, at most `version_max`. A request without
        response (Produce with acks=0) completes with None. Failures: ConnectionFailed,
        RequestTimeout, AuthenticationFailed, UnsupportedVersion, MalformedMessage.
        """
        ...

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers, after a metadata response."""
        ...

    def close(self) -> None:
        """Fail all pending requests and release all resources."""
        ...
