"""Compaction, rule by rule; the model test is in test_compaction_model.py."""

import threading
from pathlib import Path

import pytest

from broker.batch.layout import HEADER_BYTES
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import StorageError
from tests.broker.storage.compaction_support import NOW_MS, TP, Cleaned
from tests.broker.storage.faults import FaultyFileSystem


@pytest.fixture
def log(tmp_path: Path) -> Cleaned:
    return Cleaned(tmp_path / "prices-0")


def test_the_last_record_of_each_key_is_kept_at_its_offset(log: Cleaned) -> None:
    for number in range(10):
        log.append((b"a", b"%d" % number), (b"b", b"%d" % number))
    log.append((b"c", b"only"))
    log.compact()
    assert log.records() == {18: (b"a", b"9"), 19: (b"b", b"9"), 20: (b"c", b"only")}
    assert log.log.end_offset == 21
    assert log.cleaned_offsets[TP] == 21


def test_records_in_the_last_segment_are_left_alone(log: Cleaned) -> None:
    log.append((b"a", b"1"))
    log.append((b"a", b"2"))
    assert log.compact_sealed() == 0
    log.log.roll()
    log.append((b"a", b"3"))
    log.compact_sealed()
    assert log.records() == {1: (b"a", b"2"), 2: (b"a", b"3")}


def test_records_without_key_are_dropped(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings={"cleanup_policy": ("delete",)})
    log.append((None, b"lost"), (b"a", b"kept"))
    log.settings["cleanup_policy"] = ("compact",)
    log.log.update_config(log.config)
    log.compact()
    assert log.records() == {1: (b"a", b"kept")}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_keeps_its_compression_times_and_headers(log: Cleaned, compression: str) -> None:
    log.append((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), compression=compression)
    ((before, records),) = log.batches()
    log.compact()
    ((after, kept),) = log.batches()
    assert kept == [records[1], records[2]]
    assert (after.codec, after.base_offset, after.last_offset) == (before.codec, 0, 2)
    assert after.max_timestamp == NOW_MS


def test_a_batch_that_keeps_everything_is_copied_as_it_is(log: Cleaned) -> None:
    log.append((b"a", b"1"), (b"b", b"1"), compression="gzip")
    before = log.log.segments[0].file()
    data = log.log.read(0, bytes_max=1000, offset_limit=2).records
    log.append((b"c", b"1"))
    log.append((b"c", b"2"))
    log.compact()
    assert log.log.segments[0].file() is not before
    again = log.log.read(0, bytes_max=len(data), offset_limit=2).records
    assert again.read() == data.read()  # type: ignore[union-attr]


def test_a_segment_that_needs_no_change_is_not_replaced(log: Cleaned) -> None:
    log.append((b"a", b"1"))
    log.log.roll()
    (first, _) = log.log.segments
    assert log.compact_sealed() == 1
    assert log.log.segments[0] is first
    assert list(log.folder.glob("*.cleaned")) == []


def test_small_segments_become_one_the_round_after(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings={"segment_bytes": 500})
    for number in range(100):
        log.append((b"a", b"%d" % number))
    many = len(log.log.segments)
    log.compact_sealed()
    log.append((b"a", b"x" * 100))
    log.append((b"a", b"x" * 300))
    log.compact()
    assert len(log.log.segments) <= many / 3
    assert log.records()[101] == (b"a", b"x" * 300)


def test_tombstones_stay_for_their_time_and_then_go(log: Cleaned) -> None:
    log.append((b"a", b"1"), (b"b", b"1"))
    log.append((b"a", None))
    log.compact()
    assert log.records() == {1: (b"b", b"1"), 2: (b"a", None)}
    assert [header.delete_horizon_ms for header, _ in log.batches()] == [None, NOW_MS + 1000]
    log.clock.advance(999)
    log.append((b"c", b"1"))
    log.compact()
    assert log.records() == {1: (b"b", b"1"), 2: (b"a", None), 3: (b"c", b"1")}
    assert log.batches()[1][0].delete_horizon_ms == NOW_MS + 1000
    log.clock.advance(1)
    log.append((b"d", b"1"))
    log.compact()
    assert log.records() == {1: (b"b", b"1"), 3: (b"c", b"1"), 4: (b"d", b"1")}


