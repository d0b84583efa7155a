"""Schemas, structs and what fits them."""

import datetime
from decimal import Decimal

import pytest

from connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Field,
    Struct,
    Type,
    array,
    date,
    decimal,
    map_of,
    schema_of,
    struct,
    time,
    timestamp,
    validate,
)
from connect.errors import DataError

NOON = datetime.datetime(2024, 5, 17, 12, 0, tzinfo=datetime.UTC)
POINT = struct("point", {"x": INT32, "y": INT32.with_(default=7), "label": OPTIONAL_STRING})

FITTING: list[tuple[ConnectSchema, object]] = [
    (INT8, -128),
    (INT8, 127),
    (INT16, -(2**15)),
    (INT32, 2**31 - 1),
    (INT64, -(2**63)),
    (FLOAT32, 1.5),
    (FLOAT64, float("inf")),
    (BOOLEAN, True),
    (STRING, "größe"),
    (BYTES, b"\x00"),
    (BYTES, bytearray(b"\x00")),
    (array(INT32), [1, 2]),
    (array(OPTIONAL_INT32), [1, None]),
    (map_of(STRING, INT32), {"a": 1}),
    (POINT, Struct.from_dict(POINT, {"x": 1})),
    (decimal(2), Decimal("1.25")),
    (date(), datetime.date(2024, 5, 17)),
    (time(), datetime.time(12, 30)),
    (timestamp(), NOON),
    (OPTIONAL_STRING, None),
]


@pytest.mark.parametrize(("schema", "value"), FITTING)
def test_a_value_of_the_right_kind_fits(schema: ConnectSchema, value: object) -> None:
    validate(schema, value)


MISFITS: list[tuple[ConnectSchema, object, str]] = [
    (INT8, 128, "schema with type INT8: int for value"),
    (INT16, 2**15, "schema with type INT16: int for value"),
    (INT32, 2**31, "schema with type INT32: int for value"),
    (INT64, 2**63, "schema with type INT64: int for value"),
    (INT32, True, "schema with type INT32: bool for value"),
    (INT32, "1", "schema with type INT32: str for value"),
    (FLOAT64, 1, "schema with type FLOAT64: int for value"),
    (BOOLEAN, 1, "schema with type BOOLEAN: int for value"),
    (STRING, b"a", "schema with type STRING: bytes for value"),
    (BYTES, "a", "schema with type BYTES: str for value"),
    (array(INT32), (1,), "schema with type ARRAY: tuple for value"),
    (array(INT32), ["a"], "schema with type INT32: str for element of array value"),
    (map_of(STRING, INT32), {1: 1}, "schema with type STRING: int for key of map value"),
    (map_of(STRING, INT32), {"a": "b"}, "schema with type INT32: str for value of map value"),
    (POINT, {"x": 1}, 'schema "point" with type STRUCT: dict for value'),
    (decimal(2), 1.25, 'schema "org.apache.kafka.connect.data.Decimal" with type BYTES: float'),
    (date(), NOON, 'schema "org.apache.kafka.connect.data.Date" with type INT32: datetime'),
    (time(), NOON, 'schema "org.apache.kafka.connect.data.Time" with type INT32: datetime'),
    (timestamp(), NOON.replace(tzinfo=None), "Timestamp"),
    (timestamp(), NOON.date(), "Timestamp"),
]


@pytest.mark.parametrize(("schema", "value", "words"), MISFITS)
def test_a_value_of_another_kind_is_refused_as_kafka_words_it(
    schema: ConnectSchema, value: object, words: str
) -> None:
    with pytest.raises(DataError) as failed:
        validate(schema, value)
    assert failed.value.message.startswith("Invalid Python object for schema")
    assert words in failed.value.message


def test_null_is_refused_where_it_is_not_optional() -> None:
    with pytest.raises(DataError, match=r"^Invalid value: null used for required value, schema"):
        validate(INT32, None)
    with pytest.raises(DataError, match="null used for required element of array value, schema"):
        validate(array(INT32), [None])


def test_a_number_that_is_too_large_says_so() -> None:
    with pytest.raises(DataError, match="hint: 300 is out of range for 8 bits"):
        validate(INT8, 300)


def test_a_struct_takes_values_by_name_and_gives_defaults() -> None:
    point = Struct(POINT).put("x", 1)
    assert (point["x"], point["y"], point["label"]) == (1, 7, None)
    assert point.get("y", with_default=False) is None
    assert point.to_dict() == {"x": 1, "y": 7, "label": None}
    assert repr(point) == "Struct{x=1}"
    point.validate()


def test_a_struct_refuses_names_it_does_not_have_and_says_which_it_has() -> None:
    point = Struct(POINT)
    words = r"^z is not a valid field name\n  hint: the fields are x, y, label$"
    with pytest.raises(DataError, match=words):
        point["z"]
    with pytest.raises(DataError, match=words):
        point.get("z", with_default=False)
    with pytest.raises(DataError, match=words):
        point.put("z", 1)


