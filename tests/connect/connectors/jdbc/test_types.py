"""Types: what columns of each database become, and that rows survive a copy into every other."""

import datetime
from collections.abc import Mapping
from decimal import Decimal

import pytest

from connect import data
from connect.connectors.jdbc.numeric_mapping import NumericMapping, numeric_schema
from connect.data import ConnectSchema, Struct
from connect.errors import ConfigError
from connect.records import SinkRecord
from tests.connect.connectors.jdbc.conftest import KINDS, SERVER_MARKS, NewDatabase
from tests.connect.connectors.jdbc.databases import SomeDatabase
from tests.connect.connectors.jdbc.sink_driving import put
from tests.connect.connectors.jdbc.source_driving import DrivenSource, values

DAY = datetime.date(2024, 2, 29)
TIME = datetime.time(13, 14, 15)
INSTANT = datetime.datetime(2024, 2, 29, 13, 14, 15, 678000, tzinfo=datetime.UTC)
UUID = "123e4567-e89b-12d3-a456-426614174000"
DIGITS = "123456789012345678901234567890"
# A column of the database, a constant in SQL, the schema of the field, and its value.
Case = tuple[str, str, ConnectSchema, object]

POSTGRES: list[Case] = [
    ("BOOLEAN", "true", data.BOOLEAN, True),
    ("SMALLINT", "-32768", data.INT16, -32768),
    ("INTEGER", "2147483647", data.INT32, 2147483647),
    ("BIGINT", "-9223372036854775808", data.INT64, -9223372036854775808),
    ("OID", "4294967295", data.INT64, 4294967295),
    ("REAL", "1.5", data.FLOAT32, 1.5),
    ("DOUBLE PRECISION", "0.1", data.FLOAT64, 0.1),
    ("NUMERIC(10, 2)", "12345.60", data.decimal(2), Decimal("12345.60")),
    ("NUMERIC(30, 0)", DIGITS, data.decimal(0), Decimal(DIGITS)),
    ("NUMERIC", "1.25", data.decimal(127), Decimal("1.25")),
    ("VARCHAR(20)", "'Zürich 🚀'", data.STRING, "Zürich 🚀"),
    ("CHAR(3)", "'abc'", data.STRING, "abc"),
    ("TEXT", "'tab\tand\\slash'", data.STRING, "tab\tand\\slash"),
    ("BYTEA", "'\\x00ff10'", data.BYTES, b"\x00\xff\x10"),
    ("DATE", "'2024-02-29'", data.date(), DAY),
    ("TIME", "'13:14:15'", data.time(), TIME),
    ("TIMETZ", "'13:14:15+02'", data.time(), TIME),
    ("TIMESTAMP", "'2024-02-29 13:14:15.678'", data.timestamp(), INSTANT),
    ("TIMESTAMPTZ", "'2024-02-29 15:14:15.678+02'", data.timestamp(), INSTANT),
    ("UUID", f"'{UUID}'", data.STRING, UUID),
    ("JSON", """'{"a": [1, 2]}'""", data.STRING, '{"a": [1, 2]}'),
    ("JSONB", """'{"a": [1, 2]}'""", data.STRING, '{"a": [1, 2]}'),
    ("BIT(1)", "B'1'", data.BOOLEAN, True),
    ("BIT(4)", "B'1010'", data.STRING, "1010"),
    ("INET", "'10.0.0.1'", data.STRING, "10.0.0.1"),
    ("INTERVAL", "'1 day 02:00'", data.STRING, "1 day 02:00:00"),
    ("MOOD", "'happy'", data.STRING, "happy"),
    ("POSTCODE", "'89073'", data.STRING, "89073"),
]
MARIADB: list[Case] = [
    ("BOOLEAN", "TRUE", data.INT8, 1),
    ("TINYINT", "-128", data.INT8, -128),
    ("TINYINT UNSIGNED", "255", data.INT16, 255),
    ("SMALLINT", "-32768", data.INT16, -32768),
    ("SMALLINT UNSIGNED", "65535", data.INT32, 65535),
    ("MEDIUMINT", "8388607", data.INT32, 8388607),
    ("INT", "2147483647", data.INT32, 2147483647),
    ("INT UNSIGNED", "4294967295", data.INT64, 4294967295),
    ("BIGINT", "-9223372036854775808", data.INT64, -9223372036854775808),
    ("FLOAT", "1.5", data.FLOAT32, 1.5),
    ("DOUBLE", "0.1", data.FLOAT64, 0.1),
    ("DECIMAL(10, 2)", "12345.60", data.decimal(2), Decimal("12345.60")),
    ("DECIMAL(30, 0)", DIGITS, data.decimal(0), Decimal(DIGITS)),
    ("VARCHAR(20)", "'Zürich 🚀'", data.STRING, "Zürich 🚀"),
    ("CHAR(3)", "'abc'", data.STRING, "abc"),
    ("TEXT", r"'quote '' and \\ slash'", data.STRING, "quote ' and \\ slash"),
    ("BLOB", "X'00ff10'", data.BYTES, b"\x00\xff\x10"),
    ("VARBINARY(9)", "X'00ff27'", data.BYTES, b"\x00\xff'"),
    ("DATE", "'2024-02-29'", data.date(), DAY),
    ("TIME", "'13:14:15'", data.time(), TIME),
    ("DATETIME(3)", "'2024-02-29 13:14:15.678'", data.timestamp(), INSTANT),
    ("TIMESTAMP(3) NULL", "'2024-02-29 13:14:15.678'", data.timestamp(), INSTANT),
    ("YEAR", "2024", data.INT16, 2024),
    ("JSON", """'{"a": [1, 2]}'""", data.STRING, '{"a": [1, 2]}'),
    ("ENUM('sad', 'happy')", "'happy'", data.STRING, "happy"),
    ("SET('a', 'b')", "'a,b'", data.STRING, "a,b"),
    ("BIT(1)", "b'1'", data.BOOLEAN, True),
    ("BIT(12)", "b'101010101010'", data.BYTES, b"\x0a\xaa"),
    ("UUID", f"'{UUID}'", data.STRING, UUID),
]
SQLITE: list[Case] = [
    ("BOOLEAN", "1", data.BOOLEAN, True),
    ("INTEGER", "-9223372036854775808", data.INT64, -9223372036854775808),
    ("SMALLINT", "7", data.INT64, 7),
    ("REAL", "0.1", data.FLOAT64, 0.1),
    ("DOUBLE", "2", data.FLOAT64, 2.0),
    ("NUMERIC(10, 2)", "12345.60", data.decimal(2), Decimal("12345.60")),
    ("DECIMAL", "1.25", data.decimal(127), Decimal("1.25")),
    ("VARCHAR(20)", "'Zürich 🚀'", data.STRING, "Zürich 🚀"),
    ("TEXT", "'abc'", data.STRING, "abc"),
    ("BLOB", "X'00ff10'", data.BYTES, b"\x00\xff\x10"),
    ("DATE", "'2024-02-29'", data.date(), DAY),
    ("TIME", "'13:14:15'", data.time(), TIME),
    ("TIMESTAMP", "'2024-02-29 13:14:15.678'", data.timestamp(), INSTANT),
    ("DATETIME", "1709212455678", data.timestamp(), INSTANT),
    ("DATETIME", "'2024-02-29T15:14:15.678+02:00'", data.timestamp(), INSTANT),
    ("JSON", """'{"a": [1, 2]}'""", data.STRING, '{"a": [1, 2]}'),
]
CASES: Mapping[str, list[Case]] = {"sqlite": SQLITE, "postgres": POSTGRES, "mariadb": MARIADB}
BEFORE = {
    "postgres": [
        "CREATE TYPE MOOD AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN POSTCODE AS TEXT CHECK (length(VALUE) = 5)",
    ]
}


