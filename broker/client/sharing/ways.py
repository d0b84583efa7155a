"""Ways to a broker in this process, or to a cluster over TCP, by threads that all of them share."""

from collections.abc import Callable

from broker.client.answering import Answering
from broker.client.config import NetworkConfig, take
from broker.client.embedded import EmbeddedTransport, RequestHandler
from broker.client.io_loop import IoLoop
from broker.client.network import NetworkTransport
from broker.client.transport import Transport
from broker.machine import Machine

IN_PROCESS = "in-process:1"  # stands for the address that an embedded broker does not have


class EmbeddedWays:
    """To a broker in this process; one thread gives all answers that come later."""

    def __init__(self, broker: RequestHandler, machine: Machine) -> None:
        """The thread starts with the first answer that comes later."""
        self._broker = broker
        self._answering = Answering(machine.clock)

    def settings(self, options: dict[str, object]) -> NetworkConfig:
        """Take the settings of a transport out of the options: there is only the client's name."""
        return NetworkConfig(IN_PROCESS, client_id=str(options.pop("client_id", "millstream")))

    def open(
        self, settings: NetworkConfig, on_break: Callable[[int], None] | None = None
    ) -> Transport:
        """A transport; nothing can break on the way."""
        return EmbeddedTransport(
            self._broker, client_id=settings.client_id, answering=self._answering
        )

    def close(self) -> None:
        """End the thread."""
        self._answering.close()


class NetworkWays:
    """To brokers over TCP; one thread does all I/O, connections are each transport's own."""

    def __init__(self, servers: str, machine: Machine) -> None:
        """Start the thread."""
        self._servers = servers
        self._loop = IoLoop(machine)

    def settings(self, options: dict[str, object]) -> NetworkConfig:
        """Take the settings of a transport out of the options."""
        options["bootstrap_servers"] = self._servers
        return take(NetworkConfig, options)

    def open(
        self, settings: NetworkConfig, on_break: Callable[[int], None] | None = None
    ) -> Transport:
        """A transport; `on_break` hears to which node a connection broke."""
        return NetworkTransport(settings, loop=self._loop, on_break=on_break)

    def close(self) -> None:
        """End the thread and all connections."""
        self._loop.close()
