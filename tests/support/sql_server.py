"""`millstream sql server` as a separate process, which tests start, query, stop and kill."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import orjson

from tests.support.peer import wait_until

PATIENCE_S = 240.0


class ServerFailed(Exception):
    """The server ended unexpectedly or rejected a request; the message has the reason."""


class SqlServerProcess:
    """A server with its data in a folder; without a cluster it runs an embedded broker."""

    def __init__(
        self,
        folder: Path,
        *,
        bootstrap: str | None = None,
        registry: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._bootstrap = bootstrap
        self._registry = registry
        self._settings = dict(settings or {})
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def _stdout(self) -> Path:
        return self._folder / f"stdout-{self._starts}"

    def start(self) -> None:
        """Start without waiting; the server can be killed before it serves requests."""
        self._starts += 1
        command = [sys.executable, "-m", "millstream", "sql", "server", "--json"]
        command += ["--listen", "127.0.0.1:0"]
        if self._bootstrap is None:
            command += ["--data-dir", str(self._folder / "data")]
        else:
            command += ["--bootstrap", self._bootstrap]
        if self._registry is not None:
            command += ["--registry", self._registry]
        for name, value in self._settings.items():
            command += ["--setting", f"{name}={value}"]
        with open(self._stdout, "wb") as output, open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=log)

    def kill(self) -> None:
        """Kill the server."""
        self.check_alive()
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Shut the server down cleanly, if it is running."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def check_alive(self) -> None:
        """Raise ServerFailed if the server has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise ServerFailed(f"the server ended unexpectedly:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-6000:] if self._log.exists() else ""

    @property
    def url(self) -> str | None:
        """The address of the REST API, or None before it is served."""
        self.check_alive()
        output = self._stdout.read_bytes()
        if not output.endswith(b"\n"):
            return None
        url: str = orjson.loads(output.splitlines()[0])["url"]
        return url

    def wait_serving(self) -> str:
        """Wait until the server accepts requests, and return its URL."""
        wait_until(lambda: self.url is not None, "the start of the server", timeout_s=PATIENCE_S)
        url = self.url
        assert url is not None
        return url

    # Any: JSON of any shape.
    def ask(self, text: str, path: str = "/ksql") -> Any:
        """Run statements or a terminating query, from the beginning of topics."""
        body = {"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}
        response = httpx.post(f"{self.wait_serving()}{path}", json=body, timeout=PATIENCE_S)
        if response.status_code != httpx.codes.OK:
            raise ServerFailed(f"{text[:200]}: {response.text[:1000]}")
        return response.json()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
            return
        error.add_note(self.tail())
        if self._process is not None:
            self._process.kill()
            self._process.wait()
