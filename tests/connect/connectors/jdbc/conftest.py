"""Databases for the tests of JDBC: SQLite, and PostgreSQL and MariaDB if available."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connect.connectors.jdbc.databases import SomeDatabase, server_database, sqlite_database
from tests.support.mariadb import MariadbServer
from tests.support.peer import PeerMissing, skip_without_peer
from tests.support.postgres import PostgresServer

SERVER_MARKS = [pytest.mark.peer, pytest.mark.slow, pytest.mark.xdist_group("databases")]
KINDS = [
    "sqlite",
    pytest.param("postgres", marks=SERVER_MARKS),
    pytest.param("mariadb", marks=SERVER_MARKS),
]
# Databases of servers that a test has made; the next test gets them emptied, which is faster.
_made: set[tuple[str, str]] = set()

NewDatabase = Callable[[str], SomeDatabase]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that all tests share."""
    try:
        server = PostgresServer()
    except PeerMissing as missing:
        skip_without_peer(f"no PostgreSQL: {missing}")
    with server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A server that all tests share."""
    try:
        server = MariadbServer()
    except PeerMissing as missing:
        skip_without_peer(f"no MariaDB: {missing}")
    with server:
        yield server


@pytest.fixture
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> NewDatabase:
    """Makes an empty database of a kind."""

    numbers = itertools.count()

    def make(kind: str) -> SomeDatabase:
        number = next(numbers)
        if kind == "sqlite":
            folder = tmp_path / f"database-{number}"
            folder.mkdir()
            return sqlite_database(folder)
        server: PostgresServer | MariadbServer = request.getfixturevalue(kind)
        name = f"test_{number}"
        if (kind, name) in _made:
            server.empty_database(name)
        else:
            server.create_database(name)
            _made.add((kind, name))
        return server_database(kind, server, name)

    return make


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, new_database: NewDatabase) -> SomeDatabase:
    """An empty database, of every kind in turn."""
    return new_database(request.param)
