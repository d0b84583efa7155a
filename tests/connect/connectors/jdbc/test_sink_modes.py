"""The modes of the JDBC sink: which rows there are after some records."""

import pytest

from connect import data
from connect.data import Struct
from connect.errors import ConnectError, DataError
from connect.records import SinkRecord
from tests.connect.connectors.jdbc.databases import SomeDatabase
from tests.connect.connectors.jdbc.sink_driving import person, put, refused, row, running_sink

ALL = "SELECT id, name, age FROM people ORDER BY id, name"
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
NAME = data.struct("name", {"name": data.OPTIONAL_STRING})
BY_KEY = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}


@pytest.fixture
def people(database: SomeDatabase) -> SomeDatabase:
    """A table of people with one in it."""
    database.execute("CREATE TABLE people (id INT NOT NULL PRIMARY KEY, name VARCHAR(9), age INT)")
    database.insert("people", [(1, "Anna", 30)])
    return database


def keyed(number: int, name: str | None) -> SinkRecord:
    """A record whose number is its key; without a name it is a tombstone."""
    return row(None if name is None else {"name": name}, schema=NAME, key=number)


def test_insert_adds_rows(people: SomeDatabase) -> None:
    put(people, person(2, "Ben", 20), person(3, None))
    assert people.rows(ALL) == [(1, "Anna", 30), (2, "Ben", 20), (3, None, None)]


def test_insert_of_a_key_that_is_there_fails_and_writes_nothing(people: SomeDatabase) -> None:
    with pytest.raises(ConnectError, match="the table does not accept a row") as failure:
        put(people, person(2, "Ben"), person(1, "Ann", offset=1))
    assert "errors.tolerance=all" in failure.value.hint
    assert people.rows(ALL) == [(1, "Anna", 30)]


def test_upsert_adds_and_replaces(people: SomeDatabase) -> None:
    put(people, person(1, "Ann", 31), person(2, "Ben", 20), **UPSERT)
    assert people.rows(ALL) == [(1, "Ann", 31), (2, "Ben", 20)]
    put(people, person(2, "Benny"), **UPSERT)
    assert people.rows(ALL) == [(1, "Ann", 31), (2, "Benny", None)]


def test_the_last_record_of_a_key_counts(people: SomeDatabase) -> None:
    put(people, person(2, "a"), person(1, "b"), person(2, "c"), person(1, "d", 5), **UPSERT)
    assert people.rows(ALL) == [(1, "d", 5), (2, "c", None)]


def test_update_leaves_out_what_is_not_there(people: SomeDatabase) -> None:
    put(
        people,
        person(1, "Ann", 31),
        person(2, "Ben"),
        insert_mode="update",
        pk_mode="record_value",
        pk_fields="id",
    )
    assert people.rows(ALL) == [(1, "Ann", 31)]


def test_a_primitive_key_is_the_column_of_pk_fields(people: SomeDatabase) -> None:
    put(people, keyed(2, "Ben"), **BY_KEY)
    assert people.rows(ALL) == [(1, "Anna", 30), (2, "Ben", None)]


