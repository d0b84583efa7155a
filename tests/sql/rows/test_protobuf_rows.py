"""PROTOBUF and PROTOBUF_NOSR: what comes back, nulls, schemas of others, wrong bytes and values."""

import contextlib
import datetime
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.protobuf_schema import ProtobufSchema
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from broker.serde.wire_format import frame
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.rows.protobuf_rows import PROTOBUF, PROTOBUF_NOSR
from sql.rows.protobuf_values import date_fields
from sql.rows.row_format import Nullable, Row, RowFormat, RowOptions
from tests.support.columns import columns, columns_and_rows
from tests.support.memory_registry import MemoryRegistry
from tests.support.protobuf_types import protobuf_types

OPTIONS = RowOptions()
KEY = RowOptions(is_key=True)
FORMATS = (PROTOBUF, PROTOBUF_NOSR)
Given = tuple[tuple[Column, ...], Row]
ROWS = columns_and_rows(columns(protobuf_types()))

DEFAULTS: dict[Primitive, object] = {
    BOOLEAN: False,
    INT: 0,
    BIGINT: 0,
    DOUBLE: 0.0,
    STRING: "",
    BYTES: b"",
}


def came_back(value: object, data_type: DataType, nullable: Nullable) -> object:
    """What a field's value is after it was written and read."""
    match data_type:
        case Primitive():
            keeps_null = nullable is not Nullable.NONE or data_type not in DEFAULTS
            return DEFAULTS[data_type] if value is None and not keeps_null else value
        case ArrayType(element):
            assert value is None or isinstance(value, list)
            return [came_back_element(each, element, nullable) for each in value or []]
        case MapType(_, inner):
            assert value is None or isinstance(value, dict)
            return {key: came_back(each, inner, nullable) for key, each in (value or {}).items()}
        case StructType(fields) if value is not None:
            assert isinstance(value, dict)
            return {each.name: came_back(value[each.name], each.type, nullable) for each in fields}
        case _:
            return value


def came_back_element(value: object, data_type: DataType, nullable: Nullable) -> object:
    """The same inside an array, where nothing can be null."""
    if value is not None or isinstance(data_type, ArrayType | MapType):
        return came_back(value, data_type, nullable)
    match data_type:
        case Primitive():
            return DEFAULTS.get(data_type, 0)
        case DecimalType(_, scale):
            return Decimal((0, (0,), -scale))
        case StructType(fields):
            return came_back(dict.fromkeys(each.name for each in fields), data_type, nullable)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "nullable"),
    [(PROTOBUF, Nullable.NONE), *((PROTOBUF_NOSR, each) for each in Nullable)],
)
@given(given=ROWS)
def test_rows_are_read_as_they_were_written(
    format_: RowFormat, nullable: Nullable, given: Given
) -> None:
    columns, row = given
    try:
        serde = format_.serde(columns, RowOptions(nullable=nullable), MemoryRegistry())
    except SchemaError as error:
        assume("duplicate json_name" not in error.message)  # as the test below says
        raise
    expected = tuple(
        came_back(value, each.type, nullable) for value, each in zip(row, columns, strict=True)
    )
    assert serde.deserialize("t", serde.serialize("t", row)) == expected


@pytest.mark.parametrize("format_", FORMATS)
def test_fields_with_one_name_in_json_are_refused(format_: RowFormat) -> None:
    """Protobuf gives each field a name in JSON, without underscores."""
    columns = [Column("S", StructType((Field("A", INT), Field("A_", INT))))]
    with pytest.raises(SchemaError, match=r"duplicate json_name for \(A_\)"):
        format_.serde(columns, OPTIONS, MemoryRegistry()).serialize("t", ({"A": 1, "A_": 2},))


@pytest.mark.parametrize("format_", FORMATS)
def test_a_null_row_is_a_null_record(format_: RowFormat) -> None:
    serde = format_.serde([Column("A", INT)], OPTIONS, MemoryRegistry())
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None
    assert format_.serde([], KEY, MemoryRegistry()).serialize("t", ()) is None


@pytest.mark.parametrize("format_", FORMATS)
def test_a_key_of_one_column_is_a_message_too(format_: RowFormat) -> None:
    serde = format_.serde([Column("A", INT)], KEY, MemoryRegistry())
    data = serde.serialize("t", (5,))
    assert data is not None
    assert data.endswith(b"\x08\x05")
    assert serde.deserialize("t", data) == (5,)
    with pytest.raises(SchemaError, match="WRAP_SINGLE_VALUE"):
        format_.serde([Column("A", INT)], RowOptions(wrapped=False), MemoryRegistry())


