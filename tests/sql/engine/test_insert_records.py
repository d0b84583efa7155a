"""INSERT VALUES without a broker: which records statements become."""

import json

import pytest

from sql.analyse.sources import NoSchemas, SourceAnalyser
from sql.catalog import Catalog
from sql.engine.insert_records import InsertedRecord, RecordBuilder
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.functions.builtin import builtin_functions
from sql.parse import parse_statement
from sql.syntax.statements import CreateSource, InsertValues

NOW_MS = 1_700_000_000_000
SOURCES = (
    "CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d DOUBLE, e DECIMAL(5, 2), "
    "a ARRAY<BIGINT>, m MAP<STRING, DOUBLE>, r STRUCT<x BIGINT, y STRING>, t TIMESTAMP) "
    "WITH (kafka_topic='s', value_format='JSON');",
    "CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (kafka_topic='t', value_format='JSON');",
    "CREATE SOURCE STREAM r (k INT KEY, v INT) WITH (kafka_topic='r', value_format='JSON');",
    "CREATE STREAM w (k INT KEY, v INT) WITH (kafka_topic='w', value_format='JSON', "
    "window_type='SESSION');",
    "CREATE STREAM h (k INT KEY, v INT, hs ARRAY<STRUCT<key STRING, value BYTES>> HEADERS) "
    "WITH (kafka_topic='h', value_format='JSON');",
    "CREATE STREAM p (v INT) WITH (kafka_topic='_schemas', value_format='JSON');",
)


def record(text: str) -> InsertedRecord:
    catalog = Catalog()
    for source in SOURCES:
        created = parse_statement(source)
        assert isinstance(created, CreateSource)
        made = SourceAnalyser(catalog, SqlConfig(), NoSchemas()).create(created, source)
        assert made is not None
        catalog.sources[made.name] = made
    statement = parse_statement(text)
    assert isinstance(statement, InsertValues)
    record_builder = RecordBuilder(catalog, builtin_functions(), SqlConfig(), None)
    return record_builder.record(statement, NOW_MS)


@pytest.mark.parametrize(
    ("columns", "values", "written"),
    [
        ("i", "1 + 1", {"I": 2}),
        ("b, d, e", "1, 2, 3", {"B": 1, "D": 2.0, "E": 3.0}),
        ("d", "1.5", {"D": 1.5}),
        ("a", "ARRAY[1, 2]", {"A": [1, 2]}),
        ("m", "MAP('x' := 1)", {"M": {"x": 1.0}}),
        ("r", "STRUCT(y := 'z')", {"R": {"X": None, "Y": "z"}}),
        ("t", "'1970-01-01T00:00:01'", {"T": 1000}),
        ("i", "NULL", {}),
    ],
)
def test_values_become_those_of_their_columns(
    columns: str, values: str, written: dict[str, object]
) -> None:
    found = record(f"INSERT INTO s (k, {columns}) VALUES ('a', {values});")
    assert (found.key, found.timestamp_ms) == (b"a", NOW_MS)
    value = json.loads(found.value or b"")
    assert {name: each for name, each in value.items() if each is not None} == written


def test_the_time_of_a_record_can_be_given() -> None:
    assert record("INSERT INTO s (ROWTIME, k) VALUES (12, 'a');").timestamp_ms == 12


def test_a_stream_takes_rows_without_a_key() -> None:
    assert record("INSERT INTO s (i) VALUES (1);").key is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INSERT INTO nothing VALUES (1);", "unknown stream/table"),
        ("INSERT INTO r VALUES (1, 2);", "read-only stream: R"),
        ("INSERT INTO w VALUES (1, 2);", "windowed stream"),
        ("INSERT INTO h (k, hs) VALUES (1, ARRAY[]);", "HEADER columns: HS"),
        ("INSERT INTO p VALUES (1);", "read-only topic: _schemas"),
        ("INSERT INTO t (v) VALUES (1);", r"primary key column\(s\) K is required"),
        ("INSERT INTO t (k, v, ROWOFFSET) VALUES (1, 2, 3);", "`ROWOFFSET` is not allowed"),
        ("INSERT INTO t (k, x) VALUES (1, 2);", "Column name `X` does not exist"),
        ("INSERT INTO t VALUES (1);", "Expected a value for each column"),
        ("INSERT INTO t VALUES (1, 'x');", r"type INTEGER for field `V` but got STRING\(x\)"),
        ("INSERT INTO t VALUES (1, 9999999999);", "Expected type INTEGER for field `V`"),
        ("INSERT INTO s (e) VALUES (12345.678);", "for field `E`"),
        ("INSERT INTO t VALUES (1, 1 / 0);", "Failed to insert values into 'T'"),
    ],
)
def test_what_cannot_be_inserted_is_refused(text: str, why: str) -> None:
    with pytest.raises(StatementFailed, match=why):
        record(text)
