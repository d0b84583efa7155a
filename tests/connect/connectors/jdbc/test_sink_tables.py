"""Tables that the JDBC sink creates and widens."""

import datetime
from decimal import Decimal

import pytest

from connect import data
from connect.errors import ConnectError
from tests.connect.connectors.jdbc.databases import SomeDatabase
from tests.connect.connectors.jdbc.sink_driving import PERSON, person, put, row

UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}


def test_a_missing_table_is_an_error(database: SomeDatabase) -> None:
    with pytest.raises(ConnectError, match="is missing and auto-creation is disabled"):
        put(database, person(1, "Anna"))


def test_a_missing_table_is_created_with_its_key(database: SomeDatabase) -> None:
    put(database, person(1, "Anna", 30), auto_create="true", **UPSERT)
    put(database, person(1, "Ann", 31), **UPSERT)
    assert database.rows("SELECT id, name, age FROM people") == [(1, "Ann", 31)]


def test_created_columns_have_defaults(database: SomeDatabase) -> None:
    schema = data.struct(
        "thing",
        {
            "id": data.INT32,
            "name": data.OPTIONAL_STRING.with_(default="no 'name'"),
            "count": data.OPTIONAL_INT64.with_(default=7),
            "price": data.decimal(2, optional=True).with_(default=Decimal("1.50")),
            "day": data.date(optional=True).with_(default=datetime.date(2024, 5, 17)),
        },
    )
    full = {
        "id": 1,
        "name": "a",
        "count": 1,
        "price": Decimal("9.99"),
        "day": datetime.date(2020, 1, 1),
    }
    put(database, row(full, schema=schema, topic="things"), auto_create="true", **UPSERT)
    database.execute("INSERT INTO things (id) VALUES (2)")
    ((name, count, price, day),) = database.rows(
        "SELECT name, count, price, day FROM things WHERE id = 2"
    )
    assert (name, count, Decimal(str(price)), str(day)) == (
        "no 'name'",
        7,
        Decimal("1.5"),
        "2024-05-17",
    )


def test_missing_columns_are_an_error(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE people (id INT PRIMARY KEY)")
    with pytest.raises(ConnectError, match=r"missing fields \(name, age\) and auto-evolution"):
        put(database, person(1, "Anna"), auto_create="true")


def test_missing_columns_are_added(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE people (id INT PRIMARY KEY)", "INSERT INTO people VALUES (1)")
    put(database, person(2, "Ben", 5), auto_evolve="true", **UPSERT)
    assert database.rows("SELECT id, name, age FROM people ORDER BY id") == [
        (1, None, None),
        (2, "Ben", 5),
    ]


def test_a_required_field_without_default_cannot_be_added(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE people (id INT PRIMARY KEY)")
    schema = data.struct("person", {"id": data.INT32, "city": data.STRING})
    with pytest.raises(ConnectError, match=r"Cannot ALTER .* to add missing field city"):
        put(database, row({"id": 1, "city": "Ulm"}, schema=schema), auto_evolve="true")


def test_schemas_that_grow_while_records_come_widen_the_table(database: SomeDatabase) -> None:
    wider = data.struct("person", {**_fields(), "city": data.OPTIONAL_STRING})
    records = [
        person(1, "Anna", 1),
        row({"id": 2, "name": "Ben", "city": "Ulm"}, schema=wider),
        person(1, "Ann", 2),
    ]
    put(database, *records, auto_create="true", auto_evolve="true", **UPSERT)
    assert database.rows("SELECT id, name, age, city FROM people ORDER BY id") == [
        (1, "Ann", 2, None),
        (2, "Ben", None, "Ulm"),
    ]


def _fields() -> dict[str, data.ConnectSchema]:
    return {field.name: field.schema for field in PERSON.fields}


def test_a_table_that_was_dropped_is_created_again(database: SomeDatabase) -> None:
    put(database, person(1, "Anna"), auto_create="true", **UPSERT)
    database.execute("DROP TABLE people")
    put(database, person(2, "Ben"), auto_create="true", **UPSERT)
    assert database.rows("SELECT id FROM people") == [(2,)]


def test_deletes_need_no_table(database: SomeDatabase) -> None:
    settings = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}
    schema = data.struct("person", {"name": data.STRING})
    put(
        database,
        row(None, key=1),
        row({"name": "Ben"}, schema=schema, key=2),
        row(None, key=2),
        row({"name": "Cleo"}, schema=schema, key=3),
        delete_enabled="true",
        auto_create="true",
        **settings,
    )
    assert database.rows("SELECT id, name FROM people") == [(3, "Cleo")]


def test_views_are_written_only_when_they_are_named(database: SomeDatabase) -> None:
    database.execute(
        "CREATE TABLE base (id INT PRIMARY KEY, name VARCHAR(9), age INT)",
        "CREATE VIEW people AS SELECT id, name, age FROM base",
    )
    with pytest.raises(ConnectError, match="is a view"):
        put(database, person(1, "Anna"))
    if database.kind != "sqlite":  # where views are read-only
        put(database, person(1, "Anna"), table_types="TABLE,VIEW")
        assert database.rows("SELECT name FROM base") == [("Anna",)]


def test_fields_without_a_column_type_are_named(database: SomeDatabase) -> None:
    schema = data.struct("list", {"id": data.INT32, "numbers": data.array(data.INT32)})
    with pytest.raises(ConnectError, match=r"no column type for .*ARRAY"):
        put(database, row({"id": 1, "numbers": [1]}, schema=schema), auto_create="true")


def test_names_with_special_characters_and_keywords_are_quoted(database: SomeDatabase) -> None:
    schema = data.struct("odd", {"select": data.INT32, "with space": data.STRING})
    record = row({"select": 1, "with space": "x"}, schema=schema, topic="order-by")
    settings = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "select"}
    put(database, record, record, auto_create="true", **settings)
    put(database, record, auto_create="true", **settings)
    quote = "`" if database.kind == "mariadb" else '"'
    assert database.rows(f"SELECT * FROM {quote}order-by{quote}") == [(1, "x")]
