"""CREATE STREAM and CREATE TABLE: columns, formats and properties as the statement has them."""

import pytest

from sql.catalog import FormatInfo, TimestampColumn, WindowInfo
from sql.datatypes import BIGINT, INT, STRING, Column
from sql.errors import StatementFailed
from sql.syntax.queries import WindowKind
from tests.sql.planner.session import Session


class OneSchema:
    """A registry with the same columns for all keys, and for all values."""

    def columns(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        """What is registered."""
        return (Column("ROWKEY", INT),) if is_key else (Column("A", INT), Column("B", STRING))


def made(text: str, **settings: object) -> Session:
    return Session(settings=dict(settings)).run(text)


def test_columns_have_the_order_of_the_statement_with_the_key_first() -> None:
    source = made(
        "CREATE STREAM s (v INT, k STRING KEY, h BYTES HEADER('a'), w DOUBLE) "
        "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    )["S"]
    assert str(source.schema) == ("`K` STRING KEY, `V` INTEGER, `H` BYTES HEADER('a'), `W` DOUBLE")


@pytest.mark.parametrize(
    ("properties", "key", "value"),
    [
        ("VALUE_FORMAT='json'", FormatInfo("KAFKA"), FormatInfo("JSON")),
        ("FORMAT='JSON'", FormatInfo("JSON", wrapped=False), FormatInfo("JSON")),
        (
            "FORMAT='DELIMITED', KEY_DELIMITER='tab', VALUE_DELIMITER=';'",
            FormatInfo("DELIMITED", delimiter="\t"),
            FormatInfo("DELIMITED", delimiter=";"),
        ),
        (
            "FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME='a.B'",
            FormatInfo(
                "AVRO", wrapped=False, full_name="io.confluent.ksql.avro_schemas.MyStreamKey"
            ),
            FormatInfo("AVRO", full_name="a.B"),
        ),
        (
            "VALUE_FORMAT='JSON', WRAP_SINGLE_VALUE=false",
            FormatInfo("KAFKA"),
            FormatInfo("JSON", wrapped=False),
        ),
        (
            "VALUE_FORMAT='PROTOBUF', VALUE_PROTOBUF_NULLABLE_REPRESENTATION='optional'",
            FormatInfo("KAFKA"),
            FormatInfo("PROTOBUF", nullable="OPTIONAL"),
        ),
    ],
)
def test_formats_are_as_the_with_clause_says(
    properties: str, key: FormatInfo, value: FormatInfo
) -> None:
    text = f"CREATE STREAM my_stream (k INT KEY, v INT) WITH (KAFKA_TOPIC='t', {properties});"
    source = made(text)["MY_STREAM"]
    assert (source.key_format, source.value_format) == (key, value)


def test_formats_that_are_not_said_come_from_the_configuration() -> None:
    settings: dict[str, object] = {
        "ksql.persistence.default.format.key": "json",
        "ksql.persistence.default.format.value": "DELIMITED",
        "ksql.persistence.wrap.single.values": False,
    }
    source = made("CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='t');", **settings)["S"]
    assert source.key_format == FormatInfo("JSON", wrapped=False)
    assert source.value_format == FormatInfo("DELIMITED")


def test_a_windowed_topic_has_the_windows_of_its_statement() -> None:
    source = made(
        "CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', "
        "WINDOW_TYPE='hopping', WINDOW_SIZE='2 minutes');"
    )["T"]
    assert source.window == WindowInfo(WindowKind.HOPPING, 120_000)


def test_the_time_of_rows_may_be_a_column() -> None:
    source = made(
        "CREATE STREAM s (t STRING, u BIGINT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', "
        "TIMESTAMP='t', TIMESTAMP_FORMAT='yyyy');"
    )["S"]
    assert source.timestamp == TimestampColumn("T", "yyyy")


def test_columns_that_are_not_written_come_from_the_registry() -> None:
    session = Session(schemas=OneSchema())
    session.run("CREATE TABLE all_of_it WITH (KAFKA_TOPIC='t', FORMAT='AVRO');")
    session.run(
        "CREATE STREAM only_values (k BIGINT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    )
    assert session["ALL_OF_IT"].schema.key == (Column("ROWKEY", INT),)
    assert session["ALL_OF_IT"].schema.value == (Column("A", INT), Column("B", STRING))
    assert session["ONLY_VALUES"].schema.key == (Column("K", BIGINT),)


def test_a_sink_with_the_id_of_a_schema_must_have_its_columns() -> None:
    session = Session(schemas=OneSchema())
    session.run("CREATE STREAM s (a INT, c STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');")
    with pytest.raises(StatementFailed, match=r"changed, missing or reordered: \[`C` STRING\]"):
        session.run("CREATE STREAM o WITH (VALUE_SCHEMA_ID=7) AS SELECT a, c FROM s;")
    session.run("CREATE STREAM o WITH (VALUE_SCHEMA_ID=7) AS SELECT a, c AS b FROM s;")
    assert session["O"].value_format.schema_id == 7


def test_what_exists_already_stays_if_that_is_asked_for() -> None:
    text = "CREATE STREAM IF NOT EXISTS s ({}) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    session = made(text.format("a INT"))
    session.run(text.format("a STRING, b INT"))
    assert session["S"].schema.value == (Column("A", INT),)


def test_a_replacement_may_add_columns_at_the_end() -> None:
    text = "CREATE OR REPLACE STREAM s ({}) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    session = made(text.format("a INT")).run(text.format("a INT, b STRING"))
    session.run("ALTER STREAM s ADD COLUMN c BIGINT, ADD COLUMN d INT;")
    names = [each.name for each in session["S"].schema.value]
    assert names == ["A", "B", "C", "D"]


def test_types_of_the_user_are_what_they_stand_for() -> None:
    session = made(
        "CREATE TYPE place AS STRUCT<lat DOUBLE, lon DOUBLE>;"
        "CREATE STREAM s (a place, b ARRAY<place>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
        "DROP TYPE place; DROP TYPE IF EXISTS place; DROP STREAM IF EXISTS nothing;"
    )
    assert str(session["S"].schema.value[1].type) == "ARRAY<STRUCT<`LAT` DOUBLE, `LON` DOUBLE>>"
    assert session.catalog.types == {}


@pytest.mark.parametrize(
    ("given", "nullable"),
    [
        ("", "WRAPPER"),
        ("WITH (VALUE_PROTOBUF_NULLABLE_REPRESENTATION='OPTIONAL')", "OPTIONAL"),
        ("WITH (VALUE_FORMAT='PROTOBUF')", None),
    ],
)
def test_a_sink_writes_nulls_as_its_source_does(given: str, nullable: str | None) -> None:
    session = made(
        "CREATE STREAM s (k INT KEY, a INT, b INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, "
        "VALUE_FORMAT='PROTOBUF_NOSR', VALUE_PROTOBUF_NULLABLE_REPRESENTATION='WRAPPER');"
        f"CREATE STREAM o {given} AS SELECT * FROM s;",
    )
    assert session["O"].value_format.nullable == nullable


def test_a_sink_inherits_from_the_left_most_source() -> None:
    session = made(
        "CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='s', KEY_FORMAT='JSON', "
        "VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|', PARTITIONS=3, REPLICAS=2);"
        "CREATE STREAM o AS SELECT * FROM s;",
        **{"ksql.output.topic.name.prefix": "out-"},
    )
    sink = session["O"]
    assert sink.topic == "out-O"
    assert sink.key_format == FormatInfo("JSON", wrapped=False)
    assert sink.value_format == FormatInfo("DELIMITED", delimiter="|")
    assert (sink.partitions, sink.replicas) == (3, 2)