def test_the_prefix_has_the_schema_and_the_place_of_the_message() -> None:
    columns = [Column("A", INT)]
    registry = MemoryRegistry()
    assert PROTOBUF.serde(columns, OPTIONS, registry).serialize("t", (1,)) == (
        frame(1) + b"\0\x08\1"
    )
    assert PROTOBUF_NOSR.serde(columns, OPTIONS).serialize("t", (1,)) == b"\x08\1"
    assert registry.calls == ["register t-value"]
    with pytest.raises(SchemaError, match="does not use a schema registry"):
        PROTOBUF_NOSR.schema_of(columns, OPTIONS)


def other(text: str, **imports: str) -> tuple[MemoryRegistry, ProtobufSchema, int]:
    """A registry with a schema of somebody else, the schema itself and its id."""
    registry = MemoryRegistry()
    references = []
    for name, imported in imports.items():
        registry.register(name, Schema(f'syntax = "proto3"; {imported}', SchemaKind.PROTOBUF))
        references.append(Reference(f"{name}.proto", name, 1))
    schema = Schema(f'syntax = "proto3"; {text}', SchemaKind.PROTOBUF, tuple(references))
    schema_id = registry.register("other", schema)
    resolved = {f"{name}.proto": f'syntax = "proto3"; {each}' for name, each in imports.items()}
    parsed = parse_schema(schema, resolved)
    assert isinstance(parsed, ProtobufSchema)
    return registry, parsed, schema_id


UNKNOWN = "UNKNOWN_ENUM_VALUE_E_"
COERCIONS: list[tuple[str, object, DataType, object]] = [
    ("int32 a = 1;", 5, BIGINT, 5),
    ("int32 a = 1;", 5, STRING, "5"),
    ("uint32 a = 1;", 2**32 - 1, BIGINT, 2**32 - 1),
    ("uint64 a = 1;", 2**64 - 1, BIGINT, -1),
    ("fixed64 a = 1;", 2**63, STRING, str(-(2**63))),
    ("float a = 1;", 0.5, DOUBLE, 0.5),
    ("bool a = 1;", True, STRING, "true"),
    ("double a = 1;", 1e10, STRING, "1.0E10"),
    ("optional int32 a = 1;", None, INT, None),
    ("int32 a = 1;", None, INT, 0),
    ("E a = 1; enum E { X = 0; Y = 1; }", "Y", STRING, "Y"),
    ("repeated E a = 1; enum E { X = 0; Y = 1; }", [1, 7], ArrayType(STRING), ["Y", f"{UNKNOWN}7"]),
    ("map<int32, bool> a = 1;", {5: True}, MapType(STRING, STRING), {"5": "true"}),
    (
        "N a = 1; message N { int32 x = 1; }",
        {"x": 5},
        StructType((Field("X", STRING),)),
        {"X": "5"},
    ),
    ("int32 b = 1;", None, INT, None),
    ("google.protobuf.UInt64Value a = 1;", {"value": 2**64 - 1}, BIGINT, -1),
    ("repeated google.protobuf.StringValue a = 1;", [{"value": "s"}], ArrayType(STRING), ["s"]),
    ("google.protobuf.Timestamp a = 1;", {"seconds": -1, "nanos": 1_999_999}, TIMESTAMP, -999),
    ("int32 class = 1; int32 a = 2;", 3, INT, 3),
]
IMPORTS = (
    'import "google/protobuf/wrappers.proto"; import "google/protobuf/timestamp.proto"; '
    'import "google/type/date.proto"; import "google/type/timeofday.proto"; '
    'import "confluent/type/decimal.proto"; '
)


def read_other(declared: str, value: object, wanted: DataType) -> Row | None:
    """What column A reads of a message of somebody else whose field `a` has a value."""
    registry, schema, schema_id = other(f"{IMPORTS} message M {{ {declared} }}")
    content = schema.message_class("M")(**({} if value is None else {"a": value}))
    serde = PROTOBUF.serde([Column("A", wanted)], OPTIONS, registry)
    return serde.deserialize("t", frame(schema_id) + b"\0" + content.SerializeToString())


