"""NetworkTransport: requests to brokers over TCP, as a channel of an I/O loop; see IoLoop."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from broker.client.config import NetworkConfig
from broker.client.connection import Exchange
from broker.client.io_loop import IoLoop
from broker.client.tls import make_context
from broker.client.transport import Node
from broker.errors import ClientError
from broker.machine import Machine


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
        """Share an I/O loop, or own one; nothing connects before the first request."""
        tls = make_context(config)  # first: wrong files must not leave sockets behind
        self._shares_loop = loop is not None
        self._loop = loop or IoLoop(machine)
        self._channel = self._loop.open(config, tls, on_break=on_break)

    def nodes(self) -> list[Node]:
        """The brokers of the last metadata."""
        return list(self._channel.nodes.values())

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the brokers; connections to those that are gone or moved end."""
        replaced = {node.id: node for node in nodes}
        if replaced != self._channel.nodes:
            self._channel.nodes = replaced
            self._loop.touch(self._channel)

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
        deadline_ms = self._loop.clock.monotonic_ms() + timeout_ms
        exchange = Exchange(request, timeout_ms=timeout_ms, deadline_ms=deadline_ms)
        exchange.version_max = version_max
        self._channel.put(node_id, exchange)
        self._loop.touch(self._channel)
        return exchange.future

    def close(self) -> None:
        """End all connections, and the thread unless it is shared; what is under way fails."""
        if not self._shares_loop:
            self._loop.close()
        elif os.getpid() == self._loop.pid:
            self._loop.end(self._channel)
