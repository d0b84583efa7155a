"""Columns as Protobuf schemas, and back."""

import pytest
from hypothesis import given

from broker.errors import SchemaError
from broker.serde.schema.protobuf_schema import parse_protobuf
from sql.datatypes import (
    BIGINT,
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
    StructType,
)
from sql.rows.protobuf_columns import Nulls, protobuf_columns, protobuf_text
from tests.support.columns import columns
from tests.support.protobuf_types import protobuf_types

STRUCT = StructType((Field("X", INT),))


def read_back(text: str, *, name: str | None = None, upper: bool = True) -> tuple[Column, ...]:
    """The columns of a text's message."""
    schema = parse_protobuf(text, {})
    message = schema.pool.FindMessageTypeByName(name or schema.default_message)
    return protobuf_columns(message, upper=upper)


def canonical(given: list[Column], nulls: Nulls = Nulls.NOTHING) -> str:
    """What a registry keeps of the columns' schema."""
    return parse_protobuf(protobuf_text(given, nulls=nulls), {}).canonical


@pytest.mark.slow
@pytest.mark.parametrize("nulls", Nulls)
@given(given=columns(protobuf_types()))
def test_columns_are_read_back_from_their_schema(nulls: Nulls, given: tuple[Column, ...]) -> None:
    assert read_back(protobuf_text(given, nulls=nulls)) == given


def test_a_row_is_the_message_that_ksqldb_registers() -> None:
    given = [
        Column("ID", BIGINT),
        Column("TAGS", ArrayType(STRING)),
        Column("S", STRUCT),
        Column("M", MapType(STRING, DOUBLE)),
        Column("AT", TIMESTAMP),
    ]
    assert canonical(given) == (
        'syntax = "proto3";\n'
        "\n"
        'import "google/protobuf/timestamp.proto";\n'
        "\n"
        "message ConnectDefault1 {\n"
        "  int64 ID = 1;\n"
        "  repeated string TAGS = 2;\n"
        "  ConnectDefault2 S = 3;\n"
        "  repeated ConnectDefault3Entry M = 4;\n"
        "  google.protobuf.Timestamp AT = 5;\n"
        "\n"
        "  message ConnectDefault2 {\n"
        "    int32 X = 1;\n"
        "  }\n"
        "  message ConnectDefault3Entry {\n"
        "    string key = 1;\n"
        "    double value = 2;\n"
        "  }\n"
        "}\n"
    )


WRITTEN: list[tuple[DataType, Nulls, str]] = [
    (INT, Nulls.OPTIONAL, "  optional int32 A = 1;"),
    (INT, Nulls.WRAPPER, "  google.protobuf.Int32Value A = 1;"),
    (ArrayType(BYTES), Nulls.OPTIONAL, "  repeated bytes A = 1;"),
    (ArrayType(BYTES), Nulls.WRAPPER, "  repeated google.protobuf.BytesValue A = 1;"),
    (DATE, Nulls.NOTHING, "  google.type.Date A = 1;"),
    (TIME, Nulls.WRAPPER, "  google.type.TimeOfDay A = 1;"),
    (
        DecimalType(4, 2),
        Nulls.NOTHING,
        "  confluent.type.Decimal A = 1 [(confluent.field_meta) = {",
    ),
]


@pytest.mark.parametrize(("data_type", "nulls", "line"), WRITTEN)
def test_fields_are_declared_as_nulls_need_it(data_type: DataType, nulls: Nulls, line: str) -> None:
    assert line in canonical([Column("A", data_type)], nulls).splitlines()


def test_the_message_may_have_another_name() -> None:
    text = protobuf_text([Column("A", STRUCT)], name="com.acme.Row")
    schema = parse_protobuf(text, {})
    assert schema.message_names == ("com.acme.Row", "com.acme.Row.ConnectDefault1")


