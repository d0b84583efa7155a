"""A database server as a process, with the same folder and port after kills and restarts."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.peer import wait_until
from tests.support.ports import held_ports

# Databases refuse to run as root; every machine has this user.
_UNPRIVILEGED = "nobody"


class DatabaseFailed(Exception):
    """A database did not start or did not stop; the message has its output."""


class DatabaseProcess:
    """One server program in a temporary folder, run as an unprivileged user."""

    def __init__(self, name: str) -> None:
        self.name = name
        (self.port,) = held_ports(1)
        # Not in pytest's folder, which only its owner can access.
        self.folder = Path(tempfile.mkdtemp(prefix=f"millstream-{name}-"))
        self.data = self.folder / "data"
        self._log = self.folder / "log"
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def run(self, command: Sequence[str]) -> None:
        """Run a program that prepares the folder."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            user=self._user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise DatabaseFailed(f"{command[0]} ended with {done.returncode}:\n{done.stdout}")

    def start(self, command: Sequence[str], answers: Callable[[], bool]) -> None:
        """Start the server, and wait until it responds."""
        self.begin(command)
        self.wait(answers)

    def begin(self, command: Sequence[str]) -> None:
        """Start the server without waiting."""
        assert not self.running, f"{self.name} is running"
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait(self, answers: Callable[[], bool]) -> None:
        """Wait until the server responds; raise DatabaseFailed if it ends instead."""

        def ready() -> bool:
            if not self.running:
                raise DatabaseFailed(f"{self.name} ended while starting:\n{self.printed()}")
            return answers()

        wait_until(ready, f"the start of {self.name}", timeout_s=120.0)

    def kill(self) -> None:
        """Kill the server and its child processes; the data is not removed."""
        process, self._process = self._process, None
        if process is None:
            return
        children = _children_of(process.pid)
        process.kill()
        process.wait()
        for child in children:
            _kill(child)
        wait_until(lambda: not any(map(_lives, children)), f"the end of {self.name}")

    def close(self) -> None:
        """Kill the server and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def printed(self) -> str:
        """The end of the server's log."""
        return self._log.read_text(errors="replace")[-6000:]


def _children_of(process_id: int) -> list[int]:
    """The child processes of a process; PostgreSQL has one per connection."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        if int(fields[1]) == process_id:
            found.append(int(stat.parent.name))
    return found


def _kill(process_id: int) -> None:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return


def _lives(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
