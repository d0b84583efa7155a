"""The databases that the tests of JDBC run on, each with an empty database for one test."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer

# What the types of tests are called, where databases differ.
TYPES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "timestamp": "TIMESTAMP",
        "bytes": "BLOB",
        "boolean": "BOOLEAN",
        "double": "REAL",
    },
    "postgres": {
        "serial": "SERIAL PRIMARY KEY",
        "timestamp": "TIMESTAMP",
        "bytes": "BYTEA",
        "boolean": "BOOLEAN",
        "double": "DOUBLE PRECISION",
    },
    "mariadb": {
        "serial": "INT AUTO_INCREMENT PRIMARY KEY",
        "timestamp": "DATETIME(6)",
        "bytes": "BLOB",
        "boolean": "BOOLEAN",
        "double": "DOUBLE",
    },
}


@dataclass(frozen=True, slots=True)
class SomeDatabase:
    """An empty database of one kind."""

    kind: str
    name: str
    settings: Mapping[str, str]
    connect: Callable[[], Any]  # Any: connections of three drivers

    def execute(self, *statements: str) -> None:
        """Runs statements; {timestamp} and such are this database's types."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(self.text(statement))
            connection.commit()

    def text(self, statement: str) -> str:
        """A statement in this database's words."""
        for name, written in TYPES[self.kind].items():
            statement = statement.replace(f"{{{name}}}", written)
        return statement

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Adds rows, in one transaction."""
        sign = "?" if self.kind == "sqlite" else "%s"
        values = ", ".join(sign for _ in rows[0])
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows)
            connection.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(self.text(query))
            return [tuple(row) for row in cursor.fetchall()]

    def full_name(self, table: str) -> str:
        """How offsets name a table."""
        prefixes = {"sqlite": "", "postgres": f"{self.name}.public.", "mariadb": f"{self.name}."}
        return prefixes[self.kind] + table


def sqlite_database(folder: Path) -> SomeDatabase:
    """A file."""
    file = folder / "database.sqlite"
    return SomeDatabase(
        "sqlite",
        str(file),
        {"connection.url": f"jdbc:sqlite:{file}"},
        lambda: sqlite3.connect(file, timeout=10.0),
    )


def server_database(kind: str, server: PostgresServer | MariadbServer, name: str) -> SomeDatabase:
    """A database of a server that exists."""
    settings = {
        "connection.url": server.jdbc_url(name),
        "connection.user": server.user,
        "connection.password": server.password,
        "connection.backoff.ms": "50",
    }
    return SomeDatabase(kind, name, settings, lambda: server.connect(name))
