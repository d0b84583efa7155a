"""No descriptors left: what cannot be opened now is opened later, and no log fails for it."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker import descriptors
from broker.errors import StorageError
from broker.files import FileSystem, OpenFiles
from broker.model import OpenFile
from tests.broker.storage.faults import QuickFileSystem
from tests.broker.storage.support import Disk, append, batch, read_records

SIZE = len(batch())
WAIT_SECONDS = 60


class ScarceFileSystem(QuickFileSystem):
    """Opens no files while `closed`."""

    def __init__(self) -> None:
        """All can be opened."""
        self.closed = False
        self.refused = threading.Event()

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """Open a file, if there are descriptors."""
        if self.closed:
            self.refused.set()
            raise OSError(errno.EMFILE, "Too many open files", path)
        return super().open(path, flags)

    def fsync_directory(self, path: str) -> None:
        """Open it, as the real one does."""
        FileSystem.fsync_directory(self, path)


@pytest.fixture
def files() -> ScarceFileSystem:
    """A file system without descriptors, when a test says so."""
    return ScarceFileSystem()


@pytest.mark.parametrize("durability", ["kafka", "fsync"])
def test_a_roll_without_descriptors_is_refused_and_done_later(
    tmp_path: Path, files: ScarceFileSystem, durability: str
) -> None:
    disk = Disk(tmp_path / "data", files=files, durability=durability)
    log = disk.open(segment_bytes=2 * SIZE)
    directory = disk.directory
    assert directory is not None
    with directory._lock:
        append(log, batch())
        append(log, batch())
    directory._flusher.flush_all([log])
    files.closed = True
    for _ in range(3):
        with directory._lock, pytest.raises((StorageError, OSError)):
            append(log, batch())
        directory.flush_due()
    files.closed = False
    done = threading.Event()
    with directory._lock:
        assert append(log, batch()).base_offset == 2
        directory.when_durable(log, 3, done.set)
    assert done.wait(WAIT_SECONDS)
    assert len(read_records(log)) == 3
    disk.close()
    assert (disk.path / ".kafka_cleanshutdown").exists()


def test_a_flush_without_descriptors_is_tried_again(
    tmp_path: Path, files: ScarceFileSystem
) -> None:
    disk = Disk(tmp_path / "data", files=files, durability="fsync")
    log = disk.open()
    directory = disk.directory
    assert directory is not None
    done = threading.Event()
    failures: list[StorageError] = []
    with directory._lock:
        append(log, batch())
        directory.when_durable(log, 1, done.set, failures.append)
        files.closed = True  # before the flusher gets the lock: its folder is not on the disk yet
    assert files.refused.wait(WAIT_SECONDS)
    assert (done.is_set(), failures, log.failure) == (False, [], None)
    files.closed = False
    assert done.wait(WAIT_SECONDS)
    assert (log.high_watermark, failures) == (1, [])
    disk.close()


def test_files_that_are_only_kept_open_make_room(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    log = disk.open(segment_bytes=2 * SIZE)
    for _ in range(8):
        append(log, batch())
    assert len(log.context.open_files) == 4
    with descriptors_left(0):
        for _ in range(3):
            append(log, batch())
    assert len(read_records(log)) == 11
    assert log.failure is None
    disk.close()


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open so many files more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    probe = os.open(os.devnull, os.O_RDONLY)
    os.close(probe)
    for descriptor in spare:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_oldest_files_are_released_first() -> None:
    class Held:
        recently_used = True
        is_open = True

        def release(self) -> None:
            self.is_open = False

    files = OpenFiles(100)
    held = [Held() for _ in range(20)]
    for holder in held:
        files.opened(holder)
    assert files.release_some()
    assert [holder.is_open for holder in held] == [False] * 16 + [True] * 4
    assert files.release_some()
    assert not files.release_some()


STOP_IN_ORDER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from tests.broker.storage.many_logs import write_and_close
write_and_close(sys.argv[1], partitions=300)
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["kafka", "fsync"])
def test_more_partitions_than_descriptors_are_closed_in_order(
    tmp_path: Path, durability: str
) -> None:
    code = STOP_IN_ORDER.replace("partitions=300", f'partitions=300, durability="{durability}"')
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists(), done.stderr


Limit = Callable[[int], tuple[int, int]]


@pytest.mark.parametrize(
    ("limit", "files", "connections"),
    [(256, 128, 96), (1024, 512, 448), (65536, 4096, 61376), (20, 16, 2)],
)
def test_logs_and_connections_share_the_descriptors(
    monkeypatch: pytest.MonkeyPatch, limit: int, files: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert descriptors.log_files_max() == files
    assert descriptors.connections_max() == connections


def test_the_soft_limit_is_raised_to_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(256, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    assert descriptors.raise_limit() == 4096
    assert descriptors.raise_limit() == 4096
    assert limits == [(256, 4096), (4096, 4096)]
