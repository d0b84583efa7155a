"""Rows in stores: every value of every type comes back as it was."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SerdeError
from broker.serde import BindableSerde
from sql.backends.native.rows import key_serde, stored_rows, value_serde
from sql.catalog import FormatInfo, WindowInfo
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.syntax.queries import WindowKind
from streams.record import Windowed

PRIMITIVES: dict[DataType, st.SearchStrategy[object]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(),
    BYTES: st.binary(),
    DecimalType(9, 3): st.decimals(-999_999, 999_999, places=3),
    Primitive.DATE: st.integers(-(2**31), 2**31 - 1),
}


def types() -> st.SearchStrategy[DataType]:
    names = st.text(min_size=1, max_size=4)
    return st.recursive(
        st.sampled_from(list(PRIMITIVES)),
        lambda inner: st.one_of(
            inner.map(ArrayType),
            st.builds(MapType, st.sampled_from([STRING, INT]), inner),
            st.dictionaries(names, inner, min_size=1, max_size=3).map(
                lambda fields: StructType(tuple(Field(*each) for each in fields.items()))
            ),
        ),
        max_leaves=4,
    )


def values(type_: DataType) -> st.SearchStrategy[object]:
    match type_:
        case ArrayType(element=element):
            found: st.SearchStrategy[object] = st.lists(values(element), max_size=3)
        case MapType(key=key, value=value):
            found = st.dictionaries(PRIMITIVES[key], values(value), max_size=3)
        case StructType(fields=fields):
            found = st.fixed_dictionaries({each.name: values(each.type) for each in fields})
        case _:
            found = PRIMITIVES[type_]
    return st.none() | found


@given(st.data())
def test_stored_rows_come_back_as_they_were(data: st.DataObject) -> None:
    columns = [
        Column(f"C{n}", each) for n, each in enumerate(data.draw(st.lists(types(), max_size=3)))
    ]
    row = tuple(data.draw(values(each.type)) for each in columns)
    serde = stored_rows(columns)
    assert serde.deserialize("t", serde.serialize("t", row)) == row


def test_what_is_no_number_stays_so() -> None:
    serde = stored_rows([Column("D", DOUBLE)])
    found = serde.deserialize("t", serde.serialize("t", (math.nan,)))
    assert found is not None
    assert isinstance(found[0], float)
    assert math.isnan(found[0])


@given(st.binary(max_size=30))
def test_bytes_that_are_no_row_are_refused(data: bytes) -> None:
    serde = stored_rows([Column("A", INT), Column("B", MapType(STRING, DecimalType(4, 2)))])
    try:
        row = serde.deserialize("t", data)
    except SerdeError:
        return
    assert row is not None
    assert len(row) == 2


def test_a_row_that_cannot_be_stored_says_so() -> None:
    with pytest.raises(SerdeError, match="stored row"):
        stored_rows([Column("A", INT)]).serialize("t", (2**80,))


def test_null_is_null_both_ways() -> None:
    columns = (Column("A", INT),)
    for serde in (stored_rows(columns), value_serde(FormatInfo("JSON"), columns, None)):
        assert serde.serialize("t", None) is None
        assert serde.deserialize("t", None) is None


@pytest.mark.parametrize("name", ["KAFKA", "JSON", "DELIMITED"])
def test_a_key_of_one_null_column_is_no_key(name: str) -> None:
    serde = key_serde(FormatInfo(name, wrapped=False), (Column("K", INT),), None)
    assert serde.serialize("t", (None,)) is None
    assert serde.deserialize("t", None) is None
    assert serde.deserialize("t", serde.serialize("t", (7,))) == (7,)


def test_a_source_without_key_columns_reads_and_writes_none() -> None:
    serde = key_serde(FormatInfo("KAFKA"), (), None)
    assert serde.serialize("t", ()) is None
    assert serde.deserialize("t", b"anything") is None


@pytest.mark.parametrize(
    ("window", "size"),
    [
        (WindowInfo(WindowKind.TUMBLING, 10), 8),
        (WindowInfo(WindowKind.HOPPING, 10), 8),
        (WindowInfo(WindowKind.SESSION, None), 16),
    ],
)
def test_keys_have_their_windows_behind_them(window: WindowInfo, size: int) -> None:
    serde = key_serde(FormatInfo("KAFKA"), (Column("K", INT),), None, window)
    key = Windowed((7,), 20, 30)
    data = serde.serialize("t", key)
    assert data is not None
    assert len(data) == 4 + size
    assert serde.deserialize("t", data) == key


@pytest.mark.parametrize("name", ["KAFKA", "JSON", "DELIMITED"])
@pytest.mark.parametrize(("type_", "value"), [(INT, 7), (STRING, "seven"), (DOUBLE, 7.5)])
def test_keys_that_are_bound_to_a_topic_are_the_same(
    name: str, type_: DataType, value: object
) -> None:
    serde = key_serde(FormatInfo(name), [Column("K", type_)], None)
    assert isinstance(serde, BindableSerde)
    encode, decode = serde.encoder("topic"), serde.decoder("topic")
    for row in ((value,), (None,)):
        raw = encode(row)
        assert raw == serde.serialize("topic", row)
        assert raw is None or decode(raw) == serde.deserialize("topic", raw) == row
    for data in (b"", b"null", b"\xff\xff"):
        assert result(decode, data) == result(lambda raw: serde.deserialize("topic", raw), data)
    for wrong in ((value, 1), (), (object(),)):
        with pytest.raises(Exception):  # noqa: B017, PT011 - of whatever kind
            encode(wrong)


def result(decode: Callable[[bytes], object], data: bytes) -> object:
    """What bytes are decoded to, or that they cannot be."""
    try:
        return decode(data)
    except Exception:
        return Exception


LAYOUTS = (
    (Column("A", INT), Column("ROWTIME", BIGINT)),
    (Column("A", INT), Column("B", STRING), Column("ROWTIME", BIGINT)),
    (Column("A", INT), Column("B", STRING), Column("C", BYTES), Column("ROWTIME", BIGINT)),
)


def test_rows_of_earlier_versions_have_nulls_for_columns_that_came_later() -> None:
    first, second = stored_rows(LAYOUTS[0]), stored_rows(LAYOUTS[1], LAYOUTS[:1])
    third = stored_rows(LAYOUTS[2], LAYOUTS[:2])
    written = {
        first.serialize("t", (1, 7)): (1, None, None, 7),
        second.serialize("t", (2, "b", 8)): (2, "b", None, 8),
        third.serialize("t", (3, "b", b"c", 9)): (3, "b", b"c", 9),
    }
    assert isinstance(third, BindableSerde)
    for data, row in written.items():
        assert data is not None
        assert third.deserialize("t", data) == row
        assert third.decoder("t")(data) == row
    assert third.encoder("t")((3, "b", b"c", 9)) == third.serialize("t", (3, "b", b"c", 9))
    assert third.serialize("t", None) is None
    assert third.deserialize("t", None) is None


def test_rows_without_a_version_are_known_by_their_length() -> None:
    third = stored_rows(LAYOUTS[2], LAYOUTS[:2])
    rows: list[tuple[object, ...]] = [(1, 7), (2, "b", 8), (3, "b", b"c", 9)]
    read = [
        third.deserialize("t", stored_rows(layout).serialize("t", row))
        for layout, row in zip(LAYOUTS, rows, strict=True)
    ]
    assert read == [(1, None, None, 7), (2, "b", None, 8), (3, "b", b"c", 9)]


def test_rows_of_many_columns_are_known_by_their_length_too() -> None:
    wide = tuple(Column(f"C{n}", INT) for n in range(400))
    for count in (15, 16, 399):
        serde = stored_rows(wide, [wide[:count]])
        data = stored_rows(wide[:count]).serialize("t", tuple(range(count)))
        row = serde.deserialize("t", data)
        assert row is not None
        assert row[:count] == tuple(range(count))
        assert row[count:] == (None,) * (len(wide) - count)


def test_columns_that_moved_or_went_away_are_found_by_their_names() -> None:
    earlier = (Column("A", INT), Column("B", STRING))
    serde = stored_rows((Column("B", STRING),), [earlier])
    assert serde.deserialize("t", stored_rows(earlier).serialize("t", (1, "b"))) == ("b",)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\xc1\x00\x09\x90", b"\x01", b"\xdc\x00", b"\x91\x01"]
)
def test_bytes_that_are_no_row_of_any_version_are_refused(data: bytes) -> None:
    with pytest.raises(SerdeError):
        stored_rows(LAYOUTS[2], LAYOUTS[:2]).deserialize("t", data)
