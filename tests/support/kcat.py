"""kcat, a command-line client; installed from Debian's package if we are root."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.debian import find_program


class KcatFailed(Exception):
    """kcat ended with an error; the message has its output."""


def find_kcat() -> str:
    """Return the path of kcat, or raise PeerMissing."""
    return find_program("kcat", "kcat")


def run_kcat(
    bootstrap: str, *args: str, lines: Sequence[str] = (), timeout_s: float = 60.0
) -> list[str]:
    """Runs kcat with lines as input; returns its output lines."""
    done = subprocess.run(
        kcat_command(bootstrap, *args),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise KcatFailed(f"kcat {' '.join(args)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines()


class KcatReader:
    """A kcat that consumes until it is closed; its output is written to files."""

    def __init__(self, folder: Path, bootstrap: str, *args: str) -> None:
        folder.mkdir(parents=True)
        self._output = folder / "output"
        self._messages = folder / "messages"
        with open(self._output, "wb") as output, open(self._messages, "wb") as messages:
            self._process = subprocess.Popen(
                kcat_command(bootstrap, *args), stdout=output, stderr=messages
            )

    def lines(self) -> list[str]:
        """The complete output lines so far."""
        return self._output.read_text().rpartition("\n")[0].splitlines()

    def messages(self) -> str:
        """kcat's log messages, such as its assigned partitions."""
        return self._messages.read_text()

    def close(self) -> None:
        """Terminates kcat, which leaves its group."""
        self._process.terminate()
        self._process.wait(timeout=60)


def kcat_command(bootstrap: str, *args: str) -> list[str]:
    """The command line of kcat for one broker."""
    return [find_kcat(), "-b", bootstrap, *args]
