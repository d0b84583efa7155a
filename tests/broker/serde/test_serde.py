"""Serdes: Java's bytes, round trips, and errors that say what to do."""

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SerdeError
from broker.serde import (
    AvroSerde,
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    Serde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)

SOME_UUID = UUID("0b2cd2a4-5f6e-4a51-9a3a-0e8d3b6c1f00")
RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
JAVA_BYTES = [
    (StringSerde(), "Zoë", "5a6fc3ab"),
    (BytesSerde(), b"\0\1", "0001"),
    (ShortSerde(), -2, "fffe"),
    (IntegerSerde(), 1 << 30, "40000000"),
    (LongSerde(), -1, "ffffffffffffffff"),
    (LongSerde(), 1, "0000000000000001"),
    (FloatSerde(), 1.5, "3fc00000"),
    (FloatSerde(), -math.nan, "7fc00000"),
    (DoubleSerde(), -0.1, "bfb999999999999a"),
    (DoubleSerde(), math.nan, "7ff8000000000000"),
    (DoubleSerde(), -math.inf, "fff0000000000000"),
    (UuidSerde(), SOME_UUID, str(SOME_UUID).encode().hex()),
    (BooleanSerde(), True, "01"),
    (BooleanSerde(), False, "00"),
    (JsonSerde(), {"a": [1, None, "ü"]}, b'{"a":[1,null,"\xc3\xbc"]}'.hex()),
    (AvroSerde(RECORD), {"id": 3, "note": "hi"}, "06020468" + "69"),
]
SERDES = [serde for serde, _, _ in JAVA_BYTES]


def by_kind(value: object) -> str:
    return type(value).__name__ if hasattr(value, "serialize") else repr(value)[:20]


@pytest.mark.parametrize(("serde", "value", "expected"), JAVA_BYTES, ids=by_kind)
def test_values_have_the_bytes_java_writes(
    serde: Serde[object], value: object, expected: str
) -> None:
    data = serde.serialize("t", value)
    assert data is not None
    assert data.hex() == expected
    assert repr(serde.deserialize("t", data)) == repr(value).replace("-nan", "nan")


@pytest.mark.parametrize("serde", SERDES, ids=by_kind)
def test_none_is_null_both_ways(serde: Serde[object]) -> None:
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (StringSerde(), 5),
        (StringSerde(), "\udcff"),
        (BytesSerde(), "text"),
        (ShortSerde(), 40_000),
        (IntegerSerde(), 1 << 31),
        (LongSerde(), 1.5),
        (LongSerde(), True),
        (LongSerde(), 1 << 63),
        (FloatSerde(), 1e300),
        (FloatSerde(), "1"),
        (DoubleSerde(), 1 << 1024),
        (UuidSerde(), "x"),
        (BooleanSerde(), 1),
        (JsonSerde(), {1, 2}),
        (AvroSerde(RECORD), {"id": "text"}),
    ],
    ids=by_kind,
)
def test_a_wrong_value_is_refused_with_topic_and_hint(serde: Serde[object], value: object) -> None:
    with pytest.raises(SerdeError, match="cannot encode as") as caught:
        serde.serialize("orders", value)
    assert 'topic "orders"' in str(caught.value)
    assert "hint:" in str(caught.value)


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (StringSerde(), b"\xff"),
        (ShortSerde(), b"1"),
        (IntegerSerde(), b""),
        (LongSerde(), b"12345"),
        (FloatSerde(), b"12345"),
        (DoubleSerde(), b"1234"),
        (UuidSerde(), b"no uuid"),
        (UuidSerde(), b"\xff"),
        (BooleanSerde(), b"\2"),
        (BooleanSerde(), b""),
        (JsonSerde(), b'{"a":'),
        (AvroSerde(RECORD), b""),
        (AvroSerde(RECORD), b"\6\0 too long"),
        (AvroSerde(RECORD), b"\6\7"),
    ],
    ids=by_kind,
)
def test_wrong_bytes_are_refused_with_topic_and_hint(serde: Serde[object], data: bytes) -> None:
    with pytest.raises(SerdeError, match="cannot decode as") as caught:
        serde.deserialize("orders", data)
    assert 'topic "orders"' in str(caught.value)
    assert "hint:" in str(caught.value)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_longs_come_back(value: int) -> None:
    assert LongSerde().deserialize("t", LongSerde().serialize("t", value)) == value


@given(st.floats(allow_nan=False))
def test_doubles_come_back(value: float) -> None:
    assert DoubleSerde().deserialize("t", DoubleSerde().serialize("t", value)) == value


@given(st.text())
def test_text_comes_back(value: str) -> None:
    assert StringSerde().deserialize("t", StringSerde().serialize("t", value)) == value


JSON_VALUES = st.recursive(
    st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_json_comes_back(value: object) -> None:
    assert JsonSerde().deserialize("t", JsonSerde().serialize("t", value)) == value


@given(identifier=st.integers(-(1 << 63), (1 << 63) - 1), note=st.none() | st.text())
def test_avro_records_come_back(identifier: int, note: str | None) -> None:
    value = {"id": identifier, "note": note}
    serde = AvroSerde(RECORD)
    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_a_readers_schema_fills_in_what_was_not_written() -> None:
    newer = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "paid", "type": "boolean", "default": False},
        ],
    }
    data = AvroSerde(RECORD).serialize("t", {"id": 1, "note": None})
    found = AvroSerde(RECORD, reader_schema=newer).deserialize("t", data)
    assert found == {"id": 1, "paid": False}


def test_a_schema_may_be_text_and_a_wrong_one_is_refused_at_once() -> None:
    assert AvroSerde('"string"').serialize("t", "a") == b"\2a"
    for wrong in ("{", '{"type": "unheard of"}'):
        with pytest.raises(SerdeError, match="the Avro schema is invalid"):
            AvroSerde(wrong)
