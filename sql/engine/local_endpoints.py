"""LocalEndpoints: addresses of the broker and the registry for other processes, such as workers."""

from contextlib import ExitStack

from broker import concurrency
from broker.broker import Broker
from broker.client.opening import Target
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from broker.serde.registry.api import SchemaRegistry
from broker.server import Server
from sql.errors import SqlError

LOOPBACK = "127.0.0.1:0"  # a free port that only this machine reaches


class LocalEndpoints:
    """Serves what exists only in this process, from the first use on. Thread-safe."""

    def __init__(self, target: Target, registry: SchemaRegistry | None) -> None:
        self._target = target
        self._registry = registry
        self._lock = concurrency.Lock()
        self._serving = ExitStack()
        self._servers: str | None = target if isinstance(target, str) else None
        self._registry_url: str | None = None

    def servers(self) -> str:
        """The broker's address."""
        with self._lock:
            if self._servers is None:
                if not isinstance(self._target, Broker):
                    raise SqlError(
                        "Spark's workers are other processes and cannot reach the broker through "
                        "this engine's connections",
                        hint="pass the broker's address to the engine, host:port",
                    )
                server = Server(self._target, listeners=(f"PLAINTEXT://{LOOPBACK}",))
                self._servers = self._serving.enter_context(server).bootstrap
            return self._servers

    def registry_url(self) -> str | None:
        """The address of a registry in this process; None if there is none."""
        with self._lock:
            if self._registry_url is None and isinstance(self._registry, Registry):
                server = RegistryServer(self._registry, listen=LOOPBACK)
                self._registry_url = self._serving.enter_context(server).url
            return self._registry_url

    def close(self) -> None:
        """Stop serving."""
        with self._lock:
            self._serving.close()