def make_table(database: SomeDatabase) -> list[Case]:
    """A table with a column of every type; a row with values and one with nulls."""
    cases = CASES[database.kind]
    columns = ", ".join(f"c{number} {case[0]}" for number, case in enumerate(cases))
    constants = ", ".join(case[1] for case in cases)
    nulls = ", ".join("NULL" for _ in cases)
    database.execute(
        *BEFORE.get(database.kind, []),
        f"CREATE TABLE types (id INT NOT NULL PRIMARY KEY, {columns})",
        f"INSERT INTO types VALUES (1, {constants})".replace("%", "%%"),
        f"INSERT INTO types VALUES (2, {nulls})",
    )
    return cases


def source_of(database: SomeDatabase, **settings: str) -> DrivenSource:
    return DrivenSource(
        database, "types", mode="incrementing", incrementing_column_name="id", **settings
    )


def test_every_type_has_its_schema_and_value(database: SomeDatabase) -> None:
    cases = make_table(database)
    full, empty = source_of(database).read()
    assert full.value_schema is not None
    found = {field.name: field.schema for field in full.value_schema.fields}
    for number, (column, _, schema, value) in enumerate(cases):
        name = f"c{number}"
        assert found[name] == schema.as_optional(), column
        assert values([full])[0][name] == value, column
        assert values([empty])[0][name] is None, column


