"""Rows of one column as Kafka's own bytes, and no rows at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde.serde import Serde
from sql.datatypes import BIGINT, BYTES, DOUBLE, INT, STRING, Column, DataType
from sql.rows.kafka_rows import KafkaRows
from sql.rows.none_rows import NoneRows
from sql.rows.row_format import Row, RowOptions
from tests.support.columns import columns, columns_and_rows, exactly
from tests.support.type_text import parse_type

TYPES: st.SearchStrategy[DataType] = st.sampled_from([INT, BIGINT, DOUBLE, STRING, BYTES])


def serde_of(*types: str) -> Serde[Row]:
    """A serde of columns with names of one letter."""
    made = [Column(name, parse_type(each)) for name, each in zip("ABC", types, strict=False)]
    return KafkaRows().serde(made, RowOptions())


@pytest.mark.parametrize(
    ("data_type", "value", "data"),
    [
        ("INT", -2, b"\xff\xff\xff\xfe"),
        ("BIGINT", 1, b"\0\0\0\0\0\0\0\1"),
        ("DOUBLE", 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        ("STRING", "é", b"\xc3\xa9"),
        ("STRING", "", b""),
        ("BYTES", b"ab", b"ab"),
    ],
)
def test_values_are_the_bytes_of_kafkas_serializers(
    data_type: str, value: object, data: bytes
) -> None:
    serde = serde_of(data_type)
    assert serde.serialize("t", (value,)) == data
    assert serde.deserialize("t", data) == (value,)


@pytest.mark.parametrize(
    ("data_type", "data"),
    [("INT", b""), ("INT", b"12345"), ("BIGINT", b"1234"), ("DOUBLE", b"1"), ("STRING", b"\xff")],
)
def test_bytes_of_another_length_or_kind_are_refused(data_type: str, data: bytes) -> None:
    with pytest.raises(SerdeError, match="cannot decode"):
        serde_of(data_type).deserialize("t", data)


@pytest.mark.parametrize("row", [("x",), (2**31,), (), (1, 2)])
def test_rows_that_are_no_single_number_are_not_written(row: Row) -> None:
    with pytest.raises(SerdeError, match="cannot encode"):
        serde_of("INT").serialize("t", row)


def test_nulls_are_null_records() -> None:
    serde = serde_of("INT")
    assert serde.serialize("t", None) is None
    assert serde.serialize("t", (None,)) is None
    assert serde.deserialize("t", None) is None


def test_without_columns_everything_is_null() -> None:
    for serde in (serde_of(), NoneRows().serde([], RowOptions(is_key=True))):
        assert serde.serialize("t", ()) is None
        assert serde.serialize("t", None) is None
        assert serde.deserialize("t", b"anything") is None


def test_several_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="only a single column") as caught:
        serde_of("INT", "STRING")
    assert caught.value.at == "columns `A` INTEGER, `B` STRING"


@pytest.mark.parametrize(
    "text", ["BOOLEAN", "DECIMAL(2, 1)", "TIME", "DATE", "TIMESTAMP", "ARRAY<INT>", "STRUCT<A INT>"]
)
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(
        SchemaError, match=f"does not support type {text.split('<')[0].split('(')[0]}"
    ):
        serde_of(text)


def test_none_is_for_keys_without_columns() -> None:
    with pytest.raises(SchemaError, match="no columns"):
        NoneRows().serde([Column("A", INT)], RowOptions(is_key=True))
    with pytest.raises(SchemaError, match="for keys only"):
        NoneRows().serde([], RowOptions())


@given(columns_and_rows(columns(TYPES, count_max=1)))
def test_rows_come_back_from_their_bytes(made: tuple[tuple[Column, ...], Row]) -> None:
    given_columns, row = made
    serde = KafkaRows().serde(given_columns, RowOptions())
    expected = None if row == (None,) else row
    assert exactly(serde.deserialize("t", serde.serialize("t", row))) == exactly(expected)


@given(columns(TYPES, count_max=1), st.binary())
def test_any_bytes_are_a_row_or_an_error(made: tuple[Column, ...], data: bytes) -> None:
    serde = KafkaRows().serde(made, RowOptions())
    try:
        row = serde.deserialize("t", data)
    except SerdeError:
        return
    assert row is not None
    assert len(row) == 1
