"""What checkpoints say of a topic must not be taken for another topic of the same name."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.model import TopicPartition
from broker.storage.data_directory import DataDirectory
from broker.storage.partition_log import PartitionLog
from tests.broker.storage.faults import QuickFileSystem
from tests.broker.storage.support import TOPIC_ID, TP, Disk, append, batch, read_records

OTHER_ID = bytes(range(16, 32))
SIZE = len(batch())
COMPANION = "partition-checkpoint"
KAFKA_FILES = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def opened(disk: Disk, topic_id: bytes) -> PartitionLog:
    """The log of the topic with an id, in the directory as it is."""
    config = BrokerConfig(durability=disk.durability)
    disk.directory = DataDirectory(
        disk.path,
        config=config,
        clock=disk.clock,
        lock=threading.RLock(),
        files=disk.files,
        random=Random(0),
    )
    topic = replace(config.topic_defaults(), **disk.settings)  # type: ignore[arg-type]
    disk.directory.open({TP: (topic_id, topic)})
    return disk.directory.log(TP)


def directory_of(disk: Disk) -> DataDirectory:
    """The open directory."""
    assert disk.directory is not None
    return disk.directory


def created_again(disk: Disk, log: PartitionLog) -> PartitionLog:
    """The log of a topic that is deleted and created again."""
    directory = directory_of(disk)
    with directory._lock:
        directory.delete(TP)
        return directory.create(TP, OTHER_ID, log.config)


def append_many(disk: Disk, log: PartitionLog, count: int) -> None:
    """Append batches of one record, as a handler does."""
    for _ in range(count):
        with directory_of(disk)._lock:
            append(log, batch())


def become_old(disk: Disk, *, checkpoint_age_seconds: int) -> None:
    """Leave the directory as releases left it whose checkpoints had no topic ids.

    The age of a checkpoint counts from when the partition's folder was made.
    """
    (disk.path / COMPANION).unlink(missing_ok=True)
    made = (disk.folder / "partition.metadata").stat().st_mtime
    for name in KAFKA_FILES:
        written = made - checkpoint_age_seconds
        os.utime(disk.path / name, (written, written))


@pytest.mark.parametrize("durability", ["kafka", "fsync"])
@pytest.mark.parametrize("old_form", [False, True], ids=["ids", "old form"])
def test_records_of_a_topic_created_again_survive_a_kill(
    disk: Disk, durability: str, old_form: bool
) -> None:
    disk.durability = durability
    log = disk.open()
    append_many(disk, log, 40)
    directory = directory_of(disk)
    durable = threading.Event()
    with directory._lock:
        directory.when_durable(log, 40, durable.set)
    assert durable.wait(60)
    with directory._lock:
        log.delete_records_before(40)
    directory.checkpoint()
    log = created_again(disk, log)
    append_many(disk, log, 10)
    disk.crash()
    if old_form:
        become_old(disk, checkpoint_age_seconds=10)
    log = opened(disk, OTHER_ID)
    assert (log.start_offset, log.end_offset) == (0, 10)
    assert len(read_records(log)) == 10
    disk.close()


@pytest.mark.parametrize("old_form", [False, True], ids=["ids", "old form"])
def test_a_start_offset_inside_the_new_log_is_not_taken_for_its_own(
    disk: Disk, old_form: bool
) -> None:
    log = disk.open()
    append_many(disk, log, 8)
    log.delete_records_before(5)
    directory_of(disk).checkpoint()
    log = created_again(disk, log)
    append_many(disk, log, 8)
    disk.crash()
    if old_form:
        become_old(disk, checkpoint_age_seconds=10)
    log = opened(disk, OTHER_ID)
    assert (log.start_offset, log.end_offset) == (0, 8)
    disk.close()


@pytest.mark.parametrize("old_form", [False, True], ids=["ids", "old form"])
def test_a_recovery_point_beyond_the_log_skips_no_scan(disk: Disk, old_form: bool) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    append_many(disk, log, 50)
    directory_of(disk).flush_due()
    directory_of(disk).checkpoint()
    log = created_again(disk, log)
    append_many(disk, log, 9)
    disk.crash()
    if old_form:
        become_old(disk, checkpoint_age_seconds=10)
    with open(disk.file(0, ".log"), "r+b") as file:  # the power went, too
        file.seek(SIZE + 65)
        file.write(b"!")
    log = opened(disk, OTHER_ID)
    assert log.end_offset == 1
    disk.close()


def test_a_recovery_point_inside_the_new_log_skips_no_scan(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    append_many(disk, log, 8)
    directory_of(disk).flush_due()
    directory_of(disk).checkpoint()
    log = created_again(disk, log)
    append_many(disk, log, 9)
    disk.crash()
    with open(disk.file(0, ".log"), "r+b") as file:
        file.seek(SIZE + 65)
        file.write(b"!")
    assert opened(disk, OTHER_ID).end_offset == 1
    disk.close()


def test_how_far_a_deleted_topic_was_cleaned_is_not_said_of_the_next(disk: Disk) -> None:
    log = disk.open()
    append_many(disk, log, 3)
    directory_of(disk).cleaned_offsets[TP] = 2
    directory_of(disk).checkpoint()
    log = created_again(disk, log)
    append_many(disk, log, 3)
    disk.crash()
    opened(disk, OTHER_ID)
    assert directory_of(disk).cleaned_offsets == {}
    disk.close()


def test_what_is_said_of_a_deleted_topic_is_forgotten_soon(disk: Disk) -> None:
    log = disk.open()
    append_many(disk, log, 3)
    log.delete_records_before(2)
    directory_of(disk).checkpoint()
    with directory_of(disk)._lock:
        directory_of(disk).delete(TP)
    directory_of(disk).flush_due()
    for name in (COMPANION, *KAFKA_FILES):
        assert (disk.path / name).read_text() == "0\n0\n"
    disk.close()


def test_records_before_a_start_offset_beyond_the_end_are_left_to_retention(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    append_many(disk, log, 8)
    log.start_offset = 8
    directory_of(disk).checkpoint()
    disk.crash()
    os.truncate(disk.file(6, ".log"), SIZE)
    before = sorted(path.name for path in disk.folder.glob("*.log"))
    log = disk.open()
    assert (log.start_offset, log.end_offset) == (8, 8)
    assert [name for name in before if name not in disk.names(".log")] == []
    append_many(disk, log, 2)
    disk.crash()
    log = disk.open()
    assert [record.offset for record in read_records(log)] == [8, 9]
    disk.close()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("durability", ["kafka", "fsync"])
def test_a_directory_of_an_older_release_opens_and_goes_on(
    disk: Disk, clean: bool, durability: str
) -> None:
    disk.durability = durability
    log = disk.open(segment_bytes=3 * SIZE)
    append_many(disk, log, 8)
    directory_of(disk)._flusher.flush_all([log])
    log.delete_records_before(4)
    directory_of(disk).cleaned_offsets[TP] = 6
    directory_of(disk).checkpoint()
    if clean:
        disk.close()
    else:
        disk.crash()
    become_old(disk, checkpoint_age_seconds=-10)
    log = disk.open()
    assert (log.start_offset, log.end_offset) == (4, 8)
    assert directory_of(disk).cleaned_offsets == {TP: 6}
    assert directory_of(disk).recovered.segments_scanned == (0 if clean else 1)
    append_many(disk, log, 1)
    disk.close()
    assert (disk.path / COMPANION).read_text() == "0\n1\norders 0 AAECAwQFBgcICQoLDA0ODw 9 4 6\n"
    assert [record.offset for record in read_records(disk.open())] == [4, 5, 6, 7, 8]
    disk.close()


@pytest.mark.parametrize("text", ["", "0\n1\norders 0 AAECAwQFBgcICQoLDA0ODw 9\n", "0\n7\n"])
def test_a_damaged_checkpoint_is_made_up_for_by_those_of_kafka(disk: Disk, text: str) -> None:
    log = disk.open()
    append_many(disk, log, 5)
    log.delete_records_before(3)
    disk.close()
    become_old(disk, checkpoint_age_seconds=-10)
    (disk.path / COMPANION).write_text(text)
    assert disk.open().start_offset == 3
    disk.close()


def test_ids_of_folders_are_on_the_disk_with_the_first_records(tmp_path: Path) -> None:
    class Noting(QuickFileSystem):
        synced: set[str]

        def fsync(self, file: object) -> None:
            self.synced.add(os.path.basename(os.readlink(f"/proc/self/fd/{file.descriptor}")))  # type: ignore[attr-defined]

    files = Noting()
    files.synced = set()
    disk = Disk(tmp_path / "data", files=files)
    log = disk.open()
    append(log, batch())
    log.flush()
    assert {"partition.metadata", "leader-epoch-checkpoint"} <= files.synced
    assert TopicPartition("orders", 0) == TP
    assert log.topic_id == TOPIC_ID
    disk.close()


def test_segments_go_when_the_recovery_point_behind_them_is_written_down(disk: Disk) -> None:
    """A loss of power may undo the removal of one of them and keep that of a later one."""
    log = disk.open(segment_bytes=len(batch()))
    for _ in range(4):
        append(log, batch())
    assert disk.directory is not None
    log.delete_records_before(2)
    disk.directory.flush_due()
    assert disk.names(".log") == [f"{2:020d}.log", f"{3:020d}.log"]
    written = (disk.path / "partition-checkpoint").read_text().split()
    assert int(written[-3]) >= 2
    disk.close()


def test_segments_of_a_recovered_log_go_although_its_old_recovery_point_is_behind(
    disk: Disk,
) -> None:
    log = disk.open(segment_bytes=len(batch()))
    append_many(disk, log, 4)
    disk.crash()
    (disk.path / COMPANION).unlink()
    log = disk.open(segment_bytes=len(batch()))
    assert log.checkpointed_offset == 0
    log.delete_records_before(3)
    directory_of(disk).flush_due()
    assert disk.names(".log") == [f"{3:020d}.log"]
    disk.close()


def test_a_checkpoint_that_cannot_be_written_keeps_segments(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    log = disk.open(segment_bytes=len(batch()))
    append_many(disk, log, 4)
    directory = directory_of(disk)
    log.delete_records_before(3)
    with monkeypatch.context() as patched:
        patched.setattr(directory._checkpoint_writer, "write", fail)
        directory.flush_due()
    assert len(disk.names(".log")) == 4
    directory.apply_retention()
    assert disk.names(".log") == [f"{3:020d}.log"]
    disk.close()


def test_many_logs_wait_for_one_checkpoint(tmp_path: Path) -> None:
    config = BrokerConfig()
    topic = replace(config.topic_defaults(), segment_bytes=SIZE)
    directory = DataDirectory(
        tmp_path,
        config=config,
        clock=ManualClock(),
        lock=threading.RLock(),
        files=QuickFileSystem(),
        random=Random(0),
    )
    directory.open({TopicPartition("orders", each): (TOPIC_ID, topic) for each in range(20)})
    for log in directory.logs():
        append(log, batch())
        append(log, batch())
        log.delete_records_before(1)
    with patch.object(
        directory._checkpoint_writer, "write", wraps=directory._checkpoint_writer.write
    ) as write:
        directory.flush_due()
    assert all(len(log.segments) == 1 for log in directory.logs())
    assert write.call_count == 1
    directory.close()
