"""kcat, the command-line client of Debian, installed when we may."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.debian import find_program


class KcatFailed(Exception):
    """kcat ended with an error; the text holds what it printed."""


def find_kcat() -> str:
    """The path of kcat, or PeerMissing."""
    return find_program("kcat", "kcat")


def run_kcat(
    bootstrap: str, *args: str, lines: Sequence[str] = (), timeout_s: float = 60.0
) -> list[str]:
    """Runs kcat to its end with lines on its input; the lines that it printed."""
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
    """A kcat that consumes until it is closed; what it prints goes to files."""

    def __init__(self, folder: Path, bootstrap: str, *args: str) -> None:
        folder.mkdir(parents=True)
        self._output = folder / "output"
        self._messages = folder / "messages"
        with open(self._output, "wb") as output, open(self._messages, "wb") as messages:
            self._process = subprocess.Popen(
                kcat_command(bootstrap, *args), stdout=output, stderr=messages
            )

    def lines(self) -> list[str]:
        """The whole lines printed so far."""
        return self._output.read_text().rpartition("\n")[0].splitlines()

    def messages(self) -> str:
        """What kcat said about itself, such as the partitions it was given."""
        return self._messages.read_text()

    def close(self) -> None:
        """Asks kcat to end, which leaves its group."""
        self._process.terminate()
        self._process.wait(timeout=60)


def kcat_command(bootstrap: str, *args: str) -> list[str]:
    """The command line of kcat on one broker."""
    return [find_kcat(), "-b", bootstrap, *args]
