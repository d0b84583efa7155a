"""Batches that brokers of the past accepted and nobody can decode: the log works around them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.batch.codec import decode_columns, decode_lists, decode_records, split_batches
from broker.batch.layout import read_header
from broker.errors import CorruptBatch
from tests.broker.batch.poison import COUNT_MAX, POISON, UNREADABLE, with_max_timestamp
from tests.broker.storage.compaction_support import NOW_MS, Cleaned

LATER_MS = NOW_MS + 50


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Cleaned]:
    cleaned = Cleaned(tmp_path / "prices-0")
    yield cleaned
    cleaned.log.close()


def append_raw(log: Cleaned, batch: bytes) -> int:
    """Write a batch as an older broker did: header and checksum are all that is looked at."""
    data = memoryview(bytearray(batch))
    return log.log.append(data, origin="raw", now_ms=NOW_MS).base_offset


def stored(log: Cleaned) -> list[tuple[int, bytes]]:
    """Base offset and records of each batch on the disk."""
    found = []
    for path in sorted(log.folder.glob("*.log")):
        view = memoryview(path.read_bytes())
        for position, header in split_batches(view):
            found.append((header.base_offset, bytes(view[position + 61 : position + header.size])))
    return found


@pytest.mark.parametrize("batch", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_compaction_keeps_the_batch_and_cleans_around_it(
    log: Cleaned, batch: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    log.append((b"a", b"1"), (b"b", b"1"))
    poison = append_raw(log, batch)
    last = log.append((b"a", b"2"))
    rounds = log.compact()
    assert rounds == 1
    assert "is no longer compacted" not in caplog.text
    assert f"the batch at offset {poison} cannot be read" in caplog.text
    assert [offset for offset, _ in stored(log)] == [0, poison, last]
    assert dict(stored(log))[poison] == batch[61:]
    assert b"2" in dict(stored(log))[last]
    log.append((b"b", b"2"))
    assert log.compact() >= 1
    assert dict(stored(log)).get(0, b"") == b"", "both keys have later records"


@pytest.mark.parametrize("batch", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_lookup_by_time_ends_at_the_batch_not_in_an_error(log: Cleaned, batch: bytes) -> None:
    log.append((b"a", b"1"))
    poison = append_raw(log, with_max_timestamp(batch, LATER_MS))
    assert log.log.offset_for_timestamp(NOW_MS + 1) == (poison, LATER_MS)
    assert log.log.max_timestamp() == (poison, LATER_MS)
    after = log.append((b"a", b"2"), timestamp_ms=LATER_MS + 1)
    assert log.log.offset_for_timestamp(LATER_MS + 1) == (after, LATER_MS + 1)


@pytest.mark.parametrize("batch", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_records_before_and_after_are_deleted_and_opened_again(log: Cleaned, batch: bytes) -> None:
    log.append((b"a", b"1"))
    poison = append_raw(log, batch)
    after = log.append((b"a", b"2"))
    for offset in (poison, after, after + 1):
        assert log.log.delete_records_before(offset) == offset
        log.log.release()
        log.open()
        assert log.log.end_offset == after + 1
    assert log.append((b"a", b"3")) == after + 1


def test_no_memory_is_taken_on_the_word_of_a_batch() -> None:
    """The decoders refuse the count before they allocate for it."""
    batch = POISON["61 bytes that claim 2^31-1 records"]
    assert len(batch) == 61
    assert read_header(batch).record_count == COUNT_MAX
    for decode in (decode_columns, decode_lists, decode_records):
        with pytest.raises(CorruptBatch):
            decode(batch)
