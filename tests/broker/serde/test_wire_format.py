"""The wire format: Confluent's bytes, and words for bytes that are something else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SerdeError
from broker.serde.wire_format import frame, frame_indexes, read_indexes, schema_id_of


@pytest.mark.parametrize(
    ("schema_id", "path", "expected"),
    [
        (1, [0], "00 00000001 00"),
        (1, [1], "00 00000001 02 02"),
        (258, [2, 0], "00 00000102 04 04 00"),
        (2**31 - 1, [0, 0], "00 7fffffff 04 00 00"),
        (7, [64, 300], "00 00000007 04 8001 d804"),
    ],
)
def test_ids_and_indexes_have_confluents_bytes(
    schema_id: int, path: list[int], expected: str
) -> None:
    data = frame(schema_id) + frame_indexes(path)
    assert data == bytes.fromhex(expected)
    assert schema_id_of("t", data) == schema_id
    assert read_indexes("t", data) == (tuple(path), len(data))


@given(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=100))
def test_what_is_framed_is_read(schema_id: int, path: list[int]) -> None:
    data = frame(schema_id) + frame_indexes(path)
    assert schema_id_of("t", data + b"more") == schema_id
    assert read_indexes("t", data + b"more") == (tuple(path), len(data))


def test_a_first_message_with_its_path_written_out_is_read_too() -> None:
    assert read_indexes("t", frame(1) + b"\x02\x00") == ((0,), 7)


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_an_id_that_does_not_fit_is_refused(schema_id: int) -> None:
    with pytest.raises(SerdeError, match="int32"):
        frame(schema_id)


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "no bytes", "without a registry"),
        (b"\0\0\0", "only 3 bytes", "without a registry"),
        (b'{"a": 1}', "magic byte 0x7b.* looks like JSON", "JsonSerde()"),
        (b"hello", "magic byte 0x68.* looks like text", "StringSerde()"),
        (b"Obj\x01....", "an Avro file", "fastavro"),
        (b"\xc3\x01" + bytes(9), "fingerprint", "single object"),
        (b"\x01" + bytes(16), "GUID", "prefix"),
        (b"\x06\x02\xff", "magic byte 0x06", "without a registry"),
        (b"\0\xff\xff\xff\xff1", "-1 is negative", "not written by a serializer"),
    ],
)
def test_bytes_without_a_prefix_are_told_apart(data: bytes, message: str, hint: str) -> None:
    with pytest.raises(SerdeError, match=message) as found:
        schema_id_of("orders", data)
    assert hint in found.value.hint
    assert found.value.at == 'topic "orders"'


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ("", "end within"),
        ("04 02", "end within"),
        ("01", "-1 of them"),
        ("02 01", "-1 is not a valid index"),
        ("ffffff7f", "of them"),
        ("80 80 80 80 80 80 80 80 80 80 80", "ten bytes"),
    ],
)
def test_wrong_indexes_are_refused(indexes: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        read_indexes("t", frame(1) + bytes.fromhex(indexes))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(SerdeError):
        schema_id_of("t", data)
        read_indexes("t", data)
