"""Our broker as a process of its own, started, stopped and killed by tests."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.peer import REPOSITORY, wait_until
from tests.support.ports import held_ports

_LISTENING = re.compile(rb"listening on (\S+):(\d+)")


class BrokerFailed(Exception):
    """Our broker ended where it should not have; the text holds what it printed."""


class MillstreamBroker:
    """`python -m broker` in a folder; it keeps its port over restarts."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.log_file = folder / "broker.log"
        self._settings = dict(settings or {})
        (self._port,) = held_ports(1)
        self._address: tuple[str, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        assert self._address is not None, "the broker was not started"
        host, port = self._address
        return f"{host}:{port}"

    @property
    def pid(self) -> int | None:
        """The process id while the broker runs."""
        return None if self._process is None else self._process.pid

    def start(self, *, timeout_s: float = 60.0) -> Self:
        """Starts the broker and returns when it serves clients."""
        assert self._process is None, "the broker is running"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "broker", "--data-dir", str(self.data_dir)]
        command += ["--port", str(self._port)]
        for name, value in self._settings.items():
            command += ["--config", f"{name}={value}"]
        with open(self.log_file, "wb") as log:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT
            )
        process = self._process

        def listening() -> bool:
            if process.poll() is not None:
                raise BrokerFailed(f"the broker ended while starting:\n{self.printed()}")
            return _LISTENING.search(self.log_file.read_bytes()) is not None

        try:
            wait_until(listening, "the start of the broker", timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise
        found = _LISTENING.search(self.log_file.read_bytes())
        assert found is not None
        self._address = (found[1].decode(), int(found[2]))
        return self

    def printed(self) -> str:
        """What the broker has written to its output, its last part."""
        return self.log_file.read_text(errors="replace")[-8000:]

    def stop(self, *, timeout_s: float = 60.0) -> None:
        """Shuts the broker down in order; BrokerFailed when it does not end well."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            message = f"the broker did not stop in {timeout_s:.0f} s:\n{self.printed()}"
            raise BrokerFailed(message) from None
        if code != 0:
            raise BrokerFailed(f"the broker ended with {code}:\n{self.printed()}")

    def kill(self) -> None:
        """Ends the process at once, as a power cut would; the data stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
