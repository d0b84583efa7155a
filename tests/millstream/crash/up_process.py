"""UpProcess: `millstream up` as a process of its own, killed and started again by tests."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.support.peer import wait_until
from tests.support.ports import held_ports
from tests.support.sql_server import PATIENCE_S, ServerFailed

SERVICES = ("broker", "registry", "connect", "sql")


class UpProcess:
    """All four services in one process, in a folder and on ports that outlive it."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.data_directory = folder / "data"
        self._ports = dict(zip(SERVICES, held_ports(len(SERVICES)), strict=True))
        self._settings = dict(settings)
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def bootstrap(self) -> str:
        """The address of the broker."""
        return f"127.0.0.1:{self._ports['broker']}"

    def url(self, service: str) -> str:
        """The address of one of the other services."""
        return f"http://127.0.0.1:{self._ports[service]}"

    @property
    def _events(self) -> Path:
        return self.folder / f"events-{self._starts}"

    def start(self, more_settings: Mapping[str, str] | None = None) -> None:
        """Begin to start; it may be killed before it serves."""
        self._starts += 1
        command = [sys.executable, "-m", "millstream", "up", "--json", "-d"]
        command.append(str(self.data_directory))
        for name, port in self._ports.items():
            command += [f"--{name}-port", str(port)]
        for name, value in {**self._settings, **(more_settings or {})}.items():
            command += ["--set", f"{name}={value}"]
        with open(self._events, "wb") as events, open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=events, stderr=log)

    def wait_ready(self) -> None:
        """Until all services serve."""

        def ready() -> bool:
            self.check_alive()
            return b'"ready"' in self._events.read_bytes()

        wait_until(ready, "a platform that serves", timeout_s=PATIENCE_S)

    def run_for(self, seconds: float) -> None:
        """Let it run for that long; ServerFailed if it ends before."""
        assert self._process is not None
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return
        self.check_alive()

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self.check_alive()
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let it end in order."""
        self.check_alive()
        assert self._process is not None
        self._process.terminate()
        try:
            code = self._process.wait(timeout=PATIENCE_S)
        finally:
            self._process.kill()
        if code != 0:
            raise ServerFailed(f"the platform ended with {code}:\n{self.tail()}")

    def discard(self) -> None:
        """End it if it still runs, whatever state it is in."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def check_alive(self) -> None:
        """ServerFailed if it has ended by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise ServerFailed(f"the platform ended by itself:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-6000:] if self._log.exists() else ""

    # Any: JSON, whose shape the caller knows.
    def sql(self, text: str) -> Any:
        """Run statements; queries begin at the beginning of topics."""
        body = {"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}
        return _checked(httpx.post(f"{self.url('sql')}/ksql", json=body, timeout=PATIENCE_S))

    def create_connector(self, name: str, config: Mapping[str, str]) -> None:
        """POST the JSON of a connector."""
        body = {"name": name, "config": config}
        url = f"{self.url('connect')}/connectors"
        _checked(httpx.post(url, json=body, timeout=PATIENCE_S))

    def connector_failures(self, names: Sequence[str]) -> list[str]:
        """Why connectors or tasks have failed."""
        found = []
        for name in names:
            url = f"{self.url('connect')}/connectors/{name}/status"
            status = _checked(httpx.get(url, timeout=PATIENCE_S))
            for each in (status["connector"], *status["tasks"]):
                if each["state"] == "FAILED":
                    found.append(f"{name}: {each.get('trace')}")
        return found


# Any: JSON, whose shape the caller knows.
def _checked(response: httpx.Response) -> Any:
    if response.is_error:
        raise ServerFailed(f"{response.request.url}: {response.text[:1000]}")
    return orjson.loads(response.content)
