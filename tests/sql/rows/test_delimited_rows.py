"""Rows as separated values."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde.serde import Serde
from sql.datatypes import INT, STRING, ArrayType, Column, MapType, StructType
from sql.rows.delimited_rows import DelimitedRows, delimiter_of, first_record
from sql.rows.row_format import Row, RowOptions
from tests.support.columns import columns, columns_and_rows, exactly, scalar_types
from tests.support.type_text import parse_type

DELIMITERS = st.sampled_from([",", ";", "|", "$", "-", ".", "SPACE", "TAB", "é", "]", "^", "1"])


def serde_of(*types: str, delimiter: str = ",") -> Serde[Row]:
    """A serde of columns with names of one letter."""
    made = [Column(name, parse_type(each)) for name, each in zip("ABCDEF", types, strict=False)]
    return DelimitedRows().serde(made, RowOptions(delimiter=delimiter))


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        ("BOOLEAN", "true", True),
        ("BOOLEAN", "TRUE", True),
        ("BOOLEAN", "yes", False),
        ("INT", "-5", -5),
        ("INT", "+5", 5),
        ("INT", '"5"', 5),
        ("INT", '""', None),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("DOUBLE", " 1.5d ", 1.5),
        ("DOUBLE", "4.9E-324", 5e-324),
        ("DOUBLE", "-Infinity", -math.inf),
        ("DECIMAL(4, 2)", "1.5", Decimal("1.50")),
        ("STRING", " x ", " x "),
        ("STRING", 'a "b" c', 'a "b" c'),
        ("STRING", '"a ""b"",\r\nc"', 'a "b",\r\nc'),
        ("STRING", '"a"  ', "a"),
        ("BYTES", "YWI=", b"ab"),
        ("TIME", "5", 5),
        ("DATE", "-1", -1),
        ("TIMESTAMP", "-1", -1),
    ],
)
def test_fields_are_read_as_their_column_wants(data_type: str, text: str, value: object) -> None:
    assert exactly(serde_of(data_type).deserialize("t", text.encode())) == exactly((value,))
    serde = serde_of("STRING", data_type, "INT")
    assert exactly(serde.deserialize("t", f"x,{text},".encode())) == exactly(("x", value, None))


@pytest.mark.parametrize(
    ("data_type", "text", "reason"),
    [
        ("INT", "", "$: there are no fields"),
        ("INT", "\n\r\n", "$: there are no fields"),
        ("INT", "1,2", "$: 2 fields for 1 columns"),
        ("INT", "1,", "$: 2 fields for 1 columns"),
        ("INT", "2147483648", "$.A: the number is out of range"),
        ("INT", " 1", "$.A: the string is not an integer"),
        ("INT", "1.0", "$.A: the string is not an integer"),
        ("DOUBLE", "x", "$.A: the string is not a number"),
        ("DECIMAL(4, 2)", "1.555", "$.A: the number does not fit DECIMAL(4, 2) without rounding"),
        ("BYTES", "*", "$.A: the string is not base64"),
        ("TIME", "-1", "$.A: the number is out of range"),
        ("STRING", '"x', "$: a quote is not closed"),
        ("STRING", '"x""', "$: a quote is not closed"),
        ("STRING", '"x"y', "$: there are characters between a closing quote and the delimiter"),
    ],
)
def test_wrong_fields_are_refused(data_type: str, text: str, reason: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde_of(data_type).deserialize("t", text.encode())
    assert caught.value.message == f"cannot decode as DELIMITED: {reason}"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a,b", ["a", "b"]),
        (",", ["", ""]),
        ("\n\na,b\nc", ["a", "b"]),
        ("a\r\nb", ["a"]),
        ('"a\nb","c"\r', ["a\nb", "c"]),
        ('"", x"y,"z" \t,', ["", ' x"y', "z", ""]),
    ],
)
def test_only_the_first_line_that_is_not_blank_counts(text: str, fields: list[str]) -> None:
    assert first_record(text, ",") == fields


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("a", "b"), "a,b"),
        ((None, None), ","),
        (("", ""), '"",'),
        (("é", "é"), '"é",é'),
        (("-1", "-1"), '"-1",-1'),
        (("_", "_"), '"_",_'),
        (("a b", " a"), 'a b," a"'),
        (("a ", "a\t"), '"a ","a\t"'),
        (("a", "#b"), 'a,"#b"'),
        (("a", "$b"), "a,$b"),
        (("a", "!"), 'a,"!"'),
        (("a,b", "a\nb"), '"a,b","a\nb"'),
        (('a"b', "\r"), '"a""b","\r"'),
    ],
)
def test_fields_are_quoted_when_they_could_be_misread(row: Row, line: str) -> None:
    assert serde_of("STRING", "STRING").serialize("t", row) == line.encode()


@pytest.mark.parametrize(
    ("data_type", "value", "line"),
    [
        ("INT", 5, "5"),
        ("INT", -5, '"-5"'),
        ("DOUBLE", 1e10, "1.0E10"),
        ("DOUBLE", 3, "3.0"),
        ("BOOLEAN", True, "true"),
        ("DECIMAL(4, 2)", Decimal("1.50"), "1.50"),
        ("DECIMAL(12, 10)", Decimal("0E-10"), "0.0000000000"),
        ("BYTES", b"ab", "YWI="),
        ("TIMESTAMP", 1, "1"),
    ],
)
def test_values_are_written_as_java_does(data_type: str, value: object, line: str) -> None:
    assert serde_of(data_type).serialize("t", (value,)) == line.encode()


@pytest.mark.parametrize(
    ("data_type", "row", "reason"),
    [
        ("INT", ("1",), "$.A: str is not INTEGER"),
        ("INT", (2**31,), "$.A: the number is out of range"),
        ("INT", (True,), "$.A: bool is not INTEGER"),
        ("BOOLEAN", (1,), "$.A: int is not BOOLEAN"),
        ("DOUBLE", ("1",), "$.A: str is not DOUBLE"),
        ("DOUBLE", (10**400,), "$.A: the number is too large for DOUBLE"),
        ("STRING", (1,), "$.A: int is not STRING"),
        ("BYTES", ("a",), "$.A: str is not BYTES"),
        ("DECIMAL(2, 1)", (1.5,), "$.A: float is not DECIMAL"),
        ("INT", (1, 2), "$: 2 values for 1 columns"),
    ],
)
def test_values_of_another_type_are_not_written(data_type: str, row: Row, reason: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde_of(data_type).serialize("t", row)
    assert caught.value.message == f"cannot encode as DELIMITED: {reason}"


def test_broken_texts_are_not_written() -> None:
    with pytest.raises(SerdeError, match="cannot encode as DELIMITED"):
        serde_of("STRING").serialize("t", ("\ud800",))


def test_null_records_stay_null() -> None:
    assert serde_of("INT").serialize("t", None) is None
    assert serde_of("INT").deserialize("t", None) is None


def test_keys_without_columns_are_null() -> None:
    serde = DelimitedRows().serde([], RowOptions(is_key=True))
    assert serde.serialize("t", ()) is None
    assert serde.deserialize("t", b"anything") is None


def test_delimiters_are_single_characters_or_have_names() -> None:
    assert [delimiter_of(text) for text in ("|", "SPACE", "tab")] == ["|", " ", "\t"]
    for text in ("", "<~>", '"', "\n", "\r"):
        with pytest.raises(SchemaError, match="is not a valid delimiter"):
            delimiter_of(text)


@pytest.mark.parametrize("data_type", [ArrayType(INT), MapType(STRING, INT), StructType(())])
def test_compound_columns_are_refused(data_type: ArrayType | MapType | StructType) -> None:
    with pytest.raises(SchemaError, match=r"does not support type (ARRAY|MAP|STRUCT)") as caught:
        DelimitedRows().serde([Column("A", INT), Column("B", data_type)], RowOptions())
    assert caught.value.at == 'column "B"'


@pytest.mark.slow
@given(columns_and_rows(columns(scalar_types(), count_min=2)), DELIMITERS)
def test_rows_come_back_from_their_line(
    made: tuple[tuple[Column, ...], Row], delimiter: str
) -> None:
    given_columns, row = made
    serde = DelimitedRows().serde(given_columns, RowOptions(delimiter=delimiter))
    # An empty field is null, so what is empty comes back as null.
    expected = tuple(None if value in ("", b"") else value for value in row)
    assert exactly(serde.deserialize("t", serde.serialize("t", row))) == exactly(expected)


@pytest.mark.slow
@given(columns(scalar_types()), st.binary() | st.text('a1",\r\n ').map(str.encode))
def test_any_bytes_are_a_row_or_an_error(made: tuple[Column, ...], data: bytes) -> None:
    try:
        row = DelimitedRows().serde(made, RowOptions()).deserialize("t", data)
    except SerdeError:
        return
    assert row is not None
    assert len(row) == len(made)
