"""PartitionLog: append, read, roll, look up, remove."""

import pytest

from broker.batch.codec import control_batch, encode_batch
from broker.batch.layout import read_header
from broker.errors import BrokerError, ErrorCode
from broker.model import AbortedTransaction, ProducerIdentity
from tests.broker.storage.support import (
    NOW_MS,
    Disk,
    append,
    as_bytes,
    batch,
    read_bytes,
    read_records,
    topic_config,
)

PRODUCER = ProducerIdentity(7, 0)


def marker(*, commit: bool) -> memoryview:
    """The end of PRODUCER's transaction."""
    return memoryview(
        bytearray(
            control_batch(
                commit=commit, producer=PRODUCER, coordinator_epoch=0, timestamp_ms=NOW_MS
            )
        )
    )


def test_batches_get_their_offsets_and_are_read_back(disk: Disk) -> None:
    log = disk.open()
    first = append(log, batch(3))
    second = append(log, batch(2))
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert [record.offset for record in read_records(log)] == [0, 1, 2, 3, 4]
    assert log.high_watermark == log.last_stable_offset == log.end_offset == 5
    disk.close()


def test_a_log_without_records_has_no_files(disk: Disk) -> None:
    log = disk.open()
    assert not disk.folder.exists()
    assert log.read(0, bytes_max=10, offset_limit=0).records == b""
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None
    disk.close()


@pytest.mark.parametrize("offset", [-1, 6])
def test_reading_outside_of_the_log_is_refused(disk: Disk, offset: int) -> None:
    log = disk.open()
    append(log, batch(5))
    with pytest.raises(BrokerError) as caught:
        log.read(offset, bytes_max=100, offset_limit=5)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    disk.close()


def test_a_read_gives_whole_batches_and_one_at_least(disk: Disk) -> None:
    log = disk.open(index_interval_bytes=100)
    size = len(batch(2))
    for _ in range(10):
        append(log, batch(2))
    fetched = log.read(5, bytes_max=3 * size + 10, offset_limit=20)
    assert len(fetched.records) == 3 * size
    assert read_header(as_bytes(fetched.records)).base_offset == 4
    assert fetched.next_offset == 10
    assert len(log.read(5, bytes_max=1, offset_limit=20).records) == size
    assert log.read(5, bytes_max=1, offset_limit=20, minimum_one=False).records == b""
    assert log.read(4, bytes_max=10_000, offset_limit=5).records == b""
    assert len(log.read(4, bytes_max=10_000, offset_limit=7).records) == size
    disk.close()


@pytest.mark.parametrize(
    ("settings", "timestamps", "segments"),
    [
        ({"segment_bytes": 2 * len(batch())}, [0] * 5, 3),
        ({"segment_ms": 100}, [0, 100, 101, 150, 202], 3),
        ({"index_interval_bytes": 0, "segment_index_bytes": 24}, [0, 1, 2, 3, 4], 3),
        ({}, [0] * 5, 1),
    ],
    ids=["by size", "by time", "index full", "not at all"],
)
def test_segments_roll(
    disk: Disk, settings: dict[str, object], timestamps: list[int], segments: int
) -> None:
    log = disk.open(**settings)
    for later_ms in timestamps:
        append(log, batch(timestamp_ms=NOW_MS + later_ms))
    assert len(log.segments) == segments
    assert [record.offset for record in read_records(log)] == [0, 1, 2, 3, 4]
    disk.close()


def test_offsets_too_far_from_the_base_roll(disk: Disk) -> None:
    log = disk.open()
    append(log, batch())
    log.end_offset = 2**31
    append(log, batch())
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    disk.close()


def test_jitter_makes_segments_roll_earlier(disk: Disk) -> None:
    log = disk.open(segment_ms=1000, segment_jitter_ms=1000)
    append(log, batch())
    append(log, batch(timestamp_ms=NOW_MS + 1000))
    assert log.segments[0].jitter_ms > 0
    assert len(log.segments) == 2
    disk.close()


def test_settings_take_effect_at_once(disk: Disk) -> None:
    log = disk.open()
    append(log, batch())
    log.update_config(topic_config(segment_bytes=len(batch())))
    append(log, batch())
    assert len(log.segments) == 2
    disk.close()