def test_a_struct_key_has_several_columns(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE stock (shop INT, item INT, count INT, PRIMARY KEY (shop, item))")
    keys = data.struct("k", {"shop": data.INT32, "item": data.INT32, "other": data.OPTIONAL_INT32})
    counts = data.struct("v", {"count": data.INT32})

    def stock(shop: int, item: int, count: int | None) -> SinkRecord:
        key = Struct(keys, [shop, item, None])
        values = None if count is None else {"count": count}
        return row(values, schema=counts, key=key, topic="stock")

    settings = {**BY_KEY, "pk_fields": "shop,item", "delete_enabled": "true"}
    put(database, stock(1, 1, 5), stock(1, 2, 6), stock(1, 1, 7), **settings)
    assert sorted(database.rows("SELECT * FROM stock")) == [(1, 1, 7), (1, 2, 6)]
    put(database, stock(1, 1, None), stock(2, 1, 9), **settings)
    assert sorted(database.rows("SELECT * FROM stock")) == [(1, 2, 6), (2, 1, 9)]


def test_without_pk_fields_the_whole_key_is_the_key(database: SomeDatabase) -> None:
    keys = data.struct("k", {"shop": data.INT32, "item": data.INT32})
    value = data.struct("v", {"count": data.INT32})
    record = row({"count": 3}, schema=value, key=Struct(keys, [1, 2]), topic="stock")
    put(database, record, auto_create="true", insert_mode="upsert", pk_mode="record_key")
    put(database, record, auto_create="true", insert_mode="upsert", pk_mode="record_key")
    assert database.rows("SELECT shop, item, count FROM stock") == [(1, 2, 3)]


def test_the_place_in_the_topic_can_be_the_key(database: SomeDatabase) -> None:
    settings = {"insert_mode": "upsert", "pk_mode": "kafka", "auto_create": "true"}
    put(database, person(1, "a", offset=5), person(1, "b", offset=6), **settings)
    put(database, person(1, "c", offset=6), **settings)
    query = (
        "SELECT __connect_topic, __connect_partition, __connect_offset, name FROM people"
        " ORDER BY __connect_offset"
    )
    assert database.rows(query) == [("people", 0, 5, "a"), ("people", 0, 6, "c")]


def test_a_tombstone_deletes(people: SomeDatabase) -> None:
    settings = {**BY_KEY, "delete_enabled": "true"}
    put(people, keyed(2, "Ben"), keyed(3, "Cleo"), **settings)
    assert len(people.rows(ALL)) == 3
    put(people, row(None, key=2), row(None, key=9), **settings)
    assert people.rows(ALL) == [(1, "Anna", 30), (3, "Cleo", None)]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(1, None), (1, "new")], [(1, "new", None)]),
        ([(2, "b"), (2, None)], [(1, "Anna", 30)]),
        ([(2, "b"), (2, None), (2, "c")], [(1, "Anna", 30), (2, "c", None)]),
        ([(1, "x"), (1, None), (2, "y")], [(2, "y", None)]),
        ([(1, "x")], [(1, "x", 30)]),
    ],
)
@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_deletes_and_rows_of_a_key_keep_their_order(
    people: SomeDatabase,
    mode: str,
    steps: list[tuple[int, str | None]],
    expected: list[tuple[object, ...]],
) -> None:
    if mode == "insert" and steps[0] == (1, "x"):
        people.execute("DELETE FROM people")
        expected = [each if each[:2] != (1, "x") else (1, "x", None) for each in expected]
    settings = {**BY_KEY, "insert_mode": mode, "delete_enabled": "true"}
    put(people, *(keyed(*step) for step in steps), **settings)
    assert people.rows(ALL) == expected


def test_a_later_record_with_fewer_fields_keeps_the_others(people: SomeDatabase) -> None:
    without_age = data.struct("person", {"id": data.INT32, "name": data.STRING})
    later = row({"id": 2, "name": "Benny"}, schema=without_age)
    put(people, person(2, "Ben", 20), later, person(3, "Cleo"), **UPSERT)
    assert people.rows(ALL) == [(1, "Anna", 30), (2, "Benny", 20), (3, "Cleo", None)]


def test_a_row_of_keys_only_is_upserted_too(database: SomeDatabase) -> None:
    schema = data.struct("tag", {"id": data.INT32})
    tags = [row({"id": number}, schema=schema, topic="tags") for number in (1, 2, 1)]
    put(database, *tags, auto_create="true", **UPSERT)
    put(database, *tags, auto_create="true", **UPSERT)
    assert database.rows("SELECT id FROM tags ORDER BY id") == [(1,), (2,)]


def test_only_the_fields_of_the_whitelist_are_written(people: SomeDatabase) -> None:
    put(people, person(1, "Ann", 99), fields_whitelist="name", **UPSERT)
    assert people.rows(ALL) == [(1, "Ann", 30)]


def test_nulls_are_replaced_by_defaults_if_wanted(people: SomeDatabase) -> None:
    schema = data.struct(
        "person", {"id": data.INT32, "name": data.OPTIONAL_STRING.with_(default="nobody")}
    )
    records = [row({"id": number}, schema=schema) for number in (2, 3)]
    put(people, records[0])
    put(people, records[1], replace_null_with_default="false")
    assert people.rows(ALL) == [(1, "Anna", 30), (2, "nobody", None), (3, None, None)]


