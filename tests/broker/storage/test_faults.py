"""Full disks and failing ones: what was refused leaves no trace, what was promised stays."""

import errno
import os
import threading
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.model import OpenFile
from tests.broker.storage.faults import FaultyFileSystem
from tests.broker.storage.support import Disk, append, batch, read_bytes, read_records
from tests.broker.storage.test_partition_log import PRODUCER, marker

SIZE = len(batch())


@pytest.fixture
def disk(faulty_disk: Disk) -> Disk:
    """A disk with faults, flushed only when asked."""
    faulty_disk.durability = "kafka"
    return faulty_disk


@pytest.mark.parametrize("room_bytes", [0, 1, 30, SIZE - 1])
def test_a_full_disk_refuses_and_the_log_goes_on_later(
    disk: Disk, files: FaultyFileSystem, room_bytes: int
) -> None:
    log = disk.open()
    append(log, batch())
    files.room_bytes = room_bytes
    fsyncs = files.fsyncs
    with pytest.raises(StorageError, match="No space left"):
        append(log, batch())
    assert files.fsyncs == fsyncs, "nobody waits for the disk under the lock"
    assert disk.file(0, ".log").stat().st_size == SIZE
    assert log.end_offset == log.high_watermark == 1
    files.room_bytes = None
    assert append(log, batch()).base_offset == 1
    assert len(read_records(log)) == 2
    disk.close()


def test_a_full_disk_at_the_first_append_leaves_a_log_that_works(
    disk: Disk, files: FaultyFileSystem
) -> None:
    log = disk.open()
    for room_bytes in (0, 40, 60, 20):
        files.room_bytes = room_bytes
        with pytest.raises(StorageError):
            append(log, batch())
    files.room_bytes = None
    assert append(log, batch()).base_offset == 0
    disk.close()


@pytest.mark.parametrize("room_bytes", range(0, 60, 5))
def test_a_full_disk_while_rolling_leaves_the_segment_open(
    disk: Disk, files: FaultyFileSystem, room_bytes: int
) -> None:
    log = disk.open(segment_bytes=2 * SIZE, index_interval_bytes=0)
    for _ in range(2):
        append(log, batch())
    files.room_bytes = room_bytes
    with pytest.raises(StorageError):
        append(log, batch())
    files.room_bytes = None
    append(log, batch())
    data = read_bytes(log)
    assert len(data) == 3 * SIZE
    disk.close()
    assert read_bytes(disk.open()) == data
    disk.close()


def test_a_short_write_is_completed(disk: Disk, files: FaultyFileSystem) -> None:
    log = disk.open()
    append(log, batch())
    files.write_bytes_max = 10
    append(log, batch())
    assert len(read_records(log)) == 2
    disk.close()


def test_a_torn_batch_that_cannot_be_removed_stops_the_log(
    disk: Disk, files: FaultyFileSystem
) -> None:
    log = disk.open()
    append(log, batch())
    files.room_bytes = 20
    files.truncate_fails = True
    with pytest.raises(StorageError, match="half-written"):
        append(log, batch())
    files.forget_faults()
    with pytest.raises(StorageError, match="half-written"):
        append(log, batch())
    assert len(read_records(log)) == 1
    disk.close()
    assert not (disk.path / ".kafka_cleanshutdown").exists()
    log = disk.open()
    assert append(log, batch()).base_offset == 1
    disk.close()


def test_after_a_failed_fsync_the_log_takes_no_more(disk: Disk, files: FaultyFileSystem) -> None:
    log = disk.open()
    append(log, batch())
    files.fsync_fails = True
    with pytest.raises(StorageError, match="durable"):
        log.flush()
    files.fsync_fails = False
    with pytest.raises(StorageError, match="durable"):
        append(log, batch())
    assert len(read_records(log)) == 1
    disk.close()
    assert append(disk.open(), batch()).base_offset == 1
    disk.close()


def test_every_so_many_messages_are_flushed(disk: Disk, files: FaultyFileSystem) -> None:
    log = disk.open(flush_messages=3)
    directory = disk.directory
    assert directory is not None
    answered: list[int] = []
    done = threading.Event()
    with directory._lock:
        for offset in range(2):
            append(log, batch())
            directory.when_durable(log, offset + 1, lambda offset=offset: answered.append(offset))  # type: ignore[misc]
        assert (answered, log.durable_offset) == ([0, 1], 0)
        append(log, batch())
        directory.when_durable(log, 3, done.set)
        assert not done.is_set()  # nobody has waited for the disk under the lock
    assert done.wait(60)
    assert log.durable_offset == 3
    disk.close()


def test_what_waits_for_flush_ms_is_flushed(disk: Disk) -> None:
    log = disk.open(flush_ms=100)
    append(log, batch())
    assert disk.directory is not None
    disk.directory.flush_due()
    assert log.durable_offset == 0
    disk.clock.advance(100)
    disk.directory.flush_due()
    assert log.durable_offset == 1
    disk.close()


def test_rolled_segments_are_flushed_in_the_background(disk: Disk) -> None:
    log = disk.open(segment_bytes=2 * SIZE)
    for _ in range(5):
        append(log, batch())
    assert log.recovery_point == 0
    assert disk.directory is not None
    disk.directory.flush_due()
    assert log.recovery_point == 5
    disk.close()


def test_a_marker_whose_index_cannot_be_read_is_not_written(
    disk: Disk, files: FaultyFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = disk.open()
    append(log, batch(producer=PRODUCER, sequence=0, transactional=True))
    disk.close()
    log = disk.open()  # the index of aborted transactions is read when it is needed
    opened = files.open

    def refusing(path: str, flags: int = os.O_RDWR) -> OpenFile:
        if path.endswith(".txnindex"):
            raise OSError(errno.EMFILE, "Too many open files", path)
        return opened(path, flags)

    monkeypatch.setattr(files, "open", refusing)
    with pytest.raises(OSError, match="Too many open files"):
        append(log, marker(commit=False), "coordinator")
    monkeypatch.setattr(files, "open", opened)
    # The offset of the marker is free: what is acknowledged there must survive a crash.
    assert append(log, marker(commit=False), "coordinator").base_offset == 1
    assert append(log, batch()).base_offset == 2
    disk.crash()
    assert disk.open().end_offset == 3
    disk.close()


@pytest.mark.parametrize("are_fsynced", [False, True])
def test_names_are_lost_with_the_power_unless_their_folder_was_fsynced(
    tmp_path: Path, files: FaultyFileSystem, are_fsynced: bool
) -> None:
    def write(name: str, data: bytes) -> None:
        file = files.open(str(tmp_path / name), os.O_RDWR | os.O_CREAT)
        files.write_all(file, data, 0)
        files.fsync(file)

    for name in ("replaced", "moved", "removed"):
        write(name, b"before")
    files.fsync_directory(str(tmp_path))
    write("created", b"after")
    write("temporary", b"after")
    files.rename(str(tmp_path / "temporary"), str(tmp_path / "replaced"))
    files.rename(str(tmp_path / "moved"), str(tmp_path / "elsewhere"))
    files.unlink(str(tmp_path / "removed"))
    if are_fsynced:
        files.fsync_directory(str(tmp_path))
    files.lose_power(lambda low, high: low)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if are_fsynced:
        assert found == {"created": b"after", "replaced": b"after", "elsewhere": b"before"}
    else:
        assert found == dict.fromkeys(("replaced", "moved", "removed"), b"before")