@pytest.mark.parametrize("target_kind", KINDS)
def test_rows_survive_a_copy_into_every_database(
    database: SomeDatabase, new_database: NewDatabase, target_kind: str
) -> None:
    cases = make_table(database)
    records = source_of(database).read()
    target = new_database(target_kind)
    put(
        target,
        *(
            SinkRecord("types", 0, None, None, record.value_schema, record.value, offset)
            for offset, record in enumerate(records)
        ),
        auto_create="true",
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="id",
    )
    copied = values(source_of(target).read())
    assert [row["id"] for row in copied] == [1, 2]
    for number, (column, _, schema, value) in enumerate(cases):
        got = copied[0][f"c{number}"]
        if schema.name == data.DECIMAL_NAME and target.kind == "sqlite":
            # A number of SQLite has 15 digits.
            assert float(str(got)) == pytest.approx(float(str(value))), column
        else:
            assert got == value, column
        assert copied[1][f"c{number}"] is None, column


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=SERVER_MARKS)], indirect=True)
def test_arrays_are_left_out(database: SomeDatabase) -> None:
    database.execute(
        "CREATE TABLE types (id INT, numbers INT[], name TEXT)",
        "INSERT INTO types VALUES (1, ARRAY[1, 2], 'a')",
    )
    source = source_of(database, validate_non_null="false")
    assert values(source.read()) == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("connect_logical", INSTANT.replace(microsecond=678912)),
        ("micros_long", 1709212455678912),
        ("micros_string", "1709212455678912"),
        ("micros_iso_datetime_string", "2024-02-29T13:14:15.678912"),
        ("nanos_long", 1709212455678912000),
        ("nanos_string", "1709212455678912000"),
        ("nanos_iso_datetime_string", "2024-02-29T13:14:15.678912000"),
    ],
)
def test_timestamps_can_have_microseconds(
    database: SomeDatabase, granularity: str, expected: object
) -> None:
    database.execute(
        "CREATE TABLE types (id INT NOT NULL, at {timestamp})",
        "INSERT INTO types VALUES (1, '2024-02-29 13:14:15.678912')",
    )
    (value,) = values(source_of(database, timestamp_granularity=granularity).read())
    assert value["at"] == expected


