"""Our broker as a process of its own, started, stopped and killed by tests."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.ports import held_ports
from tests.support.server_process import ServerProcess


class MillstreamBroker(ServerProcess):
    """`python -m broker` in a folder; it keeps its port over restarts."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        (port,) = held_ports(1)
        self.data_dir = folder / "data"
        arguments = ["--data-dir", str(self.data_dir), "--port", str(port)]
        for name, value in (settings or {}).items():
            arguments += ["--config", f"{name}={value}"]
        super().__init__(folder, "broker", arguments)

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return self.address