def test_a_struct_refuses_a_value_that_does_not_fit_the_field() -> None:
    with pytest.raises(DataError, match=r'type INT32: str for field: "x"$'):
        Struct(POINT).put("x", "one")
    with pytest.raises(DataError, match=r'null used for required field: "x", schema type: INT32$'):
        Struct(POINT).validate()


def test_a_struct_of_another_schema_does_not_match() -> None:
    other = struct("other", {"x": INT32})
    with pytest.raises(DataError, match="Struct schemas do not match"):
        validate(POINT, Struct.from_dict(other, {"x": 1}))


def test_a_struct_fits_where_null_is_allowed_too() -> None:
    validate(POINT.as_optional(), Struct.from_dict(POINT, {"x": 1}))


def test_only_a_struct_schema_has_structs() -> None:
    with pytest.raises(DataError, match=r"^Not a struct schema: Schema{INT32}$"):
        Struct(INT32)


def test_structs_are_equal_by_schema_and_values() -> None:
    one = Struct.from_dict(POINT, {"x": 1})
    same = Struct.from_dict(POINT.with_(), {"x": 1})
    assert one == same
    assert one != Struct.from_dict(POINT, {"x": 2})
    assert one != Struct.from_dict(POINT.with_(name="other"), {"x": 1})
    assert one != {"x": 1}


def test_dicts_inside_become_structs_and_dicts_again() -> None:
    schema = struct(
        "line", {"from": POINT, "through": array(POINT), "named": map_of(STRING, POINT)}
    )
    start = {"x": 1, "y": 2, "label": "a"}
    given = {"from": start, "through": [start], "named": {"n": start}}
    line = Struct.from_dict(schema, given)
    assert isinstance(line["from"], Struct)
    assert line.to_dict() == given


def test_schemas_are_equal_by_their_parts() -> None:
    assert decimal(2) == decimal(2)
    assert hash(decimal(2)) == hash(decimal(2))
    assert decimal(2) != decimal(3)
    assert INT32 != OPTIONAL_INT32
    assert INT32.with_(default=1) != INT32
    assert INT32.with_(default=1) != INT32.with_(default=2)
    assert INT32.with_(doc="number") != INT32
    assert INT32.with_(version=2) != INT32
    assert array(INT32) != array(INT64)
    assert struct("a", {"x": INT32, "y": INT32}) != struct("a", {"y": INT32, "x": INT32})
    assert array(INT32).with_(default=[1]) == array(INT32).with_(default=[1])


def test_a_schema_shows_its_name_and_type() -> None:
    assert str(POINT) == "Schema{point:STRUCT}"
    assert str(INT64) == "Schema{INT64}"


def test_fields_are_found_by_name() -> None:
    assert POINT.field("label") == Field("label", OPTIONAL_STRING)
    assert POINT.field("z") is None
    assert POINT.positions == {"x": 0, "y": 1, "label": 2}


def test_schemas_that_cannot_be_are_refused() -> None:
    with pytest.raises(DataError, match="field name duplication x"):
        struct("twice", [Field("x", INT32), Field("x", INT64)])
    with pytest.raises(DataError, match=r"^Invalid default value: Invalid Python object"):
        INT32.with_(default="one")


def test_a_list_whose_elements_have_no_schema_is_empty() -> None:
    validate(ConnectSchema(Type.ARRAY), [])
    with pytest.raises(DataError, match="No schema defined for element of array value"):
        validate(ConnectSchema(Type.ARRAY), [None])


def test_a_struct_has_a_value_for_every_field() -> None:
    with pytest.raises(DataError, match=r"1 values for the 3 fields of Schema{point:STRUCT}"):
        Struct(POINT, [1])


def test_a_struct_may_be_the_default() -> None:
    origin = Struct.from_dict(POINT, {"x": 0})
    assert POINT.with_(default=origin).default == origin


INFERRED: list[tuple[object, ConnectSchema | None]] = [
    (None, None),
    (1, INT64),
    (2**63, None),
    (1.5, FLOAT64),
    (True, BOOLEAN),
    ("a", STRING),
    (b"a", BYTES),
    (Decimal("1.250"), decimal(3)),
    (Decimal("NaN"), None),
    (NOON, timestamp()),
    (NOON.date(), date()),
    (datetime.time(1), time()),
    ([], None),
    ([1, 2], array(INT64)),
    ([1, None], array(INT64.as_optional())),
    ([1, "a"], None),
    ({}, None),
    ({"a": 1}, map_of(STRING, INT64)),
    ({"a": 1, 1: 2}, None),
    (Struct.from_dict(POINT, {"x": 1}), POINT),
    (object(), None),
]


@pytest.mark.parametrize(("value", "schema"), INFERRED)
def test_the_schema_of_a_value_is_inferred(value: object, schema: ConnectSchema | None) -> None:
    assert schema_of(value) == schema
