"""Group commit: who waits is answered once the disk has it, together."""

import errno
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import StorageError
from broker.model import OpenFile
from broker.storage.context import LogContext
from broker.storage.data_directory import DataDirectory
from broker.storage.flusher import Flusher
from broker.storage.partition_log import PartitionLog
from tests.broker.storage.faults import FaultyFileSystem
from tests.broker.storage.support import TP, Disk, append, batch, topic_config

WAIT_SECONDS = 60


class GatedFileSystem(FaultyFileSystem):
    """Fsync waits until the test lets it go."""

    def __init__(self) -> None:
        """Closed."""
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Event()

    def fsync(self, file: OpenFile) -> None:
        """Wait, then do it."""
        self.entered.set()
        assert self.gate.wait(WAIT_SECONDS)
        super().fsync(file)


@pytest.fixture
def gated(faulty_disk: Disk) -> GatedFileSystem:
    """A disk whose fsync the test holds."""
    files = GatedFileSystem()
    files.gate.set()
    faulty_disk.files = files
    return files


def directory_of(disk: Disk) -> DataDirectory:
    """The open directory."""
    assert disk.directory is not None
    return disk.directory


def waiter(calls: list[str], name: str, done: threading.Event) -> Callable[[], None]:
    """A callback that leaves its name."""

    def call() -> None:
        calls.append(name)
        done.set()

    return call


def test_the_high_watermark_waits_for_the_disk(faulty_disk: Disk, gated: GatedFileSystem) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    gated.gate.clear()
    calls: list[str] = []
    done = threading.Event()
    with directory._lock:
        append(log, batch())
        directory.when_durable(log, 1, waiter(calls, "first", done))
    assert gated.entered.wait(WAIT_SECONDS)
    with directory._lock:
        assert (log.high_watermark, log.end_offset, calls) == (0, 1, [])
    gated.gate.set()
    assert done.wait(WAIT_SECONDS)
    with directory._lock:
        assert log.high_watermark == 1
        directory.when_durable(log, 1, lambda: calls.append("at once"))
    assert calls == ["first", "at once"]
    faulty_disk.close()


def test_one_fsync_serves_all_who_came_during_the_one_before(
    faulty_disk: Disk, gated: GatedFileSystem
) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    with directory._lock:
        append(log, batch())  # makes the files
    faulty_disk.close()
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    gated.gate.clear()
    gated.entered.clear()
    fsyncs = gated.fsyncs
    calls: list[str] = []
    last = threading.Event()
    with directory._lock:
        append(log, batch())
    assert gated.entered.wait(WAIT_SECONDS)
    for number in range(20):
        with directory._lock:
            end = append(log, batch()).last_offset + 1
            done = last if number == 19 else threading.Event()
            directory.when_durable(log, end, waiter(calls, str(number), done))
    gated.gate.set()
    assert last.wait(WAIT_SECONDS)
    assert calls == [str(number) for number in range(20)]
    assert gated.fsyncs == fsyncs + 2
    faulty_disk.close()


def test_who_waits_is_answered_when_somebody_else_flushes(
    faulty_disk: Disk, gated: GatedFileSystem
) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    done = threading.Event()
    with directory._lock:
        append(log, batch())
        directory.when_durable(log, 1, done.set)
    directory._flusher.flush_all([log])
    assert done.wait(WAIT_SECONDS)
    faulty_disk.close()


def test_a_callback_that_fails_keeps_nobody_else_waiting(
    faulty_disk: Disk, gated: GatedFileSystem
) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    done = threading.Event()

    def fail() -> None:
        raise ValueError("not today")

    with directory._lock:
        log.subscribe(fail)
        append(log, batch())
        directory.when_durable(log, 1, fail)
        directory.when_durable(log, 1, done.set)
    assert done.wait(WAIT_SECONDS)
    faulty_disk.close()


def test_who_waits_hears_of_a_failed_fsync(faulty_disk: Disk, gated: GatedFileSystem) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    gated.fsync_fails = True
    errors: list[StorageError] = []
    done = threading.Event()

    def failed(error: StorageError) -> None:
        errors.append(error)
        done.set()

    with directory._lock:
        append(log, batch())
        directory.when_durable(log, 1, lambda: errors.clear(), failed)
    assert done.wait(WAIT_SECONDS)
    with directory._lock:
        directory.when_durable(log, 1, lambda: errors.clear(), failed)
    assert [error.message for error in errors] == [
        "cannot make records durable: Input/output error"
    ] * 2
    assert log.high_watermark == 0
    faulty_disk.close()
    assert not (faulty_disk.path / ".kafka_cleanshutdown").exists()


def test_who_waits_for_a_deleted_log_is_told(faulty_disk: Disk, gated: GatedFileSystem) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    gated.gate.clear()
    errors: list[str] = []
    with directory._lock:
        append(log, batch())
        directory.when_durable(log, 1, lambda: None, lambda error: errors.append(error.message))
        directory.delete(log.topic_partition)
    gated.gate.set()
    assert errors == ["the partition was deleted"]
    faulty_disk.close()


