"""Rows as JSON."""

import math
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde.serde import Serde
from sql.datatypes import BOOLEAN, DOUBLE, INT, STRING, Column, MapType
from sql.rows.json_decoding import LEARNING_MAX
from sql.rows.json_rows import JsonRows
from sql.rows.row_format import Row, RowOptions
from tests.support.columns import columns, columns_and_rows, data_types, exactly, rows_of
from tests.support.type_text import parse_type

ANY_NAMES = st.text(max_size=4)
UNUSUAL_COLUMNS = columns(data_types(names=ANY_NAMES), names=ANY_NAMES)


def serde_of(*types: str, names: Sequence[str] = "ABCDEFGH", wrapped: bool = True) -> Serde[Row]:
    """A serde of columns with names of one letter."""
    made = [Column(name, parse_type(each)) for name, each in zip(names, types, strict=False)]
    return JsonRows().serde(made, RowOptions(wrapped=wrapped))


READ = [
    ("BOOLEAN", "true", True),
    ("BOOLEAN", "null", None),
    ("INT", "41", 41),
    ("INT", "41.9", 41),
    ("INT", "-41.9", -41),
    ("INT", "4.1e1", 41),
    ("INT", '"41"', 41),
    ("INT", '"+41"', 41),
    ("BIGINT", "9223372036854775807", 2**63 - 1),
    ("BIGINT", "-9223372036854775808", -(2**63)),
    ("BIGINT", "1E3", 1000),
    ("BIGINT", '"-7"', -7),
    ("DOUBLE", "42", 42.0),
    ("DOUBLE", "1.5", 1.5),
    ("DOUBLE", '" 1.5 "', 1.5),
    ("DOUBLE", '"-Infinity"', -math.inf),
    ("DOUBLE", "1e400", math.inf),
    ("DOUBLE", "1" + "0" * 400, math.inf),
    ("DECIMAL(4, 2)", "1.1", Decimal("1.10")),
    ("DECIMAL(4, 2)", "1", Decimal("1.00")),
    ("DECIMAL(4, 2)", "1E1", Decimal("10.00")),
    ("DECIMAL(4, 2)", '"-1.10"', Decimal("-1.10")),
    ("DECIMAL(20, 19)", "1.1234512345123451234", Decimal("1.1234512345123451234")),
    ("DECIMAL(30, 0)", "123456789012345678901234567890", Decimal("123456789012345678901234567890")),
    ("STRING", '"x"', "x"),
    ("STRING", "true", "true"),
    ("STRING", "42", "42"),
    ("STRING", "42.000", "42.000"),
    ("STRING", "-0.0", "0.0"),
    ("STRING", "1E10", "1E+10"),
    ("STRING", "12345678901234567890123", "12345678901234567890123"),
    ("STRING", '{"b": {"a": 1.50}, "é": [null]}', '{"b":{"a":1.50},"é":[null]}'),
    ("STRING", '["a", 1.0, null, [true]]', "[a, 1.0, null, [true]]"),
    ("BYTES", '"YWI="', b"ab"),
    ("BYTES", '"YW\\nI="', b"ab"),
    ("TIME", "86399999", 86_399_999),
    ("TIME", '"5"', 5),
    ("DATE", "-1", -1),
    ("TIMESTAMP", "-1", -1),
    ("TIMESTAMP", '"1700000000000"', 1_700_000_000_000),
    ("ARRAY<BIGINT>", '[42, 42.0, "42", null]', [42, 42, 42, None]),
    ("ARRAY<DECIMAL(2, 1)>", "[1, 2.5]", [Decimal("1.0"), Decimal("2.5")]),
    ("MAP<STRING, INT>", '{"a": 1, "b": null, "A": "2"}', {"a": 1, "b": None, "A": 2}),
    (
        "STRUCT<X INT, `y` STRING, Z DOUBLE>",
        '{"x": 1, "Y": "no", "other": 1}',
        {"X": 1, "y": None, "Z": None},
    ),
    ("ARRAY<STRUCT<X INT>>", '[{"x": 1}, null, {}]', [{"X": 1}, None, {"X": None}]),
]


