"""DataDirectory: what is around the logs."""

import os
import re
import threading
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.config import BrokerConfig, TopicConfig
from broker.errors import StorageError
from broker.files import FileSystem, OpenFiles
from broker.model import ProducerIdentity, TopicPartition
from broker.storage import checkpoints
from broker.storage.context import LogContext
from broker.storage.data_directory import DataDirectory
from broker.storage.partition_log import PartitionLog
from tests.broker.storage.faults import QuickFileSystem
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


def open_directory(path: Path, **settings: int) -> DataDirectory:
    """A directory without logs."""
    config = BrokerConfig(**settings)  # type: ignore[arg-type]
    directory = DataDirectory(
        path, config=config, clock=ManualClock(NOW_MS), lock=threading.RLock()
    )
    directory.open({})
    return directory


def test_the_cluster_id_stays(tmp_path: Path) -> None:
    first = open_directory(tmp_path)
    first.close()
    second = open_directory(tmp_path)
    second.close()
    assert re.fullmatch(r"[\w-]{22}", first.cluster_id)
    assert second.cluster_id == first.cluster_id
    meta = checkpoints.read_meta(FileSystem(), str(tmp_path))
    assert meta["version"] == "1"
    assert meta["node.id"] == "0"


def test_another_broker_is_kept_out(tmp_path: Path) -> None:
    first = open_directory(tmp_path)
    with pytest.raises(StorageError, match="in use"):
        open_directory(tmp_path)
    first.close()
    with pytest.raises(StorageError, match="belongs to broker 0"):
        open_directory(tmp_path, broker_id=1)


def test_kafka_reads_the_small_files(disk: Disk) -> None:
    log = disk.open()
    append(log, batch(3))
    disk.close()
    texts = {
        "recovery-point-offset-checkpoint": "0\n1\norders 0 3\n",
        "log-start-offset-checkpoint": "0\n0\n",
        "orders-0/leader-epoch-checkpoint": "0\n1\n0 0\n",
        "orders-0/partition.metadata": "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n",
        ".kafka_cleanshutdown": '{"version":0,"brokerEpoch":-1}',
    }
    for name, text in texts.items():
        assert (disk.path / name).read_text() == text


def test_a_deleted_log_is_gone_with_its_folder(disk: Disk) -> None:
    log = disk.open()
    append(log, batch())
    directory = disk.directory
    assert directory is not None
    directory.delete(TP)
    assert directory.get(TP) is None
    with pytest.raises(KeyError):
        directory.log(TP)
    assert [name for name in os.listdir(disk.path) if name.endswith("-delete")]
    directory.flush_due()
    assert not [name for name in os.listdir(disk.path) if name.startswith("orders")]
    again = directory.create(TP, TOPIC_ID, log.config)
    assert append(again, batch()).base_offset == 0
    disk.close()


def test_a_folder_being_deleted_when_the_broker_stopped_is_removed(disk: Disk) -> None:
    append(disk.open(), batch())
    disk.close()
    os.rename(disk.folder, disk.path / "orders-0.0123456789abcdef-delete")
    assert disk.open().end_offset == 0
    assert not [name for name in os.listdir(disk.path) if name.endswith("-delete")]
    disk.close()


def test_a_folder_of_no_topic_is_set_aside(disk: Disk) -> None:
    append(disk.open(), batch())
    disk.close()
    other = open_directory(disk.path)
    assert len(other.recovered.stray_folders) == 1
    assert other.recovered.stray_folders[0].endswith("-stray")
    other.close()


def test_a_folder_of_an_older_topic_of_the_same_name_is_set_aside(disk: Disk) -> None:
    append(disk.open(), batch())
    disk.close()
    (disk.folder / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n"
    )
    log = disk.open()
    assert log.end_offset == 0
    append(log, batch())
    disk.close()


def test_progress_is_told(tmp_path: Path) -> None:
    config = BrokerConfig()
    directory = DataDirectory(tmp_path, config=config, clock=ManualClock(), lock=threading.RLock())
    told: list[tuple[int, int]] = []
    expected = {
        TopicPartition("t", number): (TOPIC_ID, config.topic_defaults()) for number in range(3)
    }
    directory.open(expected, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert len(directory.logs()) == 3
    directory.close()


@pytest.mark.parametrize("text", ["", "version: 0", "version: 0\ntopic_id: AA?\n", "\0\0\0"])
def test_a_folder_that_does_not_say_whose_it_is_is_believed(disk: Disk, text: str) -> None:
    append(disk.open(), batch())
    disk.close()
    (disk.folder / "partition.metadata").write_text(text)
    assert disk.open().end_offset == 1
    disk.close()


@pytest.mark.parametrize("text", ["", "nonsense", "0\n5\na 0 1\n", "1\n0\n", "0\n1\na b c\n"])
def test_a_damaged_checkpoint_only_costs_time(disk: Disk, text: str) -> None:
    append(disk.open(), batch(2))
    disk.close()
    (disk.path / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (disk.path / name).write_text(text)
    assert disk.open().end_offset == 2
    disk.close()


def test_producers_are_forgotten_after_their_time(disk: Disk) -> None:
    log = disk.open()
    append(log, batch(producer=ProducerIdentity(3, 0), sequence=0))
    assert disk.directory is not None
    disk.directory.checkpoint()
    assert len(log.producers) == 1
    # By what passed, not by what the wall clock says.
    for jump_ms in (-3_600_000, 10 * BrokerConfig().producer_id_expiration_ms):
        disk.clock.set_wall_clock(disk.clock.now_ms() + jump_ms)
        disk.directory.checkpoint()
        assert len(log.producers) == 1
    disk.clock.advance(BrokerConfig().producer_id_expiration_ms)
    disk.directory.checkpoint()
    assert len(log.producers) == 0
    disk.close()


def test_unused_producers_are_looked_for_at_the_interval_of_the_settings(tmp_path: Path) -> None:
    config = BrokerConfig(
        producer_id_expiration_ms=1_000, producer_id_expiration_check_interval_ms=60_000
    )
    clock = ManualClock(NOW_MS)
    storage = DataDirectory(tmp_path, config=config, clock=clock, lock=threading.RLock())
    storage.open({})
    log = storage.create(TP, bytes(16), TopicConfig())
    append(log, batch(producer=ProducerIdentity(3, 0), sequence=0))
    found = []
    for _ in range(2):
        clock.advance(30_000)
        storage.checkpoint()
        found.append(len(log.producers))
    storage.close()
    assert found == [1, 0]


def test_few_descriptors_are_enough_for_many_logs(tmp_path: Path) -> None:
    context = LogContext(
        clock=ManualClock(NOW_MS), files=QuickFileSystem(), open_files=OpenFiles(4)
    )
    logs = [
        PartitionLog(
            context,
            str(tmp_path / f"t-{number}"),
            TopicPartition("t", number),
            topic_id=TOPIC_ID,
            config=topic_config(),
        )
        for number in range(20)
    ]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for log in logs:
            append(log, batch())
    assert len(context.open_files) == 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert all(len(read_records(log)) == 3 for log in logs)
    for log in logs:
        log.close()


def test_a_log_in_use_stays_open(tmp_path: Path) -> None:
    class Used:
        def __init__(self) -> None:
            self.recently_used = True
            self.open = True

        def release(self) -> None:
            self.open = False

    files = OpenFiles(2)
    busy, idle, new = Used(), Used(), Used()
    files.opened(busy)
    files.opened(idle)
    idle.recently_used = False
    files.opened(new)
    assert (busy.open, idle.open, new.open) == (True, False, True)
