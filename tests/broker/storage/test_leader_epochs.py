"""Leader epochs: they move when the end of a log may be lost, and readers find out where."""

import os

import pytest

from broker.batch.layout import read_header
from broker.storage.leader_epochs import LeaderEpochs
from broker.storage.partition_log import PartitionLog
from tests.broker.storage.support import Disk, append, batch, read_bytes

SIZE = len(batch())


def epochs_of(log: PartitionLog) -> list[int]:
    """The epochs that the batches of a log carry."""
    data = read_bytes(log)
    return [read_header(data, at).leader_epoch for at in range(0, len(data), SIZE)]


@pytest.mark.parametrize("durability", ["kafka", "fsync"])
def test_the_epoch_moves_at_every_start_after_a_crash(disk: Disk, durability: str) -> None:
    disk.durability = durability
    for run in range(3):
        log = disk.open()
        assert log.leader_epoch == run
        append(log, batch())
        append(log, batch())
        disk.crash()
    log = disk.open()
    assert epochs_of(log) == [0, 0, 1, 1, 2, 2]
    assert log.epochs.entries == [(0, 0), (1, 2), (2, 4)]
    assert (disk.path / "leader-epoch").read_text() == "3\n"
    text = (disk.folder / "leader-epoch-checkpoint").read_text()
    assert text == "0\n3\n0 0\n1 2\n2 4\n"
    disk.close()


def test_the_epoch_stays_after_a_stop_in_order(disk: Disk) -> None:
    for _ in range(3):
        append(disk.open(), batch())
        disk.close()
    log = disk.open()
    assert epochs_of(log) == [0, 0, 0]
    assert log.leader_epoch == 0
    disk.close()


def test_the_epoch_moves_when_a_stop_in_order_is_followed_by_damage(disk: Disk) -> None:
    log = disk.open()
    for _ in range(3):
        append(log, batch())
    disk.close()
    os.truncate(disk.file(0, ".log"), 2 * SIZE + 5)
    assert disk.open().leader_epoch == 1
    disk.close()


def test_a_log_whose_files_are_lost_gets_another_epoch(disk: Disk) -> None:
    append(disk.open(), batch())
    disk.crash()
    for path in disk.folder.iterdir():
        path.unlink()
    disk.folder.rmdir()
    log = disk.open()
    append(log, batch())
    assert epochs_of(log) == [1]
    disk.close()


def test_a_reader_learns_where_the_lost_tail_began(disk: Disk) -> None:
    log = disk.open()
    for _ in range(5):
        append(log, batch())
    disk.crash()
    os.truncate(disk.file(0, ".log"), 3 * SIZE)
    log = disk.open()
    assert log.end_of_epoch(0) == (0, 3)
    for _ in range(4):
        append(log, batch())
    assert log.end_of_epoch(0) == (0, 3)
    assert log.end_of_epoch(1) == (1, 7)
    assert log.end_of_epoch(2) is None
    assert [log.epoch_at(offset) for offset in (0, 2, 3, 6, 7)] == [0, 0, 1, 1, 1]
    disk.close()


def test_epochs_that_did_not_reach_the_disk_are_found_in_the_batches(disk: Disk) -> None:
    for _ in range(3):
        log = disk.open()
        append(log, batch())
        disk.crash()
    (disk.folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (disk.path / "leader-epoch").write_text("")
    log = disk.open()
    assert log.epochs.entries == [(0, 0), (1, 1), (2, 2)]
    assert log.leader_epoch == 3
    disk.close()


def test_epochs_before_the_start_are_forgotten(disk: Disk) -> None:
    for _ in range(4):
        log = disk.open()
        append(log, batch())
        append(log, batch())
        disk.crash()
    log = disk.open()
    log.delete_records_before(5)
    assert log.epochs.entries == [(2, 5), (3, 6)]
    assert log.end_of_epoch(0) == (0, 5)
    assert log.epoch_at(5) == 2
    disk.close()
    assert disk.open().epochs.entries == [(2, 5), (3, 6)]
    disk.close()


def test_a_truncation_removes_the_epochs_that_began_after_it(disk: Disk) -> None:
    for _ in range(3):
        log = disk.open()
        append(log, batch())
        append(log, batch())
        disk.crash()
    log = disk.open()
    log.truncate_to(3)
    assert log.epochs.entries == [(0, 0), (1, 2)]
    assert log.end_of_epoch(2) == (1, 3)
    disk.close()


def test_epochs_are_answered_as_kafka_does() -> None:
    epochs = LeaderEpochs()
    epochs.load([(2, 10), (5, 20), (4, 15), (7, 30)])
    assert epochs.entries == [(2, 10), (5, 20), (7, 30)]

    def end(epoch: int) -> tuple[int, int] | None:
        return epochs.end_of(epoch, current_epoch=9, end_offset=50)

    assert [end(epoch) for epoch in (-1, 1, 2, 3, 5, 6, 7, 8, 9, 10)] == [
        None, (1, 10), (2, 20), (2, 20), (5, 30), (5, 30), (7, 50), (7, 50), (9, 50), None
    ]  # fmt: skip
    epochs.assign(8, 30)
    assert epochs.entries == [(2, 10), (5, 20), (8, 30)]
    epochs.cut_end(20)
    assert (epochs.entries, epochs.latest) == ([(2, 10)], 2)
    epochs.cut_start(5)
    assert epochs.entries == [(2, 10)]
    epochs.cut_end(0)
    assert (epochs.entries, epochs.latest) == ([], -1)
