"""Factories of transports to a broker in this process or to a cluster, with shared threads."""

from collections.abc import Callable

from broker.client.config import NetworkConfig, take
from broker.client.embedded import EmbeddedTransport, RequestHandler
from broker.client.io_loop import IoLoop
from broker.client.network import NetworkTransport
from broker.client.response_thread import ResponseThread
from broker.client.transport import Transport
from broker.machine import Machine

IN_PROCESS = "in-process:1"  # an embedded broker has no address


class EmbeddedTransportFactory:
    """Transports to a broker in this process; one thread delivers all delayed responses."""

    def __init__(self, broker: RequestHandler, machine: Machine) -> None:
        """The first delayed response starts the thread."""
        self._broker = broker
        self._response_thread = ResponseThread(machine.clock)

    def settings(self, options: dict[str, object]) -> NetworkConfig:
        """Take the settings of a transport out of the options: only the client id."""
        return NetworkConfig(IN_PROCESS, client_id=str(options.pop("client_id", "millstream")))

    def open(
        self, settings: NetworkConfig, on_break: Callable[[int], None] | None = None
    ) -> Transport:
        """A transport; its connection never breaks."""
        return EmbeddedTransport(
            self._broker, client_id=settings.client_id, response_thread=self._response_thread
        )

    def close(self) -> None:
        self._response_thread.close()


class NetworkTransportFactory:
    """Transports over TCP; one thread does all I/O, each transport has its own connections."""

    def __init__(self, servers: str, machine: Machine) -> None:
        self._servers = servers
        self._loop = IoLoop(machine)

    def settings(self, options: dict[str, object]) -> NetworkConfig:
        """Take the settings of a transport out of the options."""
        options["bootstrap_servers"] = self._servers
        return take(NetworkConfig, options)

    def open(
        self, settings: NetworkConfig, on_break: Callable[[int], None] | None = None
    ) -> Transport:
        """A transport; `on_break` is called with the node whose connection broke."""
        return NetworkTransport(settings, loop=self._loop, on_break=on_break)

    def close(self) -> None:
        """End the thread and close all connections."""
        self._loop.close()
