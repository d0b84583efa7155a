"""RegistryServer: a registry over HTTP, in a thread."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from broker.registry.registry import Registry
from broker.registry.rest import RestApplication
from broker.server.http_server import HttpServer

LISTEN = "127.0.0.1:8081"


class RegistryServer:
    """Serves a started registry; port 0 takes a free one.

    with Broker() as broker, Registry(broker) as registry, RegistryServer(registry) as server:
        server.url                                  # "http://127.0.0.1:8081"
    """

    def __init__(
        self,
        registry: Registry,
        *,
        listen: str = LISTEN,
        cluster_id: str = "",
        allowed_hosts: Iterable[str] = (),
    ) -> None:
        """Nothing listens before `start`; `allowed_hosts` are more names of the server."""
        application = RestApplication(registry, cluster_id=cluster_id)
        self._server = HttpServer(
            application, listen=listen, name="registry-server", allowed_hosts=allowed_hosts
        )

    @property
    def address(self) -> str:
        """host:port, where it listens."""
        return self._server.address

    @property
    def url(self) -> str:
        """What clients are given."""
        return f"http://{self.address}"

    def start(self) -> Self:
        """Listen; returns when requests are taken."""
        self._server.start()
        return self

    def close(self) -> None:
        """Answer what was asked, and stop; the registry stays open."""
        self._server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
