"""Real peers (JVM, npm, Debian) for tests and benchmarks: downloaded, cached or missing."""

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache"

# A peer is downloaded once; a mirror that does not respond within this time is unavailable.
DOWNLOAD_TIMEOUT_S = 300.0


# If set, as in .ci/run, a test without its peer fails instead of being skipped.
REQUIRED = "TESTS_REQUIRE_PEERS"


class PeerMissing(Exception):
    """A real peer is not available; the message has the reason."""


def skip_without_peer(reason: object) -> NoReturn:
    """Skip the test because its peer is missing; fail it if all peers are required."""
    import pytest  # imported here, because this module also runs in environments without pytest

    if os.environ.get(REQUIRED):
        pytest.fail(f"a peer is missing, and {REQUIRED} is set: {reason}", pytrace=False)
    pytest.skip(str(reason))


def find_command(name: str) -> str:
    """Return the path of a program, or raise PeerMissing."""
    path = shutil.which(name)
    if path is None:
        raise PeerMissing(f'command "{name}" is not installed')
    return path


def run_installer(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    timeout_s: float = DOWNLOAD_TIMEOUT_S,
) -> str:
    """Runs a program that installs a peer, returns its output; raises PeerMissing if it fails."""
    shown = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{shown} did not finish in {timeout_s:.0f} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if "ERR" in line.upper()] or lines
        reason = errors[0] if errors else f"exit code {done.returncode}"
        raise PeerMissing(f"{shown} failed: {reason[:300]}")
    return done.stdout


@contextmanager
def cache_folder(name: str) -> Iterator[Path]:
    """A cache folder, which is locked for other processes during the block."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def fill_folder_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Creates `folder` with `fill`, unless it exists; if `fill` fails, nothing is left behind."""
    if folder.exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.unfinished")
    unfinished.mkdir(parents=True)
    try:
        fill(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def wait_until(condition: Callable[[], bool], what: str, *, timeout_s: float = 60.0) -> None:
    """Waits until `condition()` is true; raises TimeoutError, which names `what`, otherwise."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen in {timeout_s:.0f} s")
        time.sleep(0.02)