@pytest.mark.parametrize(("declared", "value", "wanted", "expected"), COERCIONS)
def test_columns_accept_what_ksqldb_accepts(
    declared: str, value: object, wanted: DataType, expected: object
) -> None:
    assert read_other(declared, value, wanted) == (expected,)


@pytest.mark.parametrize(
    ("declared", "value", "wanted"),
    [
        ("string a = 1;", "5", INT),
        ("int64 a = 1;", 5, INT),
        ("int32 a = 1;", 5, DOUBLE),
        ("repeated int32 a = 1;", [5], INT),
        ("int32 a = 1;", 5, ArrayType(INT)),
        ("map<string, int32> a = 1;", {"a": 1}, ArrayType(INT)),
        ("N a = 1; message N { int32 x = 1; }", {"x": 5}, STRING),
        ("oneof a { int32 x = 1; } int32 A_0 = 2;", None, DOUBLE),
    ],
)
def test_columns_refuse_other_types(declared: str, value: object, wanted: DataType) -> None:
    columns = [Column("A_0" if "oneof" in declared else "A", wanted)]
    registry, schema, schema_id = other(f"message M {{ {declared} }}")
    content = schema.message_class("M")(**({} if value is None else {"a": value}))
    data = frame(schema_id) + b"\0" + content.SerializeToString()
    with pytest.raises(SerdeError, match='column "A'):
        PROTOBUF.serde(columns, OPTIONS, registry).deserialize("t", data)


@pytest.mark.parametrize(
    ("declared", "value", "wanted"),
    [
        ("google.type.Date a = 1;", {"year": 2024}, DATE),
        ("google.type.Date a = 1;", {"year": 2023, "month": 2, "day": 29}, DATE),
        ("google.type.TimeOfDay a = 1;", {"hours": 24}, TIME),
        ("google.type.TimeOfDay a = 1;", {"seconds": -1}, TIME),
        ("google.protobuf.Timestamp a = 1;", {"seconds": 2**62}, TIMESTAMP),
        ("confluent.type.Decimal a = 1;", {"value": b"\1", "scale": 2**31 - 1}, DecimalType(4, 2)),
        ("confluent.type.Decimal a = 1;", {"value": b"\1", "scale": -(2**31)}, DecimalType(4, 2)),
        ("confluent.type.Decimal a = 1;", {"value": b"\1" * 99}, DecimalType(4, 2)),
    ],
)
def test_messages_that_are_no_times_or_numbers_are_refused(
    declared: str, value: object, wanted: DataType
) -> None:
    with pytest.raises(SerdeError):
        read_other(declared, value, wanted)


def test_records_say_which_message_they_are() -> None:
    registry, schema, schema_id = other(
        "message M { string a = 1; } message N { message O { int32 a = 1; } }"
    )
    serde = PROTOBUF.serde([Column("A", STRING)], OPTIONS, registry)
    inner = schema.message_class("N.O")(a=7).SerializeToString()
    assert serde.deserialize("t", frame(schema_id) + b"\4\2\0" + inner) == ("7",)
    first = schema.message_class("M")(a="x").SerializeToString()
    assert serde.deserialize("t", frame(schema_id) + b"\2\0" + first) == ("x",)
    with pytest.raises(SerdeError, match="no message at"):
        serde.deserialize("t", frame(schema_id) + b"\2\x06" + first)


def test_a_given_schema_is_written_to_in_the_message_that_is_named() -> None:
    registry, schema, schema_id = other(
        'import "e.proto"; message M { int32 x = 1; } message N { E e = 1; string more = 2; '
        "uint32 u = 3; oneof c { int32 i = 4; string s = 5; } map<string, E> m = 6; }",
        e="message E { int64 t = 1; }",
    )
    options = RowOptions(schema_id=schema_id, full_name="N")
    inferred = PROTOBUF.columns_of(schema, options)
    assert [each.name for each in inferred] == ["c_0", "e", "more", "u", "m"]
    struct = StructType((Field("t", BIGINT),))
    columns = [inferred[0], Column("e", struct), inferred[3], inferred[4]]
    serde = PROTOBUF.serde(columns, options, registry)
    row = ({"i": None, "s": "x"}, {"t": 5}, 7, {"k": {"t": 1}})
    data = serde.serialize("t", row)
    assert data is not None
    assert data[:7] == frame(schema_id) + b"\2\2"
    assert serde.deserialize("t", data) == row
    assert serde.deserialize("t", serde.serialize("t", (None, None, 1, None))) == (
        None,
        None,
        1,
        {},
    )
    for wrong in (({"i": 1, "s": "x"}, None, 1, None), (None, None, -1, None)):
        with pytest.raises(SerdeError):
            serde.serialize("t", wrong)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([Column("b", INT)], 'lacks field "b"'),
        ([Column("a", STRING)], "which are STRING"),
        ([Column("a", ArrayType(INT))], "which are ARRAY"),
    ],
)
def test_a_given_schema_that_does_not_suit_is_refused_at_once(
    columns: list[Column], message: str
) -> None:
    registry, _, schema_id = other("message M { int32 a = 1; }")
    with pytest.raises(SchemaError, match=message):
        PROTOBUF.serde(columns, RowOptions(schema_id=schema_id), registry)


