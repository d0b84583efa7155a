"""What holds the broker's lock does not wait for the disk, and does not read whole indexes."""

import os
import threading
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.files import FileSystem
from broker.model import OpenFile, TopicPartition
from broker.storage.data_directory import RENAMED_AT_ONCE_MAX, DataDirectory
from broker.storage.partition_log import PartitionLog
from tests.broker.storage.support import (
    NOW_MS,
    TOPIC_ID,
    TP,
    Disk,
    append,
    batch,
    read_records,
    topic_config,
)

SIZE = len(batch())
WAIT_SECONDS = 60


class WatchedFileSystem(FileSystem):
    """Notes what is done by a thread that holds the lock."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.broker_lock = threading.RLock()
        self.watching = False
        self.under_lock: list[str] = []
        self.read: list[str] = []
        self.renamed: list[str] = []

    def _note(self, what: str) -> None:
        if self.watching and self.broker_lock._is_owned():  # type: ignore[attr-defined]
            self.under_lock.append(what)

    def fsync(self, file: OpenFile) -> None:
        """Note it."""
        self._note(os.readlink(f"/proc/self/fd/{file.descriptor}"))

    def fsync_directory(self, path: str) -> None:
        """Note it."""
        self._note(path)

    def read_file(self, path: str) -> bytes | None:
        """Note it."""
        self.read.append(os.path.basename(path))
        return super().read_file(path)

    def rename(self, old: str, new: str) -> None:
        """Note it."""
        self.renamed.append(new)
        super().rename(old, new)


def opened(path: Path, files: WatchedFileSystem, **settings: object) -> DataDirectory:
    """A directory with one log."""
    config = BrokerConfig()
    clock = ManualClock(NOW_MS)
    directory = DataDirectory(path, config=config, clock=clock, lock=files.broker_lock, files=files)
    directory.open({TP: (TOPIC_ID, topic_config(**settings))})
    return directory


def write(directory: DataDirectory, count: int) -> PartitionLog:
    """Append records as a handler does, and wait until they count as written."""
    log = directory.log(TP)
    for _ in range(count):
        done = threading.Event()
        with directory._lock:
            end = append(log, batch()).last_offset + 1
            directory.when_durable(log, end, done.set)
        assert done.wait(WAIT_SECONDS)
    return log


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_nobody_waits_for_the_disk_under_the_lock(tmp_path: Path, policy: str) -> None:
    files = WatchedFileSystem()
    directory = opened(
        tmp_path,
        files,
        segment_bytes=3 * SIZE,
        flush_messages=2,
        cleanup_policy=(policy,),
        retention_bytes=9 * SIZE,
        min_cleanable_dirty_ratio=0.0,
        file_delete_delay_ms=0,
    )
    files.watching = True
    log = write(directory, 20)
    with directory._lock:
        log.delete_records_before(4)
    directory.flush_due()
    directory.apply_retention()
    while directory.compact_one():
        pass
    directory.checkpoint()
    write(directory, 3)
    with directory._lock:
        directory.delete(TP)
    directory.flush_due()
    files.watching = False
    directory.close()
    assert log.start_offset >= 4
    assert log.segments[0].base_offset == 3 if policy == "compact" else 9
    assert files.under_lock == []


def test_deleting_records_touches_no_files_itself(tmp_path: Path) -> None:
    files = WatchedFileSystem()
    directory = opened(tmp_path, files, segment_bytes=SIZE)
    log = write(directory, 300)
    directory.flush_due()
    files.renamed.clear()
    with directory._lock:
        assert log.delete_records_before(299) == 299
    assert files.renamed == []
    directory.flush_due()
    assert [segment.base_offset for segment in log.segments] == [299]
    directory.close()


def test_looking_for_a_time_does_not_read_the_indexes_of_all_segments(tmp_path: Path) -> None:
    files = WatchedFileSystem()
    settings: dict[str, object] = {
        "segment_bytes": 20 * SIZE,
        "index_interval_bytes": 0,
        "message_timestamp_after_max_ms": 1 << 60,
    }
    directory = opened(tmp_path, files, **settings)
    log = directory.log(TP)
    for number in range(200):
        append(log, batch(timestamp_ms=NOW_MS + number))
    directory.close()
    directory = opened(tmp_path, files, **settings)
    log = directory.log(TP)
    files.read.clear()
    assert log.offset_for_timestamp(NOW_MS + 150) == (150, NOW_MS + 150)
    assert log.max_timestamp() == (199, NOW_MS + 199)
    assert {name for name in files.read if name.endswith("timeindex")} == {f"{140:020d}.timeindex"}
    directory.close()


def test_indexes_that_are_missing_are_made_when_the_log_is_opened(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    log = disk.open(segment_bytes=3 * SIZE, index_interval_bytes=0)
    for _ in range(9):
        append(log, batch())
    disk.close()
    expected = {path.name: path.read_bytes() for path in disk.folder.glob("*index")}
    disk.file(0, ".index").unlink()
    disk.file(3, ".timeindex").write_bytes(b"12345")
    disk.open()
    assert {path.name: path.read_bytes() for path in disk.folder.glob("*index")} == expected
    disk.close()


def test_removing_files_costs_as_much_as_there_are(tmp_path: Path) -> None:
    class Counted(tuple[int, str]):
        hashes = 0

        def __hash__(self) -> int:
            Counted.hashes += 1
            return super().__hash__()

    files = WatchedFileSystem()
    directory = opened(tmp_path, files)
    count = 1000
    with directory._lock:
        discarded = directory._context.discarded
        discarded += [
            Counted((number % 2 << 60, f"no such file {number}")) for number in range(count)
        ]
    directory.remove_discarded()
    assert len(directory._context.discarded) == count // 2
    assert Counted.hashes <= 3 * count
    directory.close()


def test_of_many_logs_that_are_deleted_at_once_most_are_renamed_later(tmp_path: Path) -> None:
    files = WatchedFileSystem()
    config = BrokerConfig()
    directory = DataDirectory(
        tmp_path, config=config, clock=ManualClock(NOW_MS), lock=files.broker_lock, files=files
    )
    partitions = [TopicPartition("t", number) for number in range(RENAMED_AT_ONCE_MAX + 50)]
    directory.open({tp: (TOPIC_ID, topic_config()) for tp in partitions})
    for log in directory.logs():
        append(log, batch())
    files.renamed.clear()
    with directory._lock:
        for tp in partitions:
            directory.delete(tp)
    assert len(files.renamed) == RENAMED_AT_ONCE_MAX
    again = directory.create(partitions[-1], bytes(16), topic_config())
    append(again, batch(2))  # its folder must not be the old one
    directory.flush_due()
    assert [name for name in os.listdir(tmp_path) if name.startswith("t-")] == ["t-249"]
    assert (again.end_offset, len(read_records(again))) == (2, 2)
    directory.close()
