"""Our Connect worker as a separate process, which tests start, stop and kill."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.client import ConnectClient
from tests.support.kafka_connect_worker import worker_settings
from tests.support.ports import held_ports
from tests.support.server_process import ServerProcess


class MillstreamWorker(ServerProcess):
    """`python -m connect` in a folder, with the same port after restarts."""

    def __init__(
        self,
        folder: Path,
        *,
        bootstrap: str,
        settings: Mapping[str, str | None] | None = None,
        connectors: Sequence[Path] = (),
    ) -> None:
        """By default a distributed worker; a setting that is None is omitted."""
        (port,) = held_ports(1)
        named: dict[str, str | None] = {**worker_settings(bootstrap, port), **(settings or {})}
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "worker.properties"
        lines = [f"{name}={text}\n" for name, text in named.items() if text is not None]
        file.write_text("".join(lines))
        super().__init__(folder, "connect", [str(file), *map(str, connectors)])

    @property
    def client(self) -> ConnectClient:
        """A client of the worker's REST API."""
        return ConnectClient(f"http://{self.address}")
