"""Opening logs after stops in order, kills, and damage."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.batch.codec import control_batch
from broker.model import AbortedTransaction, ProducerIdentity
from broker.storage.partition_log import PartitionLog
from broker.storage.recovery import Recovered
from tests.broker.storage.support import NOW_MS, Disk, append, batch, read_bytes, read_records

PRODUCER = ProducerIdentity(7, 0)
SIZE = len(batch())


def filled(disk: Disk, count: int = 7, **settings: object) -> PartitionLog:
    """A log with so many batches, three to a segment."""
    log = disk.open(**{"segment_bytes": 3 * SIZE, "index_interval_bytes": 0, **settings})
    for _ in range(count):
        append(log, batch())
    return log


def recovered(disk: Disk) -> Recovered:
    """What opening found."""
    assert disk.directory is not None
    return disk.directory.recovered


def abort_transaction(log: PartitionLog, sequence: int) -> None:
    """A transaction of one record, and its end."""
    append(log, batch(producer=PRODUCER, sequence=sequence, transactional=True))
    data = control_batch(commit=False, producer=PRODUCER, coordinator_epoch=0, timestamp_ms=NOW_MS)
    append(log, memoryview(bytearray(data)), "coordinator")


def test_after_a_stop_in_order_nothing_is_scanned(disk: Disk) -> None:
    data = read_bytes(filled(disk))
    disk.close()
    log = disk.open()
    assert recovered(disk).clean
    assert recovered(disk).segments_scanned == 0
    assert read_bytes(log) == data
    assert append(log, batch()).base_offset == 7
    disk.close()


def test_after_a_kill_everything_written_is_there(disk: Disk) -> None:
    data = read_bytes(filled(disk))
    disk.crash()
    log = disk.open()
    assert not recovered(disk).clean
    assert recovered(disk).segments_scanned == 3
    assert read_bytes(log) == data
    disk.close()


def test_what_is_flushed_is_not_scanned_again(disk: Disk) -> None:
    filled(disk)
    assert disk.directory is not None
    disk.directory.flush_due()
    disk.directory.checkpoint()
    disk.crash()
    disk.open()
    assert recovered(disk).segments_scanned == 1
    disk.close()


@pytest.mark.parametrize("kept", [1, 11, 12, 60, SIZE - 1])
def test_a_torn_tail_is_truncated_at_recovery(disk: Disk, kept: int) -> None:
    filled(disk, 3)
    disk.crash()
    path = disk.file(0, ".log")
    os.truncate(path, 2 * SIZE + kept)
    log = disk.open()
    assert recovered(disk).bytes_truncated == kept
    assert recovered(disk).logs_truncated == ["orders-0"]
    assert [record.offset for record in read_records(log)] == [0, 1]
    assert path.stat().st_size == 2 * SIZE
    assert append(log, batch()).base_offset == 2
    disk.close()


@pytest.mark.parametrize("damaged_segment", [0, 3, 6])
def test_the_log_ends_before_the_first_bad_batch(disk: Disk, damaged_segment: int) -> None:
    filled(disk, 9)
    disk.crash()
    with open(disk.file(damaged_segment, ".log"), "r+b") as file:
        file.seek(SIZE + 65)
        file.write(b"!")
    log = disk.open()
    assert log.end_offset == damaged_segment + 1
    assert [record.offset for record in read_records(log)] == list(range(damaged_segment + 1))
    append(log, batch())
    disk.close()


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_the_log_ends_before_batches_that_a_loss_of_power_took(disk: Disk, kept: int) -> None:
    """The file of a later segment reached the disk, the end of an earlier one did not."""
    data = read_bytes(filled(disk))
    disk.crash()
    os.truncate(disk.file(3, ".log"), kept * SIZE)
    log = disk.open()
    assert (log.end_offset, log.high_watermark) == (3 + kept, 3 + kept)
    assert read_bytes(log) == data[: (3 + kept) * SIZE]
    assert recovered(disk).logs_truncated == [str(log.topic_partition)]
    assert append(log, batch()).base_offset == 3 + kept
    disk.close()


@pytest.mark.parametrize("lost", [3, 6])
def test_the_log_ends_before_a_file_that_a_loss_of_power_took(disk: Disk, lost: int) -> None:
    filled(disk, 10)
    disk.crash()
    disk.file(lost, ".log").unlink()
    assert disk.open().end_offset == lost
    disk.close()


def test_a_hole_before_the_recovery_point_is_the_work_of_a_compaction(disk: Disk) -> None:
    filled(disk, 10)
    assert disk.directory is not None
    disk.directory.flush_due()
    disk.directory.checkpoint()
    disk.crash()
    os.truncate(disk.file(3, ".log"), SIZE)
    assert disk.open().end_offset == 10
    disk.close()


def test_without_our_checkpoint_a_hole_is_no_reason_to_remove_batches(disk: Disk) -> None:
    filled(disk, 10)
    disk.crash()
    os.truncate(disk.file(3, ".log"), SIZE)
    (disk.path / "partition-checkpoint").unlink()
    assert disk.open().end_offset == 10
    disk.close()


def test_zeros_at_the_end_are_no_batches(disk: Disk) -> None:
    filled(disk, 2)
    disk.crash()
    with open(disk.file(0, ".log"), "ab") as file:
        file.write(bytes(5000))
    assert disk.open().end_offset == 2
    disk.close()


def test_offsets_that_go_back_end_the_log(disk: Disk) -> None:
    filled(disk, 3)
    disk.crash()
    with open(disk.file(0, ".log"), "r+b") as file:
        file.seek(2 * SIZE)
        file.write(struct.pack(">q", 0))
    assert disk.open().end_offset == 2
    disk.close()


def test_a_batch_longer_than_a_chunk_is_recovered(disk: Disk) -> None:
    log = disk.open(max_message_bytes=10_000_000)
    append(log, batch())
    append(log, batch(value=b"x" * 3_000_000))
    append(log, batch())
    disk.crash()
    assert disk.open().end_offset == 3
    disk.close()


Damage = Callable[[Path], object]
DAMAGES: dict[str, Damage] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "of something else": lambda path: path.write_bytes(os.urandom(48)),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one position off": lambda path: path.write_bytes(_raise_last_byte(path.read_bytes())),
}


def _raise_last_byte(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1]) if data else data


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("segment", [0, 6], ids=["sealed", "last"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_a_spoilt_index_is_made_again(
    disk: Disk, kind: str, segment: int, damage: Damage, clean: bool
) -> None:
    log = filled(disk, 9)
    data = read_bytes(log)
    disk.close()
    if not clean:
        (disk.path / ".kafka_cleanshutdown").unlink()
    damage(disk.file(segment, kind))
    log = disk.open()
    for offset in reversed(range(9)):
        assert read_bytes(log, offset) == data[offset * SIZE :]
        fetched = log.read(offset, bytes_max=SIZE + 5, offset_limit=9)
        assert len(fetched.records) == SIZE
    assert log.offset_for_timestamp(NOW_MS) == (0, NOW_MS)
    latest = log.max_timestamp()
    assert latest is not None
    assert latest[1] == NOW_MS
    append(log, batch())
    disk.close()


def test_producers_come_back_from_the_log_without_snapshots(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for sequence in range(8):
        append(log, batch(producer=PRODUCER, sequence=sequence))
    disk.crash()
    for name in disk.names(".snapshot"):
        (disk.folder / name).unlink()
    log = disk.open()
    assert append(log, batch(producer=PRODUCER, sequence=5)).duplicate
    assert not append(log, batch(producer=PRODUCER, sequence=8)).duplicate
    disk.close()


def test_producers_come_back_from_the_snapshot_alone(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE, file_delete_delay_ms=0)
    append(log, batch(producer=PRODUCER, sequence=41))
    for _ in range(8):
        append(log, batch())
    log.delete_records_before(8)
    assert disk.directory is not None
    disk.directory.flush_due()
    disk.crash()
    log = disk.open()
    assert log.segments[0].base_offset > 0
    assert append(log, batch(producer=PRODUCER, sequence=41)).duplicate
    disk.close()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_a_damaged_snapshot_is_passed_over(disk: Disk, clean: bool) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for sequence in range(8):
        append(log, batch(producer=PRODUCER, sequence=sequence))
    if clean:
        disk.close()
    else:
        disk.crash()
    for name in disk.names(".snapshot"):
        (disk.folder / name).write_bytes(b"\0\1nonsense")
    log = disk.open()
    assert append(log, batch(producer=PRODUCER, sequence=7)).duplicate
    disk.close()


def test_one_snapshot_per_segment_is_kept_and_the_last(disk: Disk) -> None:
    filled(disk, 8)
    disk.close()
    assert disk.names(".snapshot") == [f"{offset:020d}.snapshot" for offset in (3, 6, 8)]
    append(disk.open(), batch())
    disk.close()
    assert disk.names(".snapshot") == [f"{offset:020d}.snapshot" for offset in (3, 6, 9)]


@pytest.mark.parametrize("damage", ["missing", "cut", "of something else"])
def test_a_spoilt_transaction_index_is_made_again(disk: Disk, damage: str) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for number in range(4):
        abort_transaction(log, number)
    disk.close()
    (disk.path / ".kafka_cleanshutdown").unlink()
    for name in disk.names(".txnindex"):
        DAMAGES[damage](disk.folder / name)
    (disk.path / "partition-checkpoint").unlink()
    (disk.path / "recovery-point-offset-checkpoint").unlink()
    log = disk.open()
    assert log.aborted_transactions(0, 8) == [
        AbortedTransaction(7, offset) for offset in (0, 2, 4, 6)
    ]
    disk.close()


def test_a_segment_that_was_sealed_at_the_recovery_point_is_checked(disk: Disk) -> None:
    log = disk.open()
    abort_transaction(log, 0)
    log.flush()
    assert disk.directory is not None
    disk.directory.checkpoint()
    log.roll()
    append(log, batch())
    disk.crash()
    (disk.folder / "00000000000000000000.txnindex").unlink()  # a loss of power took its name
    log = disk.open()
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(7, 0)]
    disk.close()


def test_a_spoilt_transaction_index_of_a_clean_log_is_made_again(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for number in range(4):
        abort_transaction(log, number)
    disk.close()
    for name in disk.names(".txnindex"):
        DAMAGES["cut"](disk.folder / name)
    log = disk.open()
    assert log.aborted_transactions(0, 8) == [
        AbortedTransaction(7, offset) for offset in (0, 2, 4, 6)
    ]
    disk.close()


def test_leftovers_are_removed(disk: Disk) -> None:
    filled(disk)
    disk.close()
    for name in ("00000000000000000000.log.deleted", "00000000000000000003.log.cleaned", "x.tmp"):
        (disk.folder / name).write_bytes(b"left over")
    lonely = disk.file(100, ".index")
    lonely.write_bytes(b"12345678")
    disk.open()
    assert recovered(disk).leftovers_removed == 3
    assert not lonely.exists()
    assert disk.names(".deleted") + disk.names(".cleaned") + disk.names(".tmp") == []
    disk.close()


def test_a_swap_is_completed(disk: Disk) -> None:
    data = read_bytes(filled(disk, 9))
    disk.close()
    merged = disk.file(0, ".log").read_bytes() + disk.file(3, ".log").read_bytes()
    disk.file(0, ".log.swap").write_bytes(merged)
    shutil.copy(disk.file(0, ".index"), disk.file(0, ".index.swap"))
    log = disk.open()
    assert disk.names(".swap") == []
    assert [segment.base_offset for segment in log.segments] == [0, 6]
    assert read_bytes(log) == data
    disk.close()


def test_an_index_that_was_not_renamed_with_its_log_is_made_again(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for number in range(4):
        abort_transaction(log, number)
    disk.close()
    for name in disk.names(".txnindex"):
        (disk.folder / name).rename(disk.folder / (name + ".swap"))
    log = disk.open()
    assert disk.names(".swap") == []
    assert log.aborted_transactions(0, 8) == [
        AbortedTransaction(7, offset) for offset in (0, 2, 4, 6)
    ]
    disk.close()
    log = disk.open()
    assert len(log.aborted_transactions(0, 8)) == 4
    disk.close()


def test_indexes_that_were_renamed_before_their_log_stay(disk: Disk) -> None:
    log = disk.open(segment_bytes=3 * SIZE)
    for number in range(4):
        abort_transaction(log, number)
    disk.close()
    shutil.copy(disk.file(0, ".log"), disk.file(0, ".log.swap"))
    log = disk.open()
    assert disk.names(".swap") == []
    assert len(log.aborted_transactions(0, 8)) == 4
    disk.close()


def test_the_names_of_indexes_are_on_the_disk_after_a_stop(disk: Disk) -> None:
    log = disk.open()
    abort_transaction(log, 0)
    log.flush()
    log.seal()
    ticket = log.flushing.begin()
    assert ticket is not None
    assert log.folder in ticket.folders
    log.flushing.finish(ticket)
    disk.close()


def test_deleted_records_do_not_come_back_when_the_tail_is_lost(disk: Disk) -> None:
    log = filled(disk, 5)
    log.delete_records_before(5)
    assert disk.directory is not None
    disk.directory.checkpoint()
    disk.crash()
    os.truncate(disk.file(3, ".log"), SIZE)
    log = disk.open()
    assert log.start_offset == log.end_offset == 5
    assert append(log, batch()).base_offset == 5
    disk.close()


def _log_files(disk: Disk) -> list[str]:
    return sorted(set(os.listdir(disk.folder)) - {"partition.metadata"})


@settings(max_examples=max(settings().max_examples // 2, 20))
@given(data=st.data())
def test_no_damage_to_a_file_keeps_a_log_from_opening(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    disk = Disk(tmp_path_factory.mktemp("damage") / "data")
    log = disk.open(segment_bytes=3 * SIZE, index_interval_bytes=0)
    for number in range(4):
        append(log, batch())
        abort_transaction(log, number)
    expected = read_bytes(log)
    if data.draw(st.booleans()):
        disk.close()
    else:
        disk.crash()
    path = disk.folder / data.draw(st.sampled_from(_log_files(disk)))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content)))
    content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    path.write_bytes(content)
    log = disk.open()
    if not path.name.endswith(".log"):
        assert read_bytes(log) == expected
    for offset in range(log.start_offset, log.end_offset):
        log.read(offset, bytes_max=100, offset_limit=log.end_offset)
    log.offset_for_timestamp(NOW_MS)
    log.aborted_transactions(log.start_offset, log.end_offset)
    append(log, batch())
    disk.close()