@pytest.mark.parametrize(("data_type", "text", "value"), READ)
def test_values_are_coerced_to_the_type_of_their_column(
    data_type: str, text: str, value: object
) -> None:
    alone = serde_of(data_type, wrapped=False)
    assert repr(alone.deserialize("t", text.encode())) == repr((value,))
    wrapped = serde_of(data_type)
    for name in ("A", "a", "A"):
        data = f'{{"{name}": {text}}}'.encode()
        assert repr(wrapped.deserialize("t", data)) == repr((value,))


REFUSED = [
    ("BOOLEAN", '"true"', "$.A: a string is not BOOLEAN"),
    ("BOOLEAN", "1", "$.A: a number is not BOOLEAN"),
    ("INT", "true", "$.A: a boolean is not INTEGER"),
    ("INT", "2147483648", "$.A: the number is out of range"),
    ("INT", "1e999999999", "$.A: the number is out of range"),
    ("INT", '"x"', "$.A: the string is not an integer"),
    ("INT", '"1.0"', "$.A: the string is not an integer"),
    ("INT", "[1]", "$.A: an array is not INTEGER"),
    ("BIGINT", "9223372036854775808", "$.A: the number is out of range"),
    ("BIGINT", "18446744073709551616", "$.A: the number is out of range"),
    ("BIGINT", '"-9223372036854775809"', "$.A: the number is out of range"),
    ("DOUBLE", "false", "$.A: a boolean is not DOUBLE"),
    ("DOUBLE", '"inf"', "$.A: the string is not a number"),
    ("DECIMAL(4, 1)", "1.12", "$.A: the number does not fit DECIMAL(4, 1) without rounding"),
    ("DECIMAL(4, 1)", "1000", "$.A: the number does not fit DECIMAL(4, 1) because it is too large"),
    ("DECIMAL(4, 1)", '"NaN"', "$.A: the string is not a number"),
    ("DECIMAL(4, 1)", '" 1"', "$.A: the string is not a number"),
    ("DECIMAL(4, 1)", "true", "$.A: a boolean is not DECIMAL(4, 1)"),
    ("BYTES", '"abc"', "$.A: the string is not base64"),
    ("BYTES", "1", "$.A: a number is not BYTES"),
    ("TIME", "-1", "$.A: the number is out of range"),
    ("TIME", "86400001", "$.A: the number is out of range"),
    ("ARRAY<INT>", "{}", "$.A: an object is not ARRAY<INTEGER>"),
    ("ARRAY<INT>", '[0, "secret"]', "$.A[1]: the string is not an integer"),
    ("MAP<STRING, INT>", "[]", "$.A: an array is not MAP<STRING, INTEGER>"),
    ("MAP<STRING, ARRAY<INT>>", '{"k": [null, true]}', "$.A.k[1]: a boolean is not INTEGER"),
    ("STRUCT<X STRUCT<Y INT>>", '{"X": {"y": {}}}', "$.A.X.Y: an object is not INTEGER"),
    ("STRUCT<X INT>", '"x"', "$.A: a string is not STRUCT<`X` INTEGER>"),
]


