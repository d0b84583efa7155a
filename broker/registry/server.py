"""RegistryServer: a registry over HTTP, in a thread."""

from collections.abc import Iterable

from broker.registry.registry import Registry
from broker.registry.rest import registry_application
from broker.rest import HttpServer

LISTEN = "127.0.0.1:8081"


class RegistryServer(HttpServer):
    """Serves a started registry; port 0 uses any free port.

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
        """Nothing listens before `start`; `allowed_hosts` are additional names of the server."""
        application = registry_application(registry, cluster_id=cluster_id)
        super().__init__(
            application,
            listen=listen,
            name="registry-server",
            allowed_hosts=allowed_hosts,
            refusal=application.refusal,
        )