def test_a_chain_of_messages_that_is_too_long_is_refused() -> None:
    messages = "".join(f"message M{level} {{ M{level + 1} a = 1; }}" for level in range(2_000))
    registry, schema, schema_id = other(f"{messages} message M2000 {{ int32 a = 1; }}")
    columns = [Column("B", INT)]
    with pytest.raises(SchemaError, match="nested more than"):
        PROTOBUF.columns_of(schema, OPTIONS)
    with pytest.raises(SchemaError, match="nested too deeply"):
        PROTOBUF.serde(columns, RowOptions(schema_id=schema_id), registry)
    with pytest.raises(SerdeError, match="RecursionError"):
        PROTOBUF.serde(columns, OPTIONS, registry).deserialize("t", frame(schema_id) + b"\0")


def test_a_message_that_is_not_there_is_refused() -> None:
    _, schema, _ = other("message M { int32 a = 1; }")
    with pytest.raises(SchemaError, match='no message "Q"'):
        PROTOBUF.columns_of(schema, RowOptions(full_name="Q"))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (INT, "1"),
        (INT, 2**31),
        (BIGINT, 2**63),
        (STRING, 5),
        (STRING, "\ud800"),
        (BYTES, "a"),
        (TIME, 86_400_000),
        (TIMESTAMP, "a"),
        (DATE, 2**60),
        (DecimalType(2, 1), Decimal("1.25")),
        (ArrayType(STRING), "abc"),
        (ArrayType(INT), ["a"]),
        (MapType(STRING, INT), {1: 1}),
        (StructType((Field("A", INT),)), 5),
    ],
)
def test_values_of_wrong_types_are_refused(
    data_type: DataType, value: object, format_: RowFormat
) -> None:
    serde = format_.serde([Column("A", data_type)], OPTIONS, MemoryRegistry())
    with pytest.raises(SerdeError) as caught:
        serde.serialize("t", (value,))
    assert caught.value.at == 'topic "t"'


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
@given(given=ROWS, data=st.data())
def test_broken_bytes_raise_serde_errors_and_nothing_else(
    format_: RowFormat, given: Given, data: st.DataObject
) -> None:
    columns, row = given
    serde = format_.serde(columns, OPTIONS, MemoryRegistry())
    written = bytearray(serde.serialize("t", row) or b"")
    start = min(5, len(written)) if format_ is PROTOBUF else 0
    for position in data.draw(
        st.lists(st.integers(start, max(start, len(written) - 1)), max_size=3)
    ):
        written[position : position + 1] = bytes([data.draw(st.integers(0, 255))])
    cut = data.draw(st.integers(0, len(written)))
    for each in (bytes(written), bytes(written[:cut]), data.draw(st.binary(max_size=20))):
        with contextlib.suppress(SerdeError):
            serde.deserialize("t", each)


@given(st.integers(-719_162, 2_932_896))
def test_dates_are_those_of_the_calendar(days: int) -> None:
    expected = datetime.date(1970, 1, 1) + datetime.timedelta(days)
    assert date_fields(days) == {
        "year": expected.year,
        "month": expected.month,
        "day": expected.day,
    }


@pytest.mark.parametrize("days", [-(2**31), -800_000, 2**31 - 1])
def test_dates_reach_as_far_as_in_java(days: int) -> None:
    serde = PROTOBUF_NOSR.serde([Column("A", DATE)], OPTIONS)
    assert serde.deserialize("t", serde.serialize("t", (days,))) == (days,)