def test_a_record_keeps_its_time_when_its_batch_gets_a_horizon(log: Cleaned) -> None:
    log.append((b"a", None), (b"b", b"1"))
    log.compact()
    assert [record.timestamp_ms for record in log.batches()[0][1]] == [NOW_MS, NOW_MS]


def test_young_segments_wait_for_the_lag(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings={"min_compaction_lag_ms": 5000})
    log.append((b"a", b"1"))
    log.log.roll()
    log.clock.advance(4000)
    log.append((b"a", b"2"))
    assert log.compact() == 0
    log.clock.advance(1000)
    assert log.compact() == 1
    assert log.records() == {0: (b"a", b"1"), 1: (b"a", b"2")}
    log.clock.advance(4000)
    log.compact()
    assert log.records() == {1: (b"a", b"2")}


def test_a_log_waits_until_it_is_dirty_enough(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings={"min_cleanable_dirty_ratio": 0.5})
    log.append((b"a", b"x" * 1000), (b"b", b"x" * 1000))
    assert log.compact() == 1
    log.append((b"a", b"y" * 1000))
    assert log.compact() == 0
    log.append((b"a", b"z" * 1500))
    assert log.compact() == 1
    assert list(log.records()) == [1, 3]


def test_an_overdue_log_does_not_wait_to_be_dirty_enough(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 60_000
    }  # fmt: skip
    log = Cleaned(tmp_path / "log", settings=settings)
    log.append((b"a", b"1"), (b"a", b"2"))
    assert log.compact() == 0
    log.clock.advance(60_001)
    log.append((b"a", b"3"))
    assert len(log.log.segments) == 2, "the last segment is rolled when it is overdue"
    assert log.compact_sealed() == 1
    assert log.records() == {1: (b"a", b"2"), 2: (b"a", b"3")}


def test_a_map_that_is_full_makes_several_rounds(tmp_path: Path) -> None:
    broker = BrokerConfig(log_cleaner_dedupe_buffer_size=200 * 10)
    log = Cleaned(tmp_path / "log", broker=broker)
    for value in (b"1", b"2"):
        for number in range(40):
            log.append((b"key %d" % number, value))
    assert log.compact() >= 8
    assert set(log.records()) == set(range(40, 80))


class WaitingClock(ManualClock):
    """Whoever waits on it moves it."""

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> bool:
        assert timeout_ms is not None
        self.advance(timeout_ms)
        return False


def test_the_cleaner_keeps_to_its_share_of_the_disk(tmp_path: Path) -> None:
    broker = BrokerConfig(log_cleaner_io_max_bytes_per_second=10_000)
    log = Cleaned(tmp_path / "log", broker=broker, clock=WaitingClock(NOW_MS))
    for _ in range(10):
        log.append((b"a", bytes(1000)))
    log.compact()
    read_bytes = 2 * 10 * (HEADER_BYTES + 1012)
    assert log.clock.now_ms() - NOW_MS == pytest.approx(read_bytes / 10, abs=20)


def test_long_keys_are_told_apart(log: Cleaned) -> None:
    keys = [b"long key number %d, longer than a digest" % number for number in range(50)]
    for value in (b"1", b"2"):
        for key in keys:
            log.append((key, value))
    log.compact()
    assert [pair[0] for pair in log.records().values()] == keys