def test_local_times_are_those_of_the_zone(database: SomeDatabase) -> None:
    if database.kind == "mariadb":
        pytest.skip("MariaDB's time zone tables are not loaded here")
    zone = {"db_timezone": "Europe/Berlin"}
    database.execute(
        "CREATE TABLE types (id INT NOT NULL PRIMARY KEY, at {timestamp} NOT NULL)",
        "INSERT INTO types VALUES (1, '2024-07-01 12:00:00'), (2, '2024-12-01 12:00:00')",
    )
    source = DrivenSource(
        database,
        "types",
        mode="timestamp+incrementing",
        timestamp_column_name="at",
        incrementing_column_name="id",
        **zone,
    )
    records = source.read()
    assert [str(value["at"]) for value in values(records)] == [
        "2024-07-01 10:00:00+00:00",
        "2024-12-01 11:00:00+00:00",
    ]
    assert source.read() == []
    schema = records[0].value_schema
    assert schema is not None
    moment = datetime.datetime(2025, 7, 2, 10, 0, tzinfo=datetime.UTC)
    put(
        database, SinkRecord("types", 0, None, None, schema, Struct(schema, [3, moment]), 0), **zone
    )
    assert database.rows("SELECT CAST(at AS CHAR(19)) FROM types WHERE id = 3") == [
        ("2025-07-02 12:00:00",)
    ]
    assert [value["id"] for value in values(source.read())] == [3]


@pytest.mark.parametrize("database", [pytest.param("mariadb", marks=SERVER_MARKS)], indirect=True)
def test_an_unknown_zone_of_mariadb_is_reported(database: SomeDatabase) -> None:
    with pytest.raises(ConfigError, match="does not know the time zone Europe/Berlin"):
        source_of(database, db_timezone="Europe/Berlin").read()


@pytest.mark.parametrize(
    ("mapping", "precision", "scale", "schema"),
    [
        ("none", 5, 0, data.decimal(0)),
        ("none", 5, 2, data.decimal(2)),
        ("none", None, None, data.decimal(127)),
        ("precision_only", 2, 0, data.INT8),
        ("precision_only", 4, 0, data.INT16),
        ("precision_only", 9, 0, data.INT32),
        ("precision_only", 18, 0, data.INT64),
        ("precision_only", 19, 0, data.decimal(0)),
        ("precision_only", 5, 2, data.decimal(2)),
        ("precision_only", None, None, data.decimal(127)),
        ("best_fit", 5, 0, data.INT32),
        ("best_fit", 5, -2, data.INT32),
        ("best_fit", 18, 2, data.FLOAT64),
        ("best_fit", 19, 2, data.decimal(2)),
        ("best_fit", 19, 0, data.decimal(0)),
        ("best_fit_eager_double", 30, 2, data.FLOAT64),
        ("best_fit_eager_double", 30, 0, data.decimal(0)),
        ("best_fit_eager_double", 3, 0, data.INT16),
    ],
)
def test_numeric_mapping(
    mapping: str, precision: int | None, scale: int | None, schema: ConnectSchema
) -> None:
    assert numeric_schema(NumericMapping(mapping), precision, scale) == schema


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"numeric_mapping": "best_fit"}, [7, 1.5]),
        ({"numeric_mapping": "PRECISION_ONLY"}, [7, Decimal("1.50")]),
        ({"numeric_precision_mapping": "true"}, [7, Decimal("1.50")]),
        ({}, [Decimal(7), Decimal("1.50")]),
    ],
)
def test_numeric_columns_are_read_as_they_are_mapped(
    database: SomeDatabase, settings: dict[str, str], expected: list[object]
) -> None:
    database.execute(
        "CREATE TABLE types (id INT NOT NULL, whole NUMERIC(9, 0), part NUMERIC(9, 2))",
        "INSERT INTO types VALUES (1, 7, 1.50)",
    )
    (value,) = values(source_of(database, **settings).read())
    assert [value["whole"], value["part"]] == expected
    assert [type(each) for each in (value["whole"], value["part"])] == [*map(type, expected)]