def test_names_of_tables_are_made_of_topics(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE copy_of_people (id INT, name VARCHAR(9), age INT)")
    put(database, person(1, "Anna"), table_name_format="copy_of_${topic}")
    assert database.rows("SELECT name FROM copy_of_people") == [("Anna",)]


def test_a_task_writes_several_tables(database: SomeDatabase) -> None:
    records = [
        row({"id": number, "name": topic}, topic=topic)
        for number in range(3)
        for topic in ("people", "pets")
    ]
    put(database, *records, auto_create="true")
    for topic in ("people", "pets"):
        assert sorted(database.rows(f"SELECT id, name FROM {topic}")) == [
            (number, topic) for number in range(3)
        ]


def test_small_batches_write_everything(people: SomeDatabase) -> None:
    put(people, *(person(number, "x") for number in range(2, 102)), batch_size="7", **UPSERT)
    assert people.rows("SELECT count(*) FROM people") == [(101,)]


def test_a_record_without_value_is_refused_unless_it_deletes(people: SomeDatabase) -> None:
    with pytest.raises(DataError, match="no value") as failure:
        put(people, row(None, key=1, offset=7), **BY_KEY)
    assert 'topic "people" partition 0 offset 7' in str(failure.value)


def test_a_record_without_schema_is_refused(people: SomeDatabase) -> None:
    record = person(2, "Ben").changed(value_schema=None, value={"id": 2})
    with pytest.raises(DataError, match="no schema"):
        put(people, record)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"pk_mode": "record_key", "pk_fields": "id"}, "needs records with a key"),
        ({"pk_mode": "record_value", "pk_fields": "nr"}, '"nr" of pk.fields is not in'),
    ],
)
def test_records_without_the_key_are_refused(
    people: SomeDatabase, settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        put(people, person(2, "Ben"), **settings)


@pytest.mark.parametrize("batch_size", ["3000", "4"])
def test_bad_records_are_found_and_reported(people: SomeDatabase, batch_size: str) -> None:
    too_long = "a name of far too many letters"
    if people.kind == "sqlite":
        people.execute(
            "DROP TABLE people",
            "CREATE TABLE people (id INT PRIMARY KEY, name TEXT CHECK (length(name) < 9), age INT)",
        )
    records = [person(number, "fits", offset=number) for number in range(2, 40)]
    for bad in (5, 6, 20):
        records[bad] = person(bad + 2, too_long, offset=bad + 2)
    assert refused(people, *records, batch_size=batch_size) == [7, 8, 22]
    assert people.rows("SELECT count(*) FROM people WHERE name = 'fits'") == [(35,)]


def test_records_that_are_no_rows_are_reported(people: SomeDatabase) -> None:
    assert refused(people, person(2, "Ben"), row(None, offset=3), person(3, "Cleo")) == [3]
    assert len(people.rows(ALL)) == 3


def test_records_of_one_batch_may_have_other_schemas(people: SomeDatabase) -> None:
    swapped = data.struct("person", {"age": data.INT32, "name": data.STRING, "id": data.INT32})
    other = row({"age": 7, "name": "Cleo", "id": 3}, schema=swapped)
    put(people, person(2, "Ben", 5), other, person(4, "Dan", 6))
    assert people.rows(ALL)[1:] == [(2, "Ben", 5), (3, "Cleo", 7), (4, "Dan", 6)]


def test_a_task_keeps_its_connection_and_plans(people: SomeDatabase) -> None:
    with running_sink(people, **UPSERT) as task:
        for number in range(2, 6):
            task.put([person(number, "x")])
        task.put([])
    assert len(people.rows(ALL)) == 5


def test_names_need_no_quotes(people: SomeDatabase) -> None:
    put(people, person(2, "Ben"), quote_sql_identifiers="NEVER", **UPSERT)
    assert len(people.rows(ALL)) == 2


def test_columns_are_found_in_other_letters(people: SomeDatabase) -> None:
    shouted = data.struct("person", {"ID": data.INT32, "NAME": data.STRING})
    put(people, row({"ID": 2, "NAME": "Ben"}, schema=shouted))
    assert people.rows(ALL) == [(1, "Anna", 30), (2, "Ben", None)]
