"""Real peers (JVM, npm, Debian) for tests and benchmarks: fetched, kept, or found missing."""

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

# A peer is downloaded once; a mirror that does not answer within this time counts as absent.
DOWNLOAD_TIMEOUT_S = 300.0


# Set where every peer must be available, as .ci/run does: a test without its peer fails there.
REQUIRED = "TESTS_REQUIRE_PEERS"


class PeerMissing(Exception):
    """A real peer cannot be had here; the text says why."""


def skip_without_peer(reason: object) -> NoReturn:
    """Skip the test whose peer is missing, or fail it where all peers are required."""
    import pytest  # programs of tests use this module, too, some in environments without pytest

    if os.environ.get(REQUIRED):
        pytest.fail(f"a peer is missing, and {REQUIRED} is set: {reason}", pytrace=False)
    pytest.skip(str(reason))


def find_command(name: str) -> str:
    """The path of a program, or PeerMissing."""
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
    """Runs a program that fetches a peer, returns what it printed; its failure is PeerMissing."""
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
    """A folder of the cache, held by one process at a time while the block runs."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def fill_folder_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Makes `folder` by `fill(new folder)`; a fill that fails leaves nothing behind."""
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
    """Returns when `condition()` holds; raises TimeoutError naming `what` after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen in {timeout_s:.0f} s")
        time.sleep(0.02)