def test_a_field_named_like_its_message_gets_another_message() -> None:
    given = (Column("ConnectDefault2", STRUCT),)
    assert read_back(protobuf_text(given), upper=False) == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([Column("1ST", INT)], 'illegal name "1ST"'),
        ([Column("A", StructType((Field("a b", INT),)))], 'illegal name "a b"'),
        ([Column("A", MapType(INT, INT))], "only supports MAP types with STRING keys"),
        ([Column("A", ArrayType(ArrayType(INT)))], "no arrays or maps directly inside arrays"),
        (
            [Column("A", ArrayType(MapType(STRING, INT)))],
            "no arrays or maps directly inside arrays",
        ),
    ],
)
def test_columns_that_protobuf_cannot_have_are_refused(given: list[Column], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        protobuf_text(given)


READ = [
    ("uint32 a = 1;", "A", "BIGINT"),
    ("fixed64 a = 1;", "A", "BIGINT"),
    ("sfixed32 a = 1;", "A", "INTEGER"),
    ("float a = 1;", "A", "DOUBLE"),
    ("optional bool a = 1;", "A", "BOOLEAN"),
    ("E a = 1; enum E { X = 0; }", "A", "STRING"),
    ("repeated E a = 1; enum E { X = 0; }", "A", "ARRAY<STRING>"),
    ("map<int32, bytes> a = 1;", "A", "MAP<STRING, BYTES>"),
    ("map<string, N> a = 1; message N { bool b = 1; }", "A", "MAP<STRING, STRUCT<`B` BOOLEAN>>"),
    ("google.protobuf.UInt32Value a = 1;", "A", "BIGINT"),
    ("repeated google.protobuf.StringValue a = 1;", "A", "ARRAY<STRING>"),
    ("google.protobuf.Timestamp a = 1;", "A", "TIMESTAMP"),
    ("confluent.type.Decimal a = 1;", "A", "DECIMAL(64, 0)"),
    ("oneof u { string a = 1; int32 b = 2; }", "U_0", "STRUCT<`A` STRING, `B` INTEGER>"),
]


@pytest.mark.parametrize(("declared", "name", "expected"), READ)
def test_types_of_other_schemas_have_columns(declared: str, name: str, expected: str) -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/wrappers.proto"; '
        'import "google/protobuf/timestamp.proto"; import "confluent/type/decimal.proto"; '
        f"message M {{ {declared} }}"
    )
    (column,) = read_back(text)
    assert (column.name, str(column.type)) == (name, expected)
    assert read_back(text, upper=False)[0].name == name.lower()


def test_unions_come_first_and_optional_fields_are_none() -> None:
    text = (
        'syntax = "proto3"; message M { optional int32 a = 1; '
        "oneof u { int32 b = 2; } oneof v { int32 c = 3; } int32 d = 4; }"
    )
    assert [each.name for each in read_back(text)] == ["U_0", "V_1", "A", "D"]


def test_decimals_say_their_digits_with_or_without_the_import_of_the_option() -> None:
    option = (
        '[(confluent.field_meta) = { params: [{ value: "4", key: "precision" }, '
        '{value: "2", key: "scale"}]}]'
    )
    for imported in ("", 'import "confluent/meta.proto";'):
        text = (
            f'syntax = "proto3"; import "confluent/type/decimal.proto"; {imported}'
            f"message M {{ confluent.type.Decimal a = 1 {option}; }}"
        )
        assert read_back(text) == (Column("A", DecimalType(4, 2)),)
    with pytest.raises(SchemaError, match="invalid precision or scale"):
        read_back(text.replace('"4"', '"1"'))


def test_imported_messages_are_structs() -> None:
    text = 'syntax = "proto3"; import "e.proto"; message M { p.E e = 1; }'
    other = {"e.proto": 'syntax = "proto3"; package p; message E { int64 t = 1; }'}
    schema = parse_protobuf(text, other)
    found = protobuf_columns(schema.message_class("M").DESCRIPTOR)
    assert found == (Column("E", StructType((Field("T", BIGINT),))),)


def test_messages_that_contain_themselves_or_nothing_are_refused() -> None:
    recursive = 'syntax = "proto3"; message M { N n = 1; message N { M m = 1; } }'
    with pytest.raises(SchemaError, match='"M" contains itself'):
        read_back(recursive)
    with pytest.raises(SchemaError, match="has no fields"):
        read_back('syntax = "proto3"; message M {}')


def test_a_short_text_that_stands_for_very_many_fields_is_refused() -> None:
    messages = "".join(
        f"message M{level} {{ M{level + 1} a = 1; M{level + 1} b = 2; }}" for level in range(30)
    )
    with pytest.raises(SchemaError, match="more than 20000 fields"):
        read_back(f'syntax = "proto3"; {messages} message M30 {{ int32 a = 1; }}')


def test_a_long_chain_of_messages_is_refused() -> None:
    messages = "".join(f"message M{level} {{ M{level + 1} a = 1; }}" for level in range(2_000))
    with pytest.raises(SchemaError, match="nested more than 100 deep"):
        read_back(f'syntax = "proto3"; {messages} message M2000 {{ int32 a = 1; }}')


def test_names_that_differ_only_in_case_need_their_case() -> None:
    text = 'syntax = "proto3"; message M { int32 a = 1; int32 A = 2; }'
    with pytest.raises(SchemaError, match='two fields of the Protobuf message "M"'):
        read_back(text)
    assert [each.name for each in read_back(text, upper=False)] == ["a", "A"]