def test_a_log_that_is_deleted_while_it_is_flushed_is_no_failure(
    faulty_disk: Disk, gated: GatedFileSystem, caplog: pytest.LogCaptureFixture
) -> None:
    log = faulty_disk.open()
    directory = directory_of(faulty_disk)
    gated.gate.clear()
    gated.entered.clear()
    with directory._lock:
        append(log, batch())
    assert gated.entered.wait(WAIT_SECONDS)
    with directory._lock:
        directory.delete(log.topic_partition)
    gated.fsync_fails = True  # as it does for a folder that is gone
    gated.gate.set()
    directory._flusher.stop()
    assert caplog.messages == []
    gated.fsync_fails = False
    faulty_disk.close()
    with pytest.raises(StorageError, match="the partition was deleted"):
        append(log, batch())


def test_without_fsync_nobody_waits(disk: Disk) -> None:
    log = disk.open()
    calls: list[str] = []
    append(log, batch())
    directory_of(disk).when_durable(log, 1, lambda: calls.append("now"))
    assert calls == ["now"]
    disk.close()


def test_a_truncation_during_an_fsync_is_not_undone(disk: Disk) -> None:
    log = disk.open()
    for _ in range(3):
        append(log, batch())
    ticket = log.flushing.begin()
    assert ticket is not None
    log.truncate_to(1)
    append(log, batch())
    ticket.sync(disk.files)
    log.flushing.finish(ticket)
    assert log.durable_offset <= 1
    disk.close()


@pytest.mark.slow
def test_what_is_acknowledged_survives_a_power_cut(
    faulty_disk: Disk, gated: GatedFileSystem
) -> None:
    acknowledged = 0
    for cut in range(10):
        log = faulty_disk.open(segment_bytes=1000)
        directory = directory_of(faulty_disk)
        for number in range(20):
            done = threading.Event()
            with directory._lock:
                end = append(log, batch()).last_offset + 1
                directory.when_durable(log, end, done.set)
            if number % 3 == 0:
                assert done.wait(WAIT_SECONDS)
                acknowledged = end
        faulty_disk.crash()
        gated.lose_power(lambda low, high, cut=cut: (low * cut + high * (9 - cut)) // 9)  # type: ignore[misc]
        log = faulty_disk.open()
        assert log.high_watermark == log.end_offset >= acknowledged
        faulty_disk.close()


class OnceFailingFileSystem(GatedFileSystem):
    """The first fsync waits and fails; the disk reports an error once, so later ones succeed."""

    def __init__(self) -> None:
        """Closed."""
        super().__init__()
        self.calls = 0

    def fsync(self, file: OpenFile) -> None:
        """Fail the first time."""
        self.calls += 1
        if self.calls == 1:
            self.entered.set()
            assert self.gate.wait(WAIT_SECONDS)
            raise OSError(errno.EIO, "Input/output error")


class SlowFolders(GatedFileSystem):
    """The names of files wait until the test lets them go to the disk; the bytes do not."""

    def fsync(self, file: OpenFile) -> None:
        """At once."""

    def fsync_directory(self, path: str) -> None:
        """Wait, then do it."""
        self.entered.set()
        assert self.gate.wait(WAIT_SECONDS)


@pytest.mark.parametrize("files", [OnceFailingFileSystem(), SlowFolders()])
def test_a_log_is_not_flushed_twice_at_a_time(tmp_path: Path, files: GatedFileSystem) -> None:
    context = LogContext(clock=ManualClock(), files=files)
    log = PartitionLog(
        context, str(tmp_path / "orders-0"), TP, topic_id=bytes(16), config=topic_config()
    )
    lock = threading.RLock()
    flusher = Flusher(lock, files)
    answered: list[int] = []
    failed: list[StorageError] = []
    for offset in (1, 2):
        with lock:
            append(log, batch())
            flusher.needs_flush(log)
            flusher.when_durable(log, offset, partial(answered.append, offset), failed.append)
        if offset == 1:
            first = threading.Thread(target=flusher.flush)
            first.start()
            assert files.entered.wait(WAIT_SECONDS)
    flusher.flush()  # somebody else's: the first may still fail, or its names may be lost
    meanwhile = (list(answered), log.durable_offset)
    second = threading.Thread(target=flusher.flush_all, args=([log],))
    second.start()
    files.gate.set()
    for thread in (first, second):
        thread.join(WAIT_SECONDS)
    assert meanwhile == ([], 0)
    if isinstance(files, SlowFolders):
        assert (answered, log.durable_offset) == ([1, 2], 2)
    else:
        assert (answered, len(failed), log.durable_offset) == ([], 2, 0)