def test_log_append_time_is_stamped_on_all_records(disk: Disk) -> None:
    log = disk.open(message_timestamp_type="LogAppendTime")
    appended = append(log, batch(2, timestamp_ms=5))
    assert appended.append_time_ms == NOW_MS
    assert [record.timestamp_ms for record in read_records(log)] == [NOW_MS, NOW_MS]
    assert log.offset_for_timestamp(NOW_MS) == (0, NOW_MS)
    disk.close()


@pytest.mark.parametrize(
    ("settings", "records", "code"),
    [
        ({"max_message_bytes": 60}, batch(), ErrorCode.MESSAGE_TOO_LARGE),
        ({"segment_bytes": 60}, batch(), ErrorCode.RECORD_LIST_TOO_LARGE),
        ({}, batch(timestamp_ms=NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
        (
            {"message_timestamp_before_max_ms": 10},
            batch(timestamp_ms=NOW_MS - 11),
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (
            {"cleanup_policy": ("compact",)},
            memoryview(bytearray(encode_batch([(None, b"v", (), NOW_MS)]))),
            ErrorCode.INVALID_RECORD,
        ),
        ({}, memoryview(bytearray(bytes(batch()) * 2)), ErrorCode.INVALID_RECORD),
        ({}, marker(commit=True), ErrorCode.INVALID_RECORD),
        ({}, memoryview(bytearray(b"nonsense")), ErrorCode.CORRUPT_MESSAGE),
        ({}, memoryview(bytearray()), ErrorCode.INVALID_RECORD),
    ],
    ids=[
        "batch too large",
        "larger than a segment",
        "too far ahead",
        "too long ago",
        "no key",
        "two batches",
        "control batch",
        "no batch",
        "nothing",
    ],
)
def test_what_a_client_must_not_send_is_refused(
    disk: Disk, settings: dict[str, object], records: memoryview, code: ErrorCode
) -> None:
    log = disk.open(**settings)
    with pytest.raises(BrokerError) as caught:
        append(log, memoryview(bytearray(records)))
    assert caught.value.code is code
    assert log.end_offset == 0
    disk.close()


@pytest.mark.parametrize("wanted", ["gzip", "zstd", "lz4", "snappy", "uncompressed", "producer"])
def test_a_topic_may_ask_for_its_own_compression(disk: Disk, wanted: str) -> None:
    log = disk.open(compression_type=wanted)
    append(log, batch(3, value=b"x" * 100, compression="gzip", producer=PRODUCER, sequence=0))
    header = read_header(read_bytes(log))
    expected = {"uncompressed": 0, "producer": 1, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
    assert header.codec == expected[wanted]
    assert (header.producer_id, header.base_sequence) == (7, 0)
    assert [record.value for record in read_records(log)] == [b"x" * 100] * 3
    disk.close()


def test_several_batches_of_a_coordinator_go_in_with_one_write(disk: Disk) -> None:
    log = disk.open()
    appended = append(log, memoryview(bytearray(bytes(batch(2)) + bytes(batch(3)))), "coordinator")
    assert (appended.base_offset, appended.last_offset) == (0, 4)
    assert [record.offset for record in read_records(log)] == [0, 1, 2, 3, 4]
    disk.close()


def test_a_duplicate_is_answered_with_where_it_is(disk: Disk) -> None:
    log = disk.open()
    append(log, batch(4))
    append(log, batch(2, producer=PRODUCER, sequence=0))
    append(log, batch(2, producer=PRODUCER, sequence=2))
    again = append(log, batch(2, producer=PRODUCER, sequence=0))
    assert again.duplicate
    assert (again.base_offset, again.last_offset) == (4, 5)
    assert log.end_offset == 8
    disk.close()


def test_records_are_found_by_time(disk: Disk) -> None:
    log = disk.open(index_interval_bytes=0, segment_bytes=4 * len(batch()))
    times = [5, 3, 9, 9, 2, 12, 1, 15, 15]
    for later_ms in times:
        append(log, batch(timestamp_ms=NOW_MS + later_ms))
    for wanted in range(17):
        found = next((n for n, time in enumerate(times) if time >= wanted), None)
        expected = None if found is None else (found, NOW_MS + times[found])
        assert log.offset_for_timestamp(NOW_MS + wanted) == expected
    assert log.max_timestamp() == (7, NOW_MS + 15)
    disk.close()


def test_a_time_inside_of_a_batch_is_found(disk: Disk) -> None:
    log = disk.open()
    rows = [(b"k", b"v", (), NOW_MS + later_ms) for later_ms in (1, 8, 4)]
    append(log, memoryview(bytearray(encode_batch(rows, compression="zstd"))))
    assert log.offset_for_timestamp(NOW_MS + 2) == (1, NOW_MS + 8)
    assert log.max_timestamp() == (1, NOW_MS + 8)
    disk.close()


def test_deleting_records_moves_the_start_and_removes_segments(disk: Disk) -> None:
    log = disk.open(segment_bytes=2 * len(batch()), file_delete_delay_ms=1000)
    for _ in range(7):
        append(log, batch())
    assert log.delete_records_before(5) == 5
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    assert disk.directory is not None
    disk.directory.flush_due()
    assert [segment.base_offset for segment in log.segments] == [4, 6]
    assert [record.offset for record in read_records(log)] == [5, 6]
    assert log.delete_records_before(2) == 5
    with pytest.raises(BrokerError) as caught:
        log.delete_records_before(8)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert disk.directory is not None
    disk.directory.flush_due()
    assert len(disk.names(".log.deleted")) == 2
    disk.clock.advance(1000)
    disk.directory.flush_due()
    assert disk.names(".deleted") == []
    disk.close()
    assert disk.open().start_offset == 5
    disk.close()


def test_a_reader_keeps_what_is_deleted_meanwhile(disk: Disk) -> None:
    log = disk.open(segment_bytes=len(batch()), file_delete_delay_ms=0)
    for _ in range(3):
        append(log, batch())
    fetched = log.read(0, bytes_max=1000, offset_limit=3)
    log.delete_records_before(2)
    assert disk.directory is not None
    disk.directory.remove_discarded()
    assert read_header(as_bytes(fetched.records)).base_offset == 0
    disk.close()


@pytest.mark.parametrize(("offset", "end"), [(0, 0), (3, 2), (4, 4), (9, 8), (12, 12), (99, 12)])
def test_truncation_removes_whole_batches(disk: Disk, offset: int, end: int) -> None:
    log = disk.open(segment_bytes=2 * len(batch(2)))
    for _ in range(6):
        append(log, batch(2))
    log.truncate_to(offset)
    assert log.end_offset == log.high_watermark == end
    assert [record.offset for record in read_records(log)] == list(range(end))
    append(log, batch())
    disk.close()
    assert disk.open().end_offset == end + 1
    disk.close()


def test_truncation_takes_producers_back(disk: Disk) -> None:
    log = disk.open(segment_bytes=2 * len(batch()))
    for sequence in range(6):
        append(log, batch(producer=PRODUCER, sequence=sequence))
    log.truncate_to(3)
    entry = log.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 2
    assert append(log, batch(producer=PRODUCER, sequence=3)).base_offset == 3
    disk.close()


def test_a_transaction_holds_the_last_stable_offset(disk: Disk) -> None:
    log = disk.open()
    moves: list[tuple[int, int]] = []
    log.subscribe(lambda: moves.append((log.high_watermark, log.last_stable_offset)))
    append(log, batch())
    append(log, batch(2, producer=PRODUCER, sequence=0, transactional=True))
    append(log, batch())
    append(log, marker(commit=False), "coordinator")
    assert moves == [(1, 1), (3, 1), (4, 1), (5, 5)]
    assert log.aborted_transactions(0, 5) == [AbortedTransaction(7, 1)]
    assert log.aborted_transactions(0, 1) == []
    disk.close()


def test_aborted_transactions_are_found_across_segments(disk: Disk) -> None:
    log = disk.open(segment_bytes=2 * len(batch()))
    for number in range(5):
        append(log, batch(producer=PRODUCER, sequence=2 * number, transactional=True))
        append(log, batch(producer=PRODUCER, sequence=2 * number + 1, transactional=True))
        append(log, marker(commit=number % 2 == 0), "coordinator")
    assert log.aborted_transactions(0, 15) == [
        AbortedTransaction(7, 3),
        AbortedTransaction(7, 9),
    ]
    assert log.aborted_transactions(6, 15) == [AbortedTransaction(7, 9)]
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(7, 3)]
    disk.close()
    assert disk.open().aborted_transactions(6, 15) == [AbortedTransaction(7, 9)]
    disk.close()


def test_who_unsubscribes_hears_no_more(disk: Disk) -> None:
    log = disk.open()
    calls: list[int] = []

    def once() -> None:
        calls.append(log.end_offset)
        log.unsubscribe(once)

    log.subscribe(once)
    append(log, batch())
    append(log, batch())
    assert calls == [1]
    disk.close()
