"""Platform: the four services of `millstream up`, on one data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker import Broker, BrokerConfig
from broker.server import Server
from millstream.commands.connect import CONVERTERS, IN_TOPICS, connect_service
from millstream.commands.registry import RegistryOptions, registry_service
from millstream.commands.serving import RunningService, Service
from millstream.commands.sql_server import STATE_DIRECTORY, SqlOptions, sql_service
from millstream.settings import PlatformSettings


class Platform:
    """Runs all services on one data directory; each may use those that started before it."""

    def __init__(self, settings: PlatformSettings) -> None:
        self._settings = settings
        listener = f"PLAINTEXT://{settings.listen('broker')}"
        config = {
            "group.initial.rebalance.delay.ms": "0",
            "listeners": listener,
            "metrics.allowed.hosts": settings.allowed_hosts,
        }
        self._broker = Broker(
            BrokerConfig.from_properties({**config, **settings.broker}),
            data_directory=settings.data_dir,
        )
        # Of the running services: the bootstrap address of the broker, the URLs of the others.
        self.addresses: dict[str, str] = {}

    @property
    def services(self) -> list[Service]:
        """The services in the order in which they start."""
        return [self._start_broker, self._start_registry, self._start_connect, self._start_sql]

    @contextmanager
    def _start_broker(self) -> Iterator[RunningService]:
        with self._broker, Server(self._broker) as server:
            address = self.addresses["broker"] = server.bootstrap
            directory = self._settings.data_dir
            yield RunningService(
                {"event": "broker", "bootstrap": address, "data_dir": directory},
                f"broker on {address}, data in {directory}",
            )

    @contextmanager
    def _start_registry(self) -> Iterator[RunningService]:
        options = RegistryOptions(
            listen=self._settings.listen("registry"), allowed_hosts=self._settings.allowed_hosts
        )
        with registry_service(self._broker, options) as started:
            self.addresses["registry"] = str(started.fields["url"])
            yield started

    @contextmanager
    def _start_connect(self) -> Iterator[RunningService]:
        worker_settings = {
            "listeners": self._settings.url("connect"),
            "rest.allowed.hosts": self._settings.allowed_hosts,
            "connector.allowed.paths": f"{self._settings.data_dir},.",
            **self._settings.connect,
        }
        with connect_service(
            self._broker, {**CONVERTERS, **IN_TOPICS, **worker_settings}
        ) as started:
            self.addresses["connect"] = str(started.fields["url"])
            # If another worker takes over the group, that is logged; the other services continue.
            yield RunningService(started.fields, started.text)

    @contextmanager
    def _start_sql(self) -> Iterator[RunningService]:
        options = SqlOptions(
            Path(self._settings.data_dir) / STATE_DIRECTORY,
            self._settings.listen("sql"),
            self.addresses["registry"],
            settings={
                "ksql.connect.url": self.addresses["connect"],
                "ksql.allowed.hosts": self._settings.allowed_hosts,
                **self._settings.sql,
            },
        )
        with sql_service(self._broker, options) as started:
            self.addresses["sql"] = str(started.fields["url"])
            yield started
