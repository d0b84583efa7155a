"""Columns as Avro schemas, and back."""

import json

import pytest
from hypothesis import given

from broker.errors import SchemaError
from broker.serde.schema.avro_schema import parse_avro
from broker.serde.schema.avro_tree import avro_tree
from sql.datatypes import (
    BIGINT,
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
from sql.rows.avro_columns import avro_columns, avro_text
from tests.support.columns import columns

NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
STRUCT = StructType((Field("B", INT),))


def read_back(text: str, *, single: str | None = None, upper: bool = True) -> tuple[Column, ...]:
    """The columns of a text."""
    return avro_columns(avro_tree(parse_avro(text, {}).root), single=single, upper=upper)


def field_type(data_type: DataType) -> object:
    """What the schema has for a column A of a type, without null."""
    schema = json.loads(avro_text([Column("A", data_type)]))
    nothing, found = schema["fields"][0]["type"]
    assert nothing == "null"
    return found


@pytest.mark.slow
@given(columns())
def test_columns_are_read_back_from_their_schema(given: tuple[Column, ...]) -> None:
    assert read_back(avro_text(given)) == given


@given(columns(count_max=1))
def test_a_single_column_is_read_back_from_its_schema(given: tuple[Column, ...]) -> None:
    assert read_back(avro_text(given, wrapped=False), single=given[0].name) == given


def test_a_row_is_the_record_that_ksqldb_registers() -> None:
    given = [Column("ID", BIGINT), Column("NAME", STRING)]
    assert avro_text(given) == (
        '{"type":"record","name":"KsqlDataSourceSchema",'
        '"namespace":"io.confluent.ksql.avro_schemas","fields":['
        '{"name":"ID","type":["null","long"],"default":null},'
        '{"name":"NAME","type":["null","string"],"default":null}],'
        f'"connect.name":"{NAME}"}}'
    )


def test_the_record_may_have_another_name() -> None:
    schema = json.loads(avro_text([Column("A", STRUCT)], name="com.acme.Row"))
    assert (schema["namespace"], schema["name"]) == ("com.acme", "Row")
    assert schema["fields"][0]["type"][1]["name"] == "Row_A"
    assert "namespace" not in json.loads(avro_text([Column("A", STRUCT)], name="Row"))


def test_times_and_decimals_carry_the_names_of_connect() -> None:
    connect = "org.apache.kafka.connect.data."
    for data_type, base, name, logical in [
        (DATE, "int", "Date", "date"),
        (TIME, "int", "Time", "time-millis"),
        (TIMESTAMP, "long", "Timestamp", "timestamp-millis"),
    ]:
        assert field_type(data_type) == {
            "type": base,
            "connect.version": 1,
            "connect.name": connect + name,
            "logicalType": logical,
        }
    assert field_type(DecimalType(4, 2)) == {
        "type": "bytes",
        "scale": 2,
        "precision": 4,
        "connect.version": 1,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
        "connect.name": f"{connect}Decimal",
        "logicalType": "decimal",
    }


def test_a_map_is_an_array_of_entries_that_have_a_name() -> None:
    found = field_type(MapType(STRING, ArrayType(STRUCT)))
    assert isinstance(found, dict)
    assert found["connect.name"] == f"{NAME}_A"
    entry = found["items"]
    assert (entry["name"], entry["connect.internal.type"]) == ("KsqlDataSourceSchema_A", "MapEntry")
    key, value = entry["fields"]
    assert key == {"name": "key", "type": ["null", "string"], "default": None}
    assert value["type"][1]["items"][1]["name"] == "KsqlDataSourceSchema_A_MapValue"


def test_records_reached_on_different_ways_have_different_names() -> None:
    deep = StructType((Field("B", STRUCT),))
    text = avro_text([Column("A", deep), Column("A_B", STRUCT)])
    assert read_back(text) == (Column("A", deep), Column("A_B", STRUCT))


def test_dots_in_names_are_written_as_underscores() -> None:
    assert read_back(avro_text([Column("A.B", INT)])) == (Column("A_B", INT),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([Column("1ST", INT)], 'illegal name "1ST"'),
        ([Column("A", StructType((Field("Ä", INT),)))], 'illegal name "Ä"'),
        ([Column("A.B", INT), Column("A_B", INT)], 'two columns are named "A_B"'),
        ([Column("A", MapType(INT, INT))], "Avro only supports MAPs with STRING keys"),
    ],
)
def test_columns_that_avro_cannot_have_are_refused(given: list[Column], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        avro_text(given)


READ = [
    ('{"type": "fixed", "name": "f", "size": 4}', "BYTES"),
    ('{"type": "enum", "name": "e", "symbols": ["A"]}', "STRING"),
    ('"float"', "DOUBLE"),
    ('{"type": "long", "logicalType": "timestamp-micros"}', "BIGINT"),
    ('{"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}', "DECIMAL(5, 2)"),
    ('{"type": "bytes", "logicalType": "decimal", "precision": 5}', "DECIMAL(5, 0)"),
    ('["null", {"type": "map", "values": "boolean"}]', "MAP<STRING, BOOLEAN>"),
    ('["int", "string"]', "STRUCT<`INT` INTEGER, `STRING` STRING>"),
    (
        '{"type": "array", "items": {"type": "record", "name": "e", "fields": '
        '[{"name": "key", "type": "int"}, {"name": "value", "type": "long"}], '
        '"connect.internal.type": "MapEntry"}}',
        "MAP<STRING, BIGINT>",
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_types_of_other_schemas_have_columns(text: str, expected: str) -> None:
    schema = f'{{"type": "record", "name": "r", "fields": [{{"name": "a", "type": {text}}}]}}'
    (column,) = read_back(schema)
    assert (column.name, str(column.type)) == ("A", expected)
    assert read_back(schema, upper=False)[0].name == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"int"', "must be a record"),
        ('{"type": "record", "name": "r", "fields": []}', "has no fields"),
        ('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "null"}]}', "alone"),
        (
            '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]}',
            "contains itself",
        ),
        (
            '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, '
            '{"name": "A", "type": "int"}]}',
            'two fields of the Avro record "r" are named "A"',
        ),
    ],
)
def test_schemas_without_columns_are_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read_back(text)


def test_a_short_text_that_stands_for_very_many_types_is_refused() -> None:
    text = '{"type": "record", "name": "r0", "fields": [{"name": "a", "type": "int"}]}'
    for level in range(1, 30):
        fields = f'[{{"name": "a", "type": {text}}}, {{"name": "b", "type": "r{level - 1}"}}]'
        text = f'{{"type": "record", "name": "r{level}", "fields": {fields}}}'
    with pytest.raises(SchemaError, match="more than 20000 types"):
        read_back(text)


def test_types_that_are_very_deep_in_each_other_are_refused() -> None:
    text = '{"type": "array", "items": ' * 150 + '"int"' + "}" * 150
    with pytest.raises(SchemaError, match="nested more than 100 deep"):
        read_back(text, single="ROWVAL")


def test_a_value_alone_is_one_column() -> None:
    assert read_back('"double"', single="ROWVAL") == (Column("ROWVAL", DOUBLE),)
