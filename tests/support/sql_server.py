"""`millstream sql server` as a process of its own, started, asked, stopped and killed by tests."""

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
    """The server ended by itself, or refused something; the text says why."""


class SqlServerProcess:
    """A server in a folder, which outlives the process; without a cluster it has a broker in it."""

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
    def _said(self) -> Path:
        return self._folder / f"said-{self._starts}"

    def start(self) -> None:
        """Begin to start; it may be killed before it serves."""
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
        with open(self._said, "wb") as said, open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=said, stderr=log)

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self.check_alive()
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let it end in order, if it still runs."""
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
        """ServerFailed if it has ended by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise ServerFailed(f"the server ended by itself:\n{self.tail()}")

    def tail(self) -> str:
        """The end of what it complained about."""
        return self._log.read_text()[-6000:] if self._log.exists() else ""

    @property
    def url(self) -> str | None:
        """Where it serves; None while it does not yet."""
        self.check_alive()
        said = self._said.read_bytes()
        if not said.endswith(b"\n"):
            return None
        url: str = orjson.loads(said.splitlines()[0])["url"]
        return url

    def wait_serving(self) -> str:
        """Where it takes requests, as soon as it does."""
        wait_until(lambda: self.url is not None, "a server that serves", timeout_s=PATIENCE_S)
        url = self.url
        assert url is not None
        return url

    # Any: JSON, whose shape the caller knows.
    def ask(self, text: str, path: str = "/ksql") -> Any:
        """Run statements or a query that ends; from the beginning of topics."""
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