@pytest.mark.parametrize(("data_type", "text", "reason"), REFUSED)
def test_wrong_values_are_refused_with_their_path(data_type: str, text: str, reason: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde_of(data_type).deserialize("t", f'{{"A": {text}}}'.encode())
    assert caught.value.message == f"cannot decode as JSON: {reason}"
    with pytest.raises(SerdeError) as caught:
        serde_of(data_type, wrapped=False).deserialize("t", text.encode())
    assert caught.value.message == f"cannot decode as JSON: {reason.replace('$.A', '$')}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b'"A"',
        b'{"A": 1} x',
        b'{"A": NaN}',
        b"\xff",
        b'{"A": "\xff"}',
        b'{"A": 1e99999999999999999999}',
        b"[" * 100_000,
        b'{"A":' * 100_000,
        b'{"A":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(SerdeError):
        serde_of("INT").deserialize("t", data)
    with pytest.raises(SerdeError):
        serde_of("DECIMAL(2, 1)", "STRUCT<A INT>").deserialize("t", data)


def test_a_text_of_arrays_without_end_is_refused_or_read() -> None:
    deep = b'{"A":' + b"[" * 900 + b"]" * 900 + b"}"
    with suppress(SerdeError):
        assert serde_of("STRING").deserialize("t", deep) == ("[" * 900 + "]" * 900,)


def test_ignored_fields_must_be_json_too() -> None:
    serde = serde_of("INT")
    for _ in range(2):
        assert serde.deserialize("t", b'{"a": 1, "x": 1.5, "y": "y"}') == (1,)
        assert serde.deserialize("t", b'{"a": 1, "x": 1e400}') == (1,)
        for wrong in (b"nul", b'"\xff"', b'"\\ud800"', b"1e99999999999999999999", b"[" * 5000):
            with pytest.raises(SerdeError):
                serde.deserialize("t", b'{"a": 1, "x": ' + wrong + b"}")


def test_null_is_a_null_record_or_the_null_of_a_single_column() -> None:
    assert serde_of("INT").deserialize("t", b"null") is None
    assert serde_of("INT").deserialize("t", None) is None
    assert serde_of("INT", wrapped=False).deserialize("t", b"null") == (None,)
    assert serde_of("STRUCT<X INT>", wrapped=False).deserialize("t", b"null") == (None,)
    assert serde_of("INT").serialize("t", None) is None
    assert serde_of("INT").serialize("t", (None,)) == b'{"A":null}'
    assert serde_of("INT", wrapped=False).serialize("t", (None,)) is None


def test_a_single_key_column_is_never_wrapped() -> None:
    key = RowOptions(is_key=True)
    assert JsonRows().serde([Column("A", INT)], key).serialize("t", (1,)) == b"1"
    two = JsonRows().serde([Column("A", INT), Column("B", INT)], key)
    assert two.serialize("t", (1, 2)) == b'{"A":1,"B":2}'
    none = JsonRows().serde([], key)
    assert none.serialize("t", ()) is None
    assert none.deserialize("t", b"anything") is None


def test_values_without_columns_are_empty_objects() -> None:
    serde = JsonRows().serde([], RowOptions())
    assert serde.serialize("t", ()) == b"{}"
    assert serde.deserialize("t", b'{"a": 1}') == ()


@pytest.mark.parametrize(
    ("names", "text", "row"),
    [
        ("AB", '{"A": 1, "B": 2}', (1, 2)),
        ("AB", '{"b": 2, "a": 1}', (1, 2)),
        ("AB", '{"a": 1, "A": 3}', (3, None)),
        ("AB", '{"A": null, "a": 3}', (None, None)),
        ("A", '{"A": 1, "A": 2}', (2,)),
        ("ab", '{"A": 1, "b": 2}', (None, 2)),
        ("Aa", '{"a": 1}', (1, 1)),
        ("Aa", '{"A": 1}', (1, None)),
        ("É", '{"é": 1}', (1,)),
        ('"', '{"\\"": 1}', (1,)),
        ("A", '{"x": {"A": 2}, "": [], "a": 1, "\\"": 1}', (1,)),
    ],
)
def test_fields_are_found_by_exact_name_then_by_upper_case(names: str, text: str, row: Row) -> None:
    serde = serde_of("INT", "INT", names=names)
    for _ in range(3):  # what was learned from the first record must not change the others
        assert serde.deserialize("t", text.encode()) == row


def test_among_several_spellings_the_last_one_counts() -> None:
    serde = serde_of("INT", names=["AB"])
    for _ in range(3):
        assert serde.deserialize("t", b'{"ab": 1, "aB": 2, "Ab": 3}') == (3,)
        assert serde.deserialize("t", b'{"Ab": 3, "aB": 2}') == (2,)
        assert serde.deserialize("t", b'{"Ab": 3}') == (3,)


KEYS = st.sampled_from(["AB", "ab", "aB", "Ab", "C", "c", "x", "y"])


@pytest.mark.slow
@given(st.lists(st.dictionaries(KEYS, st.integers(0, 9) | st.none()), max_size=3 * LEARNING_MAX))
def test_records_do_not_depend_on_those_before(records: list[dict[str, int | None]]) -> None:
    old = serde_of("INT", "INT", names=["AB", "C"])
    for record in records:
        data = orjson.dumps(record)
        new = serde_of("INT", "INT", names=["AB", "C"])
        assert old.deserialize("t", data) == new.deserialize("t", data)
        assert old.deserialize("t", data) == tuple(spelled(record, name) for name in ("AB", "C"))


def spelled(record: dict[str, int | None], name: str) -> int | None:
    """What ksqlDB finds for a column in an object."""
    if name in record:
        return record[name]
    return {key.upper(): value for key, value in record.items()}.get(name)


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        ("DOUBLE", 12.5, "12.5"),
        ("DOUBLE", 1e10, "1.0E10"),
        ("DOUBLE", -0.5, "-0.5"),
        ("DOUBLE", 7, "7.0"),
        ("DOUBLE", math.nan, '"NaN"'),
        ("DOUBLE", -math.inf, '"-Infinity"'),
        ("DECIMAL(12, 10)", Decimal("0E-10"), "0.0000000000"),
        ("DECIMAL(4, 2)", Decimal("1.5"), "1.5"),
        ("BYTES", b"ab", '"YWI="'),
        ("STRING", 'é"\n\u2028', '"é\\"\\n\u2028"'),
        ("BOOLEAN", False, "false"),
        ("TIMESTAMP", -1, "-1"),
        ("ARRAY<DOUBLE>", [1e10, None], "[1.0E10,null]"),
        ("MAP<STRING, BYTES>", {"k": b"a"}, '{"k":"YQ=="}'),
        ("MAP<STRING, INT>", {None: 1}, '{"null":1}'),
        ("STRUCT<X INT, Y DECIMAL(2, 1)>", {"Y": Decimal("1.0")}, '{"X":null,"Y":1.0}'),
    ],
)
def test_values_are_written_as_java_does(data_type: str, value: object, text: str) -> None:
    assert serde_of(data_type).serialize("t", (value,)) == f'{{"A":{text}}}'.encode()
    assert serde_of(data_type, wrapped=False).serialize("t", (value,)) == text.encode()


