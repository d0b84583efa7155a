"""Batches: checks of outside bytes, records in and out, kafka-python as a second reader."""

from contextlib import suppress
from dataclasses import replace
from struct import pack_into

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from broker.batch import codec
from broker.batch.layout import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, BatchHeader
from broker.batch.records import Record, Row
from broker.errors import CorruptBatch, ErrorCode
from broker.model import ProducerIdentity
from tests.broker.batch.oracle import DefaultRecordBatch
from tests.broker.batch.strategies import COMPRESSIONS, ROWS

BYTES_MAX = 1 << 20


def simple_batch(count: int = 3) -> bytearray:
    rows: list[Row] = [(b"k%d" % n, b"v%d" % n, (), 1000 + n) for n in range(count)]
    return bytearray(codec.encode_batch(rows))


def resealed(batch: bytearray, layout: str, position: int, value: int) -> memoryview:
    """The batch with one field changed and a CRC that fits."""
    pack_into(layout, batch, position, value)
    pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[ATTRIBUTES_AT:])))
    return memoryview(batch)


def refusal(view: memoryview, *, batch_bytes_max: int = BYTES_MAX) -> ErrorCode:
    with pytest.raises(CorruptBatch) as caught:
        codec.check_batches(view, batch_bytes_max=batch_bytes_max)
    return caught.value.code


def expected_records(rows: list[Row], base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + number, timestamp, key, value, tuple(headers))  # type: ignore[arg-type]
        for number, (key, value, headers, timestamp) in enumerate(rows)
    ]


@pytest.mark.slow
@given(rows=ROWS, compression=COMPRESSIONS)
def test_records_come_back_as_they_went_in(rows: list[Row], compression: str) -> None:
    batch = codec.encode_batch(rows, compression=compression, base_offset=7)
    assert codec.decode_records(batch) == expected_records(rows, 7)
    (header,) = codec.check_batches(memoryview(batch), batch_bytes_max=BYTES_MAX)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset) == (7, 6 + len(rows))
    assert header.base_timestamp == rows[0][3]
    assert header.max_timestamp == max(row[3] for row in rows)


@pytest.mark.slow
@given(rows=ROWS, compression=COMPRESSIONS)
def test_columns_say_the_same_as_records(rows: list[Row], compression: str) -> None:
    batch = codec.encode_batch(rows, compression=compression)
    columns = codec.decode_columns(batch)
    records = codec.decode_records(batch)
    assert len(columns) == len(records)
    for row, record in enumerate(records):
        key_start, value_start = columns.key_starts[row], columns.value_starts[row]
        key = None if key_start < 0 else columns.buffer[key_start : columns.key_ends[row]]
        value = None if value_start < 0 else columns.buffer[value_start : columns.value_ends[row]]
        headers = columns.headers[row] if columns.headers else ()
        found = Record(columns.offsets[row], columns.timestamps[row], key, value, headers)
        assert found == record


@pytest.mark.slow
@given(rows=ROWS, compression=st.sampled_from(["none", "gzip", "lz4", "zstd", "snappy"]))
def test_kafka_python_reads_what_we_write(rows: list[Row], compression: str) -> None:
    batch = DefaultRecordBatch(codec.encode_batch(rows, compression=compression))
    assert batch.validate_crc()
    found = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert found == [tuple(record) for record in expected_records(rows)]


def test_producer_fields_travel_in_the_header() -> None:
    batch = codec.encode_batch(
        [(b"k", b"v", (), 1)],
        producer=ProducerIdentity(77, 3),
        base_sequence=(1 << 31) - 1,
        transactional=True,
        leader_epoch=5,
    )
    header = codec.read_header(batch)
    assert (header.producer_id, header.producer_epoch) == (77, 3)
    assert header.base_sequence == header.last_sequence == (1 << 31) - 1
    assert header.is_transactional
    assert not header.is_control
    assert header.leader_epoch == 5
    assert replace(header, last_offset_delta=1).last_sequence == 0


def test_a_batch_is_placed_without_touching_its_checksum() -> None:
    batch = memoryview(simple_batch())
    codec.place_batch(batch, 0, base_offset=1234, leader_epoch=9)
    header = codec.check_batch_at(batch, 0)
    assert header is not None
    assert (header.base_offset, header.leader_epoch) == (1234, 9)


def test_append_time_replaces_the_time_of_every_record() -> None:
    batch = memoryview(simple_batch())
    codec.stamp_append_time(batch, 0, 5_000)
    header = codec.check_batch_at(batch, 0)
    assert header is not None
    assert header.has_log_append_time
    assert {record.timestamp_ms for record in codec.decode_records(batch)} == {5_000}
    assert set(codec.decode_columns(batch).timestamps) == {5_000}


def test_several_batches_are_split() -> None:
    view = memoryview(simple_batch(1) + simple_batch(2))
    headers = codec.check_batches(view, batch_bytes_max=BYTES_MAX)
    assert [header.record_count for header in headers] == [1, 2]
    assert [header for _, header in codec.split_batches(view)] == headers


def test_a_fetch_answer_may_end_inside_a_batch() -> None:
    whole = simple_batch(1)
    for cut in range(len(whole)):
        view = memoryview(whole + simple_batch(2)[:cut])
        assert [position for position, _ in codec.split_batches(view)] == [0]


