"""The modes of the JDBC source: which rows are read, in which order, and where it goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from connect.errors import ConnectError
from tests.connect.connectors.jdbc.databases import SomeDatabase
from tests.connect.connectors.jdbc.source_driving import DrivenSource, column, values

BEGIN = datetime.fromisoformat("2024-05-17 12:00:00.123000")


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def text_at(seconds: float) -> str:
    return str(at(seconds))


def milliseconds(seconds: float) -> int:
    return round(at(seconds).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def people(database: SomeDatabase) -> SomeDatabase:
    """A table with a number, a name and a time of change."""
    database.execute(
        "CREATE TABLE people (id INT NOT NULL PRIMARY KEY, name VARCHAR(20),"
        " changed {timestamp} NOT NULL)"
    )
    add(database, (1, "Anna", 1), (2, "Ben", 2), (3, "Cleo", 3))
    return database


def add(database: SomeDatabase, *rows: tuple[int, str, float]) -> None:
    database.insert("people", [(number, name, text_at(seconds)) for number, name, seconds in rows])


def change(database: SomeDatabase, number: int, name: str, seconds: float) -> None:
    database.execute(
        f"UPDATE people SET name = '{name}', changed = '{text_at(seconds)}' WHERE id = {number}"
    )


def test_bulk_reads_everything_every_time(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="bulk")
    with source.running() as task:
        first, again = task.poll(), task.poll()
    assert first is not None
    assert again is not None
    assert [column(list(batch), "name") for batch in (first, again)] == [
        ["Anna", "Ben", "Cleo"]
    ] * 2
    assert not first[0].source_offset


def test_records_have_the_table_in_topic_partition_and_schema(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="incrementing", incrementing_column_name="id")
    first, *_ = source.read()
    assert first.topic == "db-people"
    assert first.source_partition == {"protocol": "1", "table": people.full_name("people")}
    assert first.source_offset == {"incrementing": 1}
    assert first.value_schema is not None
    assert first.value_schema.name == "people"
    assert (first.key_schema, first.key, first.partition) == (None, None, None)
    optional = {field.name: field.schema.optional for field in first.value_schema.fields}
    assert optional == {"id": False, "name": True, "changed": False}


def test_incrementing_goes_on_after_the_largest_number(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="incrementing", incrementing_column_name="id")
    assert column(source.read(), "id") == [1, 2, 3]
    add(people, (5, "Eva", 0), (4, "Dan", 0))
    change(people, 1, "Ann", 9)
    assert column(source.read(), "id") == [4, 5]
    assert source.read() == []


def test_incrementing_finds_the_autoincrement_column(database: SomeDatabase) -> None:
    database.execute(
        "CREATE TABLE counted (number {serial}, name VARCHAR(9))",
        "INSERT INTO counted (name) VALUES ('a'), ('b')",
    )
    source = DrivenSource(database, "counted", mode="incrementing")
    records = source.read()
    assert column(records, "number") == [1, 2]
    assert records[-1].source_offset == {"incrementing": 2}


def test_timestamp_finds_changes_but_no_row_twice(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="timestamp", timestamp_column_name="changed")
    records = source.read()
    assert column(records, "name") == ["Anna", "Ben", "Cleo"]
    assert records[-1].source_offset == {
        "timestamp": milliseconds(3),
        "timestamp_nanos": 123_000_000,
    }
    change(people, 2, "Benny", 4)
    add(people, (4, "Dan", 5))
    assert column(source.read(), "name") == ["Benny", "Dan"]
    assert source.read() == []


def test_rows_with_the_same_time_are_read_again_when_only_some_were_stored(
    people: SomeDatabase,
) -> None:
    add(people, (4, "Dan", 3), (5, "Eva", 3), (6, "Finn", 4))
    source = DrivenSource(
        people,
        "people",
        mode="timestamp",
        timestamp_column_name="changed",
        batch_max_rows="4",
    )
    with source.running() as task:
        batch = task.poll()
    assert batch is not None
    assert len(batch) == 4
    for record in batch:
        source.store(record)
    # The fourth has the time of the third and of the fifth: its offset is still the second's.
    assert set(column(source.read(), "id")) == {3, 4, 5, 6}


def test_timestamp_and_incrementing_tell_rows_with_the_same_time_apart(
    people: SomeDatabase,
) -> None:
    add(people, (4, "Dan", 3), (5, "Eva", 3))
    source = DrivenSource(
        people,
        "people",
        mode="timestamp+incrementing",
        timestamp_column_name="changed",
        incrementing_column_name="id",
        batch_max_rows="4",
    )
    with source.running() as task:
        batch = task.poll()
    assert batch is not None
    source.store(batch[-1])
    assert source.offsets[tuple(sorted(batch[-1].source_partition.items()))] == {
        "timestamp": milliseconds(3),
        "timestamp_nanos": 123_000_000,
        "incrementing": 4,
    }
    assert column(source.read(), "id") == [5]
    change(people, 1, "Ann", 7)
    assert values(source.read())[0]["name"] == "Ann"


def test_the_first_timestamp_that_is_not_null_counts(database: SomeDatabase) -> None:
    database.execute(
        "CREATE TABLE people (id INT, changed {timestamp} NULL, added {timestamp} NOT NULL)"
    )
    database.insert(
        "people", [(1, text_at(9), text_at(1)), (2, None, text_at(5)), (3, None, text_at(7))]
    )
    source = DrivenSource(
        database, "people", mode="timestamp", timestamp_column_name="changed,added"
    )
    assert column(source.read(), "id") == [2, 3, 1]


def test_timestamp_initial_leaves_older_rows_out(people: SomeDatabase) -> None:
    settings = {"mode": "timestamp", "timestamp_column_name": "changed"}
    source = DrivenSource(people, "people", timestamp_initial=str(milliseconds(2)), **settings)
    assert column(source.read(), "name") == ["Cleo"]
    assert DrivenSource(people, "people", timestamp_initial="-1", **settings).read() == []


def test_rows_younger_than_the_delay_wait(database: SomeDatabase) -> None:
    database.execute("CREATE TABLE people (id INT, changed {timestamp} NOT NULL)")
    now = datetime.now(UTC).replace(tzinfo=None)
    database.insert(
        "people", [(1, str(now - timedelta(hours=3))), (2, str(now - timedelta(minutes=1)))]
    )
    settings = {"mode": "timestamp", "timestamp_column_name": "changed"}
    hour_ms = str(3_600_000)
    delayed = DrivenSource(database, "people", timestamp_delay_interval_ms=hour_ms, **settings)
    assert column(delayed.read(), "id") == [1]
    assert column(DrivenSource(database, "people", **settings).read(), "id") == [1, 2]


def test_rows_of_the_future_wait(people: SomeDatabase) -> None:
    future = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)
    people.insert("people", [(9, "Zoe", str(future))])
    source = DrivenSource(people, "people", mode="timestamp", timestamp_column_name="changed")
    assert column(source.read(), "name") == ["Anna", "Ben", "Cleo"]


def test_a_query_has_one_topic_and_its_own_partition(people: SomeDatabase) -> None:
    source = DrivenSource(
        people,
        mode="incrementing",
        incrementing_column_name="id",
        query="SELECT * FROM (SELECT id, name FROM people WHERE name LIKE '%n%') AS chosen",
    )
    records = source.read()
    assert values(records) == [{"id": 1, "name": "Anna"}, {"id": 2, "name": "Ben"}]
    assert records[0].topic == "db-"
    assert records[0].source_partition == {"query": "query"}
    assert records[0].value_schema is not None
    assert records[0].value_schema.name is None
    add(people, (4, "Dan", 4))
    assert column(source.read(), "name") == ["Dan"]


def test_a_bulk_query_may_have_its_own_where(people: SomeDatabase) -> None:
    source = DrivenSource(
        people, mode="bulk", query="SELECT name FROM people WHERE id > 1", query_suffix="LIMIT 1"
    )
    with source.running() as task:
        batch = task.poll()
    assert batch is not None
    assert column(list(batch), "name") == ["Ben"]


def test_the_suffix_is_at_the_end_of_every_query(people: SomeDatabase) -> None:
    source = DrivenSource(
        people,
        "people",
        mode="incrementing",
        incrementing_column_name="id",
        query_suffix="LIMIT 2",
    )
    with source.running() as task:
        batches = [task.poll(), task.poll()]
    assert [column(list(batch or ()), "id") for batch in batches] == [[1, 2], [3]]


def test_batches_have_at_most_so_many_rows(people: SomeDatabase) -> None:
    people.insert("people", [(number, "x", text_at(0)) for number in range(4, 2500)])
    source = DrivenSource(
        people, "people", mode="incrementing", incrementing_column_name="id", batch_max_rows="1000"
    )
    with source.running() as task:
        batches = [task.poll() or () for _ in range(3)]
        assert [len(batch) for batch in batches] == [1000, 1000, 499]
        assert task.poll() is None
    ids = [number for batch in batches for number in column(list(batch), "id")]
    assert ids == list(range(1, 2500))


def test_several_tables_are_read_in_turn(people: SomeDatabase) -> None:
    people.execute("CREATE TABLE pets (id INT NOT NULL, name VARCHAR(9))")
    people.insert("pets", [(1, "Rex"), (2, "Minka")])
    source = DrivenSource(
        people, "people", "pets", mode="incrementing", incrementing_column_name="id"
    )
    with source.running() as task:
        records = source.take(task, empty_polls=3)
    assert column([each for each in records if each.topic == "db-pets"], "name") == ["Rex", "Minka"]
    assert len(records) == 5
    assert len(source.offsets) == 2


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"mode": "incrementing", "incrementing_column_name": "number"},
            "incrementing column number on .*people because this column is nullable",
        ),
        (
            {"mode": "timestamp", "timestamp_column_name": "changed"},
            "timestamp columns changed on .*people because all of these columns nullable",
        ),
    ],
)
def test_columns_that_lead_must_not_be_null(
    database: SomeDatabase, settings: dict[str, str], complaint: str
) -> None:
    database.execute("CREATE TABLE people (number INT, changed {timestamp} NULL)")
    database.insert("people", [(1, text_at(1)), (None, None)])
    with pytest.raises(ConnectError, match=complaint):
        DrivenSource(database, "people", **settings).read()
    lenient = DrivenSource(database, "people", validate_non_null="false", **settings)
    assert column(lenient.read(), "number") == [1]


def test_columns_that_are_not_there_are_named(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="incrementing", incrementing_column_name="nr")
    with pytest.raises(ConnectError, match="nr"):
        source.read()


def test_a_new_column_is_in_the_records_of_the_next_query(people: SomeDatabase) -> None:
    source = DrivenSource(people, "people", mode="incrementing", incrementing_column_name="id")
    with source.running() as task:
        source.take(task)
        people.execute("ALTER TABLE people ADD COLUMN city VARCHAR(20)")
        people.insert("people", [(4, "Dan", text_at(4), "Ulm")])
        assert column(source.take(task), "city") == ["Ulm"]


@pytest.mark.parametrize("mode", ["READ_UNCOMMITTED", "REPEATABLE_READ", "serializable"])
def test_isolation_modes_are_taken(people: SomeDatabase, mode: str) -> None:
    source = DrivenSource(
        people,
        "people",
        mode="incrementing",
        incrementing_column_name="id",
        transaction_isolation_mode=mode,
    )
    assert len(source.read()) == 3


def test_names_need_no_quotes(people: SomeDatabase) -> None:
    source = DrivenSource(
        people,
        "people",
        mode="incrementing",
        incrementing_column_name="ID",
        quote_sql_identifiers="never",
    )
    assert column(source.read(), "name") == ["Anna", "Ben", "Cleo"]