def test_an_open_transaction_holds_its_segment_and_the_rest_back(log: Cleaned) -> None:
    log.append((b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    log.append((b"a", b"3"), (b"a", b"4"))
    log.append((b"b", b"1"), producer_id=1, transactional=True)
    log.append((b"a", b"5"))
    log.compact()
    assert sorted(log.records()) == [1, 2, 3, 4, 5]
    log.end(1, commit=True)
    log.compact()
    assert log.records() == {4: (b"b", b"1"), 5: (b"a", b"5")}


def test_aborted_records_go_and_hide_nothing(log: Cleaned) -> None:
    log.append((b"a", b"committed"))
    log.append((b"a", b"aborted"), producer_id=1, transactional=True)
    marker = log.end(1, commit=False)
    log.append((b"b", b"1"), producer_id=1, transactional=True)
    log.end(1, commit=True)
    log.compact()
    assert log.committed() == log.records() == {0: (b"a", b"committed"), 3: (b"b", b"1")}
    assert marker in log.markers()


def test_markers_go_once_their_transactions_have_no_batch_left(log: Cleaned) -> None:
    for commit in (True, False):
        log.append((b"a", b"1"), producer_id=1, transactional=True)
        log.end(1, commit=commit)
    log.append((b"a", b"2"), producer_id=1, transactional=True)
    log.end(1, commit=True)
    log.compact()
    assert log.markers() == [1, 3, 5]
    log.append((b"x", b"1"))
    log.compact()
    assert log.markers() == [1, 3, 5], "their delete horizon is set now"
    log.clock.advance(1000)
    log.append((b"x", b"2"))
    log.compact()
    assert log.markers() == [5]
    assert log.committed() == {4: (b"a", b"2"), 7: (b"x", b"2")}


def test_an_aborted_transaction_is_in_the_index_as_long_as_a_batch_is_left(log: Cleaned) -> None:
    log.append((b"a", b"1"), producer_id=1, transactional=True)
    log.end(1, commit=False)
    log.compact()
    assert log.records() == {}
    assert len(log.log.aborted_transactions(0, 2)) == 1
    (emptied, _), (marker, _) = log.batches()
    assert emptied.record_count == 0
    assert emptied.size == HEADER_BYTES
    assert marker.is_control


def test_a_producers_last_batch_stays_for_its_sequence(log: Cleaned) -> None:
    log.append((b"a", b"1"), (b"a", b"2"), producer_id=7)
    log.append((b"a", b"3"))
    log.compact()
    assert log.records() == {2: (b"a", b"3")}
    log.open()
    entry = log.log.producers.get(7)
    assert entry is not None
    assert (entry.epoch, entry.last_sequence, entry.last_offset) == (0, 1, 1)
    log.append((b"a", b"4"), producer_id=7)


def test_the_end_is_known_though_the_last_records_are_gone(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings={"delete_retention_ms": 0})
    log.append((b"a", b"1"))
    log.append((b"a", None))
    log.compact()
    log.clock.advance(1)
    log.cleaned_offsets.clear()
    log.compact()
    assert log.records() == {}
    log.open()
    assert log.log.end_offset == 2
    assert log.append((b"b", b"1")) == 2


def test_the_log_can_be_read_by_time_after_compaction(log: Cleaned) -> None:
    for number in range(5):
        log.append((b"a", b"%d" % number))
        log.clock.advance(10)
    log.compact()
    assert log.log.offset_for_timestamp(NOW_MS + 5) == (4, NOW_MS + 40)
    assert log.log.max_timestamp() == (4, NOW_MS + 40)


def test_a_damaged_log_is_left_alone(log: Cleaned, caplog: pytest.LogCaptureFixture) -> None:
    log.append((b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    path = log.folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert log.compact() == 1
    assert log.compact() == 0
    assert "is no longer compacted" in caplog.text
    assert path.read_bytes() == bytes(data)
    assert list(log.folder.glob("*.cleaned")) == []


def test_a_full_disk_stops_the_round_and_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FaultyFileSystem()
    log = Cleaned(tmp_path / "log", files=files)
    log.append((b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    files.room_bytes = 0
    assert log.compact_sealed() == 0
    assert "cannot compact" in caplog.text
    assert list(log.folder.glob("*.cleaned")) == []
    files.room_bytes = None
    assert log.compact_sealed() == 1
    assert log.records() == {1: (b"a", b"2")}


def test_segments_that_retention_takes_meanwhile_stay_gone(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log")
    log.append((b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    log.append((b"b", b"1"))
    log.log.flush()

    class Deleting(FaultyFileSystem):
        def fsync(self, file: object) -> None:
            log.log.delete_records_before(2)
            log.log.delete_segments(log.log.segments[:-1])

    log.log.context.files = Deleting()
    assert log.compact_sealed() == 0
    assert log.records() == {2: (b"b", b"1")}
    assert log.log.start_offset == 2


def test_a_failed_fsync_of_compaction_stops_the_log(tmp_path: Path) -> None:
    files = FaultyFileSystem()
    log = Cleaned(tmp_path / "log", files=files)
    log.append((b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    files.fsync_fails = True
    assert log.compact_sealed() == 0
    files.fsync_fails = False  # the disk reports a lost write once
    with pytest.raises(StorageError, match="durable"):
        log.append((b"b", b"1"))
    log.log.flush()
    assert log.log.durable_offset == 0
