"""The C extension gives what the plain Python gives, on good bytes and on bad ones."""

import sys
from array import array
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.batch import records as plain
from broker.batch.records import Record, Row, Section
from tests.broker.batch.strategies import ROWS

_speed = pytest.importorskip("broker.batch._speed", reason="the C extension is not built")

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or that it refused."""
    try:
        return call()
    except ValueError:
        return "refused"


def columns(implementation: object, data: bytes, section: Section) -> object:
    count = section.record_count
    longs = [array("q", bytes(8 * count)) for _ in range(2)]
    ints = [array("i", bytes(4 * count)) for _ in range(4)]
    headers = implementation.decode_arrays(data, section, longs, ints)  # type: ignore[attr-defined]
    return headers, longs, ints


class PlacedRecord(NamedTuple):
    """A record that knows where it was."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def compare_decoding(data: bytes, section: Section) -> None:
    # The codec refuses counts that the bytes cannot hold; plain Python relies on it.
    if section.record_count * 7 > len(data):
        return
    rows = outcome(lambda: plain.decode_rows(data, section, Record))
    assert outcome(lambda: _speed.decode_rows(data, section, Record)) == rows
    placed = outcome(lambda: plain.decode_rows(data, section, PlacedRecord, ("topic", 7)))
    assert outcome(lambda: _speed.decode_rows(data, section, PlacedRecord, ("topic", 7))) == placed
    lists = outcome(lambda: plain.decode_lists(data, section))
    assert outcome(lambda: _speed.decode_lists(data, section)) == lists
    expected = outcome(lambda: columns(plain, data, section))
    assert outcome(lambda: columns(_speed, data, section)) == expected
    facts = outcome(lambda: plain.check_section(data, section))
    assert outcome(lambda: _speed.check_section(data, section)) == facts
    if facts != "refused":
        assert rows != "refused", "what the check accepts can be decoded"


@pytest.mark.slow
@given(rows=ROWS)
def test_rows_are_encoded_to_the_same_bytes(rows: list[Row]) -> None:
    assert _speed.encode_rows(rows) == plain.encode_rows(rows)


@pytest.mark.slow
@given(rows=ROWS, base_timestamp=INT64, data=st.data())
def test_kept_records_are_encoded_to_the_same_bytes(
    rows: list[Row], base_timestamp: int, data: st.DataObject
) -> None:
    gaps = data.draw(
        st.lists(st.integers(0, 1 << 20), min_size=len(rows), max_size=len(rows)).map(sorted)
    )
    records = [
        Record(100 + gap, row[3], row[0], row[1], tuple(row[2]))  # type: ignore[arg-type]
        for gap, row in zip(gaps, rows, strict=True)
    ]
    expected = outcome(lambda: plain.encode_kept(records, 100, base_timestamp))
    assert outcome(lambda: _speed.encode_kept(records, 100, base_timestamp)) == expected


def test_any_buffer_and_any_sequence_of_headers_is_taken() -> None:
    rows: list[Row] = [
        (bytearray(b"key"), memoryview(b"value"), [("h\udcff", memoryview(b""))], 5),
        (memoryview(b""), None, [], 4),
    ]
    encoded, base, largest = _speed.encode_rows(rows)
    assert (encoded, base, largest) == plain.encode_rows(rows)
    section = Section(2, 1, 0, base, False)
    assert _speed.decode_rows(encoded, section, Record) == [
        Record(0, 5, b"key", b"value", (("h\udcff", b""),)),
        Record(1, 4, b"", None, ()),
    ]


@pytest.mark.parametrize(
    "row",
    [
        ("text", None, (), 0), (None, 7, (), 0), (None, None, (), "now"), (None, None, 5, 0),
        (None, None, ((b"name", b""),), 0), (None, None, (("name", "text"),), 0),
    ],
)  # fmt: skip
def test_values_of_a_wrong_type_are_refused_by_both(row: object) -> None:
    for implementation in (plain, _speed):
        with pytest.raises((TypeError, AttributeError)):
            implementation.encode_rows([row])


@pytest.mark.slow
@given(rows=ROWS, base_timestamp=INT64, fixed=st.booleans(), spare=st.integers(-1, 3))
def test_sections_are_decoded_to_the_same_records(
    rows: list[Row], base_timestamp: int, fixed: bool, spare: int
) -> None:
    data, _, _ = plain.encode_rows(rows)
    section = Section(len(rows), len(rows) - 1 + spare, 1 << 40, base_timestamp, fixed)
    compare_decoding(data, section)


@pytest.mark.slow
@given(rows=ROWS, data=st.data())
def test_mutated_sections_end_alike(rows: list[Row], data: st.DataObject) -> None:
    section_bytes = bytearray(plain.encode_rows(rows)[0])
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(section_bytes) - 1))
        section_bytes[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(section_bytes)))
    section = Section(len(rows), len(rows) - 1, 0, 0, False)
    compare_decoding(bytes(section_bytes), section)
    compare_decoding(bytes(section_bytes[:cut]), section)


@pytest.mark.slow
@given(data=st.binary(max_size=200), count=st.integers(0, 20), last=st.integers(-1, 1 << 31))
@example(data=b"\xff" * 30, count=2, last=5)
@example(data=b"\x0c\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\1\1\0", count=1, last=0)
@example(data=b"\x0c\0\0\0\1\1\xff\xff\xff\xff\x0f" + bytes(9), count=1, last=0)
def test_random_bytes_end_alike(data: bytes, count: int, last: int) -> None:
    compare_decoding(data, Section(count, last, 0, 0, False))


def test_hostile_sections_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer bytes"):
        _speed.decode_rows(b"", Section(1 << 40, 0, 0, 0, False), Record)
    with pytest.raises(ValueError, match="outside 64 bits"):
        _speed.decode_rows(bytes(7), Section(1, 1, (1 << 63) - 1, 0, False), Record)
    with pytest.raises(TypeError):
        _speed.decode_rows(bytes(7), Section(1, 1, 0, 0, False), list)
    with pytest.raises(TypeError, match="shorter"):
        _speed.decode_arrays(
            bytes(7), Section(1, 1, 0, 0, False), [array("q")] * 2, [array("i")] * 4
        )


@pytest.mark.slow
def test_nothing_leaks() -> None:
    rows: list[Row] = [(b"key", bytearray(b"value"), [("name", b"data")], 1)] * 50
    data, base, _ = _speed.encode_rows(rows)
    section = Section(50, 49, 0, base, False)
    broken = data[:-1] + b"\7"

    def work() -> None:
        _speed.encode_rows(rows)
        _speed.encode_kept(_speed.decode_rows(data, section, Record), 0, base)
        columns(_speed, data, section)
        _speed.decode_lists(data, section)
        _speed.check_section(data, section)
        outcome(lambda: _speed.check_section(broken, section))
        outcome(lambda: _speed.decode_lists(broken, section))
        outcome(lambda: _speed.decode_rows(broken, section, Record))
        outcome(lambda: columns(_speed, broken, section))

    for _ in range(50):
        work()
    before = sys.getallocatedblocks()
    for _ in range(500):
        work()
    assert sys.getallocatedblocks() - before < 200
