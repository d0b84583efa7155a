"""A database that dies in the middle: the source goes on where it was, the sink writes all."""

from collections.abc import Iterator

import pytest

from connect.connectors.jdbc.source_task import JdbcSourceTask
from connect.errors import ConnectError, RetriableError
from connect.records import SourceRecord
from connect.retries import is_transient
from tests.connect.connectors.jdbc.conftest import SERVER_MARKS
from tests.connect.connectors.jdbc.databases import SomeDatabase, server_database
from tests.connect.connectors.jdbc.sink_driving import person, put, running_sink
from tests.connect.connectors.jdbc.source_driving import DrivenSource, column
from tests.support.mariadb import MariadbServer
from tests.support.peer import PeerMissing, skip_without_peer
from tests.support.postgres import PostgresServer

pytestmark = SERVER_MARKS
Server = PostgresServer | MariadbServer


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def mortal(request: pytest.FixtureRequest) -> Iterator[tuple[str, Server]]:
    """A server that the tests of this file may kill."""
    try:
        server: Server = PostgresServer() if request.param == "postgres" else MariadbServer()
    except PeerMissing as missing:
        skip_without_peer(f"no {request.param}: {missing}")
    with server:
        yield request.param, server


@pytest.fixture
def people(mortal: tuple[str, Server], request: pytest.FixtureRequest) -> SomeDatabase:
    kind, server = mortal
    name = f"people_{abs(hash(request.node.name))}"
    server.create_database(name)
    database = server_database(kind, server, name)
    database.execute("CREATE TABLE people (id INT NOT NULL PRIMARY KEY, name VARCHAR(9), age INT)")
    return database


def test_the_source_goes_on_after_its_last_row(
    mortal: tuple[str, Server], people: SomeDatabase
) -> None:
    _, server = mortal
    people.insert("people", [(number, "x", 0) for number in range(5000)])
    source = DrivenSource(
        people, "people", mode="incrementing", incrementing_column_name="id", batch_max_rows="700"
    )
    found: list[SourceRecord] = []
    with source.running() as task:
        for _ in range(2):
            found += poll(task)
        server.kill()
        # Rows that were fetched already still come.
        with pytest.raises(RetriableError):
            take_until_it_fails(task, found)
        with pytest.raises(RetriableError, match="cannot connect"):
            task.poll()
        server.start()
        while len(found) < 5000:
            found += poll(task)
    assert column(found, "id") == list(range(5000))


def take_until_it_fails(task: JdbcSourceTask, found: list[SourceRecord]) -> None:
    while True:
        found += poll(task)


def poll(task: JdbcSourceTask) -> list[SourceRecord]:
    return list(task.poll() or ())


def test_the_source_gives_up_after_the_configured_retries(
    mortal: tuple[str, Server], people: SomeDatabase
) -> None:
    _, server = mortal
    people.insert("people", [(1, "x", 0)])
    source = DrivenSource(people, "people", mode="bulk", query_retry_attempts="1")
    with source.running() as task:
        assert len(poll(task)) == 1
        server.kill()
        with pytest.raises(RetriableError):
            task.poll()
        with pytest.raises(ConnectError, match="cannot") as failure:
            task.poll()
        assert not is_transient(failure.value)
    server.start()


def test_a_source_that_never_reaches_its_database_says_so(
    mortal: tuple[str, Server], people: SomeDatabase
) -> None:
    _, server = mortal
    server.kill()
    source = DrivenSource(people, "people", mode="bulk", connection_attempts="2")
    with pytest.raises(ConnectError, match="cannot connect") as failure:
        source.read()
    assert people.name in failure.value.at
    assert "connection.url" in failure.value.hint
    server.start()


def test_the_sink_writes_again_what_failed(
    mortal: tuple[str, Server], people: SomeDatabase
) -> None:
    _, server = mortal
    settings = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
    first = [person(number, "x") for number in range(10)]
    second = [person(number, "y") for number in range(5, 15)]
    with running_sink(people, **settings) as task:
        task.put(first)
        server.kill()
        for _ in range(2):
            with pytest.raises(RetriableError):
                task.put(second)
        assert task.context.timeouts_ms == [1, 1]  # type: ignore[attr-defined]
        server.start()
        task.put(second)
    assert people.rows("SELECT name, count(*) FROM people GROUP BY name ORDER BY name") == [
        ("x", 5),
        ("y", 10),
    ]


def test_the_sink_gives_up_after_its_retries(
    mortal: tuple[str, Server], people: SomeDatabase
) -> None:
    _, server = mortal
    with running_sink(people, max_retries="1") as task:
        server.kill()
        with pytest.raises(RetriableError):
            task.put([person(1, "x")])
        with pytest.raises(ConnectError) as failure:
            task.put([person(1, "x")])
        assert not isinstance(failure.value, RetriableError)
        assert not is_transient(failure.value)
    server.start()
    put(people, person(1, "x"))