@pytest.mark.parametrize(
    ("layout", "position", "value", "code"),
    [
        (">b", 16, 3, ErrorCode.CORRUPT_MESSAGE),
        (">b", 16, 1, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (">b", 16, 0, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (">i", 8, -1, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, 48, ErrorCode.CORRUPT_MESSAGE),
        (">i", 8, (1 << 31) - 1, ErrorCode.CORRUPT_MESSAGE),
        (">h", 21, 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (">h", 21, 0x20, ErrorCode.INVALID_RECORD),
        (">h", 21, 0x10, ErrorCode.INVALID_RECORD),
        (">i", 23, 5, ErrorCode.INVALID_RECORD),
        (">i", 23, -1, ErrorCode.INVALID_RECORD),
        (">i", 57, 0, ErrorCode.INVALID_RECORD),
        (">i", 57, -5, ErrorCode.INVALID_RECORD),
        (">q", 43, 12, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_bad_field_is_refused_with_its_code(
    layout: str, position: int, value: int, code: ErrorCode
) -> None:
    assert refusal(resealed(simple_batch(), layout, position, value)) == code


def test_old_formats_are_refused_even_when_shorter_than_a_batch_header() -> None:
    message_v1 = bytearray(40)
    message_v1[16] = 1
    assert refusal(memoryview(message_v1)) == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_a_batch_over_the_limit_is_too_large() -> None:
    batch = simple_batch()
    code = refusal(memoryview(batch), batch_bytes_max=len(batch) - 1)
    assert code == ErrorCode.MESSAGE_TOO_LARGE


def test_no_batch_at_all_is_refused() -> None:
    assert refusal(memoryview(b"")) == ErrorCode.INVALID_RECORD


def test_every_flipped_bit_under_the_checksum_is_found() -> None:
    batch = simple_batch()
    for position in range(16, len(batch)):
        for bit in range(8):
            batch[position] ^= 1 << bit
            assert codec.check_batch_at(memoryview(batch), 0) is None
            with pytest.raises(CorruptBatch):
                codec.check_batches(memoryview(batch), batch_bytes_max=BYTES_MAX)
            batch[position] ^= 1 << bit


def test_a_torn_batch_is_none_at_recovery() -> None:
    batch = simple_batch()
    for cut in range(len(batch)):
        assert codec.check_batch_at(memoryview(batch[:cut]), 0) is None


@pytest.mark.slow
@given(rows=ROWS, compression=COMPRESSIONS, data=st.data())
def test_mutated_records_raise_corrupt_batch_only(
    rows: list[Row], compression: str, data: st.DataObject
) -> None:
    batch = bytearray(codec.encode_batch(rows, compression=compression))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    for decode in (codec.decode_records, codec.decode_columns, codec.decode_lists):
        with suppress(CorruptBatch):
            decode(bytes(batch), bytes_max=BYTES_MAX)


def test_a_count_that_lies_is_refused_before_anything_is_allocated() -> None:
    view = resealed(simple_batch(), ">i", 57, (1 << 31) - 1)
    pack_into(">i", view, 23, (1 << 31) - 2)
    for decode in (codec.decode_records, codec.decode_columns, codec.decode_lists):
        with pytest.raises(CorruptBatch, match="bytes for 2147483647 records"):
            decode(view)


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_refused(compression: str) -> None:
    bomb = codec.encode_batch([(None, bytes(8 << 20), (), 0)], compression=compression)
    assert len(bomb) < 1 << 20
    with pytest.raises(CorruptBatch, match="decompress to more than 1048576 bytes"):
        codec.decode_records(bomb, bytes_max=BYTES_MAX)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_the_transaction_ended(commit: bool) -> None:
    batch = codec.control_batch(
        commit=commit, producer=ProducerIdentity(9, 2), coordinator_epoch=4, timestamp_ms=88
    )
    (header,) = codec.check_batches(memoryview(batch), batch_bytes_max=BYTES_MAX, from_client=False)
    assert header.is_control
    assert header.is_transactional
    (record,) = codec.decode_records(batch)
    assert (record.key, record.value) == (bytes((0, 0, 0, commit)), b"\0\0\0\0\0\4")
    assert codec.read_control(record) == (commit, 4)


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (b"\0\0\0\0", b"\0"), (b"\0\0\0\7", b"\0\0\0\0\0\0")]
)
def test_a_marker_that_is_none_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        codec.read_control(Record(1, 0, key, value))


def retained(batch: bytes, kept: list[int], horizon: int | None) -> tuple[BatchHeader, bytes]:
    header = codec.read_header(batch)
    records = [record for record in codec.decode_records(batch) if record.offset in kept]
    made = codec.encode_retained(header, records, delete_horizon_ms=horizon)
    again = codec.check_batch_at(memoryview(made), 0)
    assert again is not None
    assert codec.decode_records(made) == records
    return again, made


@pytest.mark.slow
@given(rows=ROWS, compression=COMPRESSIONS, data=st.data())
def test_compaction_keeps_offsets_producer_and_times(
    rows: list[Row], compression: str, data: st.DataObject
) -> None:
    batch = codec.encode_batch(
        rows, compression=compression, producer=ProducerIdentity(5, 1), base_sequence=10,
        base_offset=100,
    )  # fmt: skip
    kept = data.draw(st.sets(st.integers(100, 99 + len(rows))))
    horizon = data.draw(st.none() | st.integers(0, 1 << 40))
    before = codec.read_header(batch)
    header, made = retained(batch, sorted(kept), horizon)
    assert (header.base_offset, header.last_offset) == (100, 99 + len(rows))
    assert (header.producer_id, header.producer_epoch) == (5, 1)
    assert (header.base_sequence, header.last_sequence) == (10, before.last_sequence)
    assert header.record_count == len(kept)
    if kept:
        assert header.delete_horizon_ms == horizon
        again, _ = retained(made, sorted(kept)[:1], None)
        assert again.delete_horizon_ms == horizon
    else:
        assert len(made) == HEADER_BYTES
        assert header.max_timestamp == before.max_timestamp
