"""ServerProcess: one of our servers as a separate process, which tests start, stop and kill."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.support.peer import REPOSITORY, wait_until

_LISTENING = re.compile(rb"listening on (?:http://)?(\S+):(\d+)")


class ServerFailed(Exception):
    """A server ended unexpectedly; the message has its output."""


class ServerProcess:
    """`python -m module arguments`, with its output in a file in a folder."""

    def __init__(self, folder: Path, module: str, arguments: Sequence[str]) -> None:
        self.folder = folder
        self.log_file = folder / f"{module}.log"
        self._module = module
        self._arguments = [*arguments]
        self._address: tuple[str, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address on which it listens, host:port."""
        assert self._address is not None, f"{self._module} was not started"
        host, port = self._address
        return f"{host}:{port}"

    @property
    def pid(self) -> int | None:
        """The process id while the server runs."""
        return None if self._process is None else self._process.pid

    def start(self, *, timeout_s: float = 60.0) -> Self:
        """Starts the server, and waits until it serves clients."""
        assert self._process is None, f"{self._module} is running"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", self._module, *self._arguments]
        with open(self.log_file, "wb") as log:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT
            )
        process = self._process

        def listening() -> bool:
            if process.poll() is not None:
                raise ServerFailed(f"{self._module} ended while starting:\n{self.printed()}")
            return _LISTENING.search(self.log_file.read_bytes()) is not None

        try:
            wait_until(listening, f"the start of {self._module}", timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise
        found = _LISTENING.search(self.log_file.read_bytes())
        assert found is not None
        self._address = (found[1].decode(), int(found[2]))
        return self

    def printed(self) -> str:
        """The end of the server's output."""
        return self.log_file.read_text(errors="replace")[-8000:]

    def stop(self, *, timeout_s: float = 60.0) -> None:
        """Shuts the server down cleanly; raises ServerFailed if that fails."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            message = f"{self._module} did not stop in {timeout_s:.0f} s:\n{self.printed()}"
            raise ServerFailed(message) from None
        if code != 0:
            raise ServerFailed(f"{self._module} ended with {code}:\n{self.printed()}")

    def kill(self) -> None:
        """Kills the process; it can be restarted with the same data."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