@pytest.mark.parametrize(
    ("data_type", "value", "reason"),
    [
        ("INT", 2**31, "$.A: the number is out of the range of INTEGER"),
        ("INT", True, "$.A: bool is not INTEGER"),
        ("INT", "1", "$.A: str is not INTEGER"),
        ("BIGINT", 2**63, "$.A: the number is out of the range of BIGINT"),
        ("BOOLEAN", 1, "$.A: int is not BOOLEAN"),
        ("DOUBLE", "1", "$.A: str is not DOUBLE"),
        ("DOUBLE", 10**400, "$.A: the number is too large for DOUBLE"),
        ("STRING", 1, "$.A: int is not STRING"),
        ("BYTES", "a", "$.A: str is not BYTES"),
        ("DECIMAL(2, 1)", 1.5, "$.A: float is not DECIMAL"),
        ("DECIMAL(2, 1)", Decimal("NaN"), "$.A: the number cannot be written with plain digits"),
        ("ARRAY<INT>", [1, "x"], "$.A[1]: str is not INTEGER"),
        ("ARRAY<INT>", (), "$.A: tuple is not ARRAY<INTEGER>"),
        ("MAP<STRING, INT>", {1: 1}, "$.A: int is not a key of a MAP in JSON"),
        ("MAP<STRING, INT>", {"k": []}, "$.A.k: list is not INTEGER"),
        ("STRUCT<X INT>", {"X": "x"}, "$.A.X: str is not INTEGER"),
        ("STRUCT<X INT>", [], "$.A: list is not STRUCT<`X` INTEGER>"),
    ],
)
def test_values_of_another_type_are_not_written(data_type: str, value: object, reason: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde_of(data_type).serialize("t", (value,))
    assert caught.value.message == f"cannot encode as JSON: {reason}"


def test_rows_of_another_length_and_broken_texts_are_not_written() -> None:
    for row in ((), (1, "x", 1), (1, "\ud800"), 5):
        with pytest.raises(SerdeError, match="cannot encode as JSON"):
            serde_of("INT", "STRING").serialize("t", row)  # type: ignore[arg-type]


def test_maps_need_keys_of_text() -> None:
    column = Column("A", MapType(INT, STRING))
    with pytest.raises(SchemaError, match="only maps with keys of type STRING"):
        JsonRows().serde([Column("B", BOOLEAN), column], RowOptions())


@pytest.mark.slow
@given(columns_and_rows())
def test_rows_come_back_from_their_json(made: tuple[tuple[Column, ...], Row]) -> None:
    given_columns, row = made
    serde = JsonRows().serde(given_columns, RowOptions())
    data = serde.serialize("t", row)
    assert data is not None
    assert exactly(serde.deserialize("t", data)) == exactly(row)
    lower = {key.lower(): value for key, value in orjson.loads(data).items()}
    assert list(lower) == [each.name.lower() for each in given_columns]


@pytest.mark.slow
@given(UNUSUAL_COLUMNS.flatmap(lambda each: st.tuples(st.just(each), rows_of(each))))
def test_any_name_can_be_a_column(made: tuple[tuple[Column, ...], Row]) -> None:
    given_columns, row = made
    serde = JsonRows().serde(given_columns, RowOptions())
    assert exactly(serde.deserialize("t", serde.serialize("t", row))) == exactly(row)


@pytest.mark.slow
@given(columns_and_rows(columns(count_max=1)))
def test_single_values_come_back_from_their_json(made: tuple[tuple[Column, ...], Row]) -> None:
    given_columns, row = made
    serde = JsonRows().serde(given_columns, RowOptions(wrapped=False))
    data = serde.serialize("t", row)
    if row == (None,):
        assert data is None
    else:
        assert exactly(serde.deserialize("t", data)) == exactly(row)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.sampled_from("ABcd"), parts),
)


@pytest.mark.slow
@given(columns(names=st.sampled_from("ABCD")), JSON_VALUES.map(repr), st.binary(), st.booleans())
def test_any_bytes_are_a_row_or_an_error(
    made: tuple[Column, ...], text: str, noise: bytes, wrapped: bool
) -> None:
    serde = JsonRows().serde(made, RowOptions(wrapped=wrapped))
    json = text.replace("'", '"').replace("None", "null").replace("True", "true").encode()
    for data in (noise, json, json[: len(json) // 2], b'{"A":' + json + b',"b":' + json + b"}"):
        try:
            row = serde.deserialize("t", data)
        except SerdeError:
            continue
        assert row is None or len(row) == len(made)


def test_doubles_that_are_read_lose_nothing() -> None:
    serde = JsonRows().serde([Column("A", DOUBLE)], RowOptions())
    assert serde.deserialize("t", b'{"A": 0.1}') == (0.1,)
    assert serde.deserialize("t", b'{"A": 9007199254740993}') == (9007199254740992.0,)
