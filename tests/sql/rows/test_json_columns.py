"""Columns as JSON schemas, and back."""

import json

import pytest
from hypothesis import given

from broker.errors import SchemaError
from broker.serde.schema.json_schema import parse_json_schema
from sql.datatypes import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.rows.json_columns import java_order, json_columns, json_schema_text
from tests.support.columns import columns


def read_back(text: str, *, single: str | None = None, upper: bool = True) -> tuple[Column, ...]:
    """The columns of a text."""
    return json_columns(parse_json_schema(text, {}), single=single, upper=upper)


@pytest.mark.slow
@given(columns())
def test_columns_are_read_back_from_their_schema(given: tuple[Column, ...]) -> None:
    assert read_back(json_schema_text(given)) == given


@pytest.mark.slow
@given(columns(count_max=1))
def test_a_single_column_is_read_back_from_its_schema(given: tuple[Column, ...]) -> None:
    assert read_back(json_schema_text(given, wrapped=False), single=given[0].name) == given


def test_a_row_is_the_object_that_ksqldb_registers() -> None:
    assert json_schema_text([Column("FOO", INT), Column("BAR", STRING)]) == (
        '{"type":"object","properties":{'
        '"FOO":{"connect.index":0,"oneOf":[{"type":"null"},'
        '{"type":"integer","connect.type":"int32"}]},'
        '"BAR":{"connect.index":1,"oneOf":[{"type":"null"},{"type":"string"}]}}}'
    )


WRITTEN: list[tuple[DataType, object]] = [
    (BOOLEAN, {"type": "boolean"}),
    (DOUBLE, {"type": "number", "connect.type": "float64"}),
    (BYTES, {"type": "string", "connect.type": "bytes"}),
    (
        TIMESTAMP,
        {
            "type": "integer",
            "title": "org.apache.kafka.connect.data.Timestamp",
            "connect.version": 1,
            "connect.type": "int64",
        },
    ),
    (
        DecimalType(4, 2),
        {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.version": 1,
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
        },
    ),
    (
        MapType(STRING, STRING),
        {
            "type": "object",
            "additionalProperties": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "connect.type": "map",
        },
    ),
    (
        ArrayType(BOOLEAN),
        {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}},
    ),
]


@pytest.mark.parametrize(("data_type", "expected"), WRITTEN)
def test_types_are_written_as_connect_does(data_type: DataType, expected: object) -> None:
    schema = json.loads(json_schema_text([Column("A", data_type)], wrapped=False))
    assert schema == {"oneOf": [{"type": "null"}, expected]}


READ = [
    ('{"type": "integer"}', "BIGINT"),
    ('{"type": "integer", "connect.type": "int8"}', "INTEGER"),
    ('{"type": "number", "connect.type": "float32"}', "DOUBLE"),
    ('{"type": ["null", "string"]}', "STRING"),
    ('{"anyOf": [{"type": "number"}, {"type": "null"}]}', "DOUBLE"),
    ('{"enum": ["a", "b"]}', "STRING"),
    ('{"type": "string", "enum": ["a"]}', "STRING"),
    ('{"allOf": [{"type": "string"}, {"enum": ["a"]}]}', "STRING"),
    ('{"allOf": [{"type": "integer"}, {"minimum": 1}]}', "BIGINT"),
    (
        '{"allOf": [{"properties": {"x": {"type": "string"}}}, '
        '{"type": "object", "properties": {"y": {"type": "boolean"}}}]}',
        "STRUCT<`X` STRING, `Y` BOOLEAN>",
    ),
    ('{"type": "object", "additionalProperties": {"type": "string"}}', "MAP<STRING, STRING>"),
    (
        '{"type": "array", "connect.type": "map", "items": {"type": "object", "properties": '
        '{"key": {"type": "integer"}, "value": {"type": "boolean"}}}}',
        "MAP<STRING, BOOLEAN>",
    ),
    (
        '{"type": "number", "title": "org.apache.kafka.connect.data.Decimal"}',
        "DECIMAL(64, 0)",
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_types_of_other_schemas_have_columns(text: str, expected: str) -> None:
    schema = f'{{"type": "object", "properties": {{"a": {text}}}}}'
    (column,) = read_back(schema)
    assert (column.name, str(column.type)) == ("A", expected)
    assert read_back(schema, upper=False)[0].name == "a"


def test_properties_come_in_their_order_or_in_that_of_java() -> None:
    text = '{"type": "object", "properties": {%s}}'
    plain = [f'"{name}": {{"type": "integer"}}' for name in ("ID", "NAME", "VALUE")]
    assert [each.name for each in read_back(text % ",".join(plain))] == ["ID", "VALUE", "NAME"]
    indexed = [
        f'"{name}": {{"type": "integer", "connect.index": {index}}}'
        for name, index in (("ID", 2), ("NAME", 0), ("VALUE", 1))
    ]
    assert [each.name for each in read_back(text % ",".join(indexed))] == ["NAME", "VALUE", "ID"]


def test_the_order_of_java_grows_with_the_count() -> None:
    names = [f"k{index}" for index in range(13)]
    assert java_order(names) == [
        f"k{index}" for index in (0, 1, 2, 3, 4, 5, 11, 6, 10, 7, 8, 12, 9)
    ]
    assert java_order(["äöü", "漢字", "dog", "zipCode"]) == ["zipCode", "漢字", "äöü", "dog"]


def test_refs_are_followed_into_definitions_and_other_schemas() -> None:
    text = (
        '{"type": "object", "properties": {"a": {"$ref": "#/definitions/x"}, '
        '"b": {"$ref": "other.json"}}, "definitions": {"x": {"type": "boolean"}}}'
    )
    other = {"other.json": '{"type": "object", "properties": {"c": {"type": "string"}}}'}
    assert json_columns(parse_json_schema(text, other)) == (
        Column("A", BOOLEAN),
        Column("B", StructType((Field("C", STRING),))),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "string"}', "must be an object"),
        ("true", "declares no type"),
        ('{"type": "object"}', "without known properties"),
        ('{"properties": {"a": {}}}', 'at "a": it declares no type'),
        ('{"properties": {"a": {"type": ["string", "integer"]}}}', "a choice of 2 types"),
        ('{"properties": {"a": {"oneOf": [{"type": "null"}]}}}', "a choice of 0 types"),
        ('{"properties": {"a": {"$ref": "#"}}}', "contains itself"),
        ('{"properties": {"a": {"type": "array"}}}', "declares no type"),
        ('{"properties": {"a": {"type": "integer", "connect.type": "x"}}}', "connect.type"),
        (
            '{"properties": {"a": {"type": "string"}, "A": {"type": "string"}}}',
            'two fields of the JSON schema at "#" are named "A"',
        ),
    ],
)
def test_schemas_without_columns_are_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read_back(text)


def test_maps_have_texts_as_keys() -> None:
    with pytest.raises(SchemaError, match="JSON only supports MAP types with STRING keys"):
        json_schema_text([Column("A", MapType(INT, INT))])
