"""Orders: the table to copy, in three databases."""

import datetime
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.report import Report
from broker.client import producer
from connect.converters.json_converter import JsonConverter
from connect.data import BOOLEAN, FLOAT64, INT32, INT64, OPTIONAL_STRING, Struct, struct, timestamp
from tests.support.mariadb import MariadbServer
from tests.support.peer import PeerMissing
from tests.support.postgres import PostgresServer

COLUMNS = ("id", "customer", "name", "price", "quantity", "paid", "created", "note")
_TYPES = {
    "SQLite": "id INTEGER PRIMARY KEY, customer INT, name TEXT, price REAL, quantity INT,"
    " paid BOOLEAN, created TIMESTAMP, note TEXT",
    "PostgreSQL": "id BIGINT PRIMARY KEY, customer INT, name VARCHAR(40), price FLOAT8,"
    " quantity INT, paid BOOLEAN, created TIMESTAMP, note TEXT",
    "MariaDB": "id BIGINT PRIMARY KEY, customer INT, name VARCHAR(40), price DOUBLE, quantity INT,"
    " paid BOOLEAN, created DATETIME(3), note TEXT",
}
_BEGIN = datetime.datetime.fromisoformat("2024-05-17 12:00:00")


@dataclass(frozen=True, slots=True)
class Database:
    """A database with a driver's connection and the settings of a connector for it."""

    name: str
    settings: dict[str, str]
    connection: Any  # of three drivers
    placeholder: str  # of a value in a statement

    def execute(self, statement: str) -> Any:
        """Execute one statement; return the cursor."""
        cursor = self.connection.cursor()
        cursor.execute(statement)
        return cursor

    def create_table(self, table: str) -> None:
        """Create an empty table of orders, replacing an existing one."""
        self.execute(f"DROP TABLE IF EXISTS {table}")
        self.execute(f"CREATE TABLE {table} ({_TYPES[self.name]})")
        self.connection.commit()

    def fill(self, table: str, count: int) -> None:
        """Insert orders."""
        placeholders = ", ".join(self.placeholder for _ in COLUMNS)
        cursor = self.connection.cursor()
        rows = (_order(self.name, number) for number in range(count))
        cursor.executemany(f"INSERT INTO {table} VALUES ({placeholders})", list(rows))
        self.connection.commit()

    def count(self, table: str) -> int:
        """The number of rows, from the largest id: rows are inserted in order of their ids."""
        (last,) = self.execute(f"SELECT MAX(id) FROM {table}").fetchone()
        self.connection.rollback()
        return 0 if last is None else int(last) + 1


def _order(database: str, number: int) -> tuple[object, ...]:
    created = _BEGIN + datetime.timedelta(milliseconds=number)
    return (
        number,
        number % 5000,
        f"customer {number % 997}",
        number % 10000 / 100,
        number % 7,
        number % 2 == 0,
        created.isoformat(sep=" ") if database == "SQLite" else created,
        f"a note about order {number}",
    )


ORDER = struct(
    "Order",
    {
        "id": INT64,
        "customer": INT32,
        "name": OPTIONAL_STRING,
        "price": FLOAT64,
        "quantity": INT32,
        "paid": BOOLEAN,
        "created": timestamp(),
        "note": OPTIONAL_STRING,
    },
)


def write_orders(bootstrap: str, topic: str, count: int) -> None:
    """Write orders to a topic, as JSON with schemas."""
    converter = JsonConverter()
    with producer(bootstrap) as out:
        for number in range(count):
            row = [*_order("a topic", number)]
            created = row[COLUMNS.index("created")]
            assert isinstance(created, datetime.datetime)
            row[COLUMNS.index("created")] = created.replace(tzinfo=datetime.UTC)
            out.send(topic, converter.from_connect_data(topic, (), ORDER, Struct(ORDER, row)))


@contextmanager
def sqlite() -> Iterator[Database]:
    """A database file in a temporary folder."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "orders.sqlite"
        connection = sqlite3.connect(file, timeout=60.0)
        connection.execute("PRAGMA journal_mode = WAL")
        yield Database("SQLite", {"connection.url": f"jdbc:sqlite:{file}"}, connection, "?")
        connection.close()


@contextmanager
def server(kind: type[PostgresServer] | type[MariadbServer]) -> Iterator[Database]:
    """A database on a temporary server."""
    with kind() as running:
        running.create_database("orders")
        connection: Any = running.connect("orders")
        if isinstance(running, PostgresServer):
            connection.autocommit = False
        else:
            connection.autocommit(False)
        settings = {
            "connection.url": running.jdbc_url("orders"),
            "connection.user": running.user,
            "connection.password": running.password,
        }
        name = "PostgreSQL" if isinstance(running, PostgresServer) else "MariaDB"
        yield Database(name, settings, connection, "%s")
        connection.close()


def databases(report: Report) -> Iterator[Database]:
    """Yield the available databases, one after the other."""
    with sqlite() as database:
        yield database
    for kind in (PostgresServer, MariadbServer):
        try:
            with server(kind) as database:
                yield database
        except PeerMissing as missing:
            report.note(f"{kind.name} skipped: {missing}")
