"""Our broker as a separate process, which tests start, stop and kill."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.ports import held_ports
from tests.support.server_process import ServerProcess


class MillstreamBroker(ServerProcess):
    """`python -m broker` in a folder, with the same port after restarts."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        (port,) = held_ports(1)
        self.data_dir = folder / "data"
        arguments = ["--data-dir", str(self.data_dir), "--port", str(port)]
        for name, value in (settings or {}).items():
            arguments += ["--config", f"{name}={value}"]
        super().__init__(folder, "broker", arguments)

    @property
    def bootstrap(self) -> str:
        """The bootstrap address for clients."""
        return self.address
