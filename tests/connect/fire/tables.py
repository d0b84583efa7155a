"""A table that changes while its database is killed, and the copy that must become equal to it."""

import datetime
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import psycopg
import pymysql

from tests.support.mariadb import MariadbServer
from tests.support.peer import wait_until
from tests.support.postgres import PostgresServer

Server = PostgresServer | MariadbServer
PATIENCE_S = 120.0
ERRORS = (psycopg.Error, pymysql.err.MySQLError, OSError)

_COLUMNS = "id, name, amount, quantity, deleted, changed"
_CREATE = """
CREATE TABLE items (
    id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, amount NUMERIC(12, 2),
    quantity INT, deleted SMALLINT NOT NULL, changed {timestamp} NOT NULL
)"""
_UPSERT = {
    "postgresql": "ON CONFLICT (id) DO UPDATE SET (name, amount, quantity, deleted, changed)"
    " = (excluded.name, excluded.amount, excluded.quantity, excluded.deleted, excluded.changed)",
    "mariadb": "ON DUPLICATE KEY UPDATE name = VALUES(name), amount = VALUES(amount),"
    " quantity = VALUES(quantity), deleted = VALUES(deleted), changed = VALUES(changed)",
}
_TIMESTAMP = {"postgresql": "TIMESTAMP(6)", "mariadb": "DATETIME(6)"}
# Long ago, so that no row is of the future: the source reads up to the database's own time.
_BEGIN = datetime.datetime.fromisoformat("2024-01-01 00:00:00")


class Item(NamedTuple):
    """One row, without its number."""

    name: str
    amount: Decimal | None
    quantity: int | None
    deleted: int


class SourceTable:
    """Rows that are added, changed and marked as deleted by one writer.

    Every transaction has a time of its own, later than those of all earlier ones: so a reader that
    goes by time misses nothing, however transactions and kills fall.
    """

    def __init__(self, server: Server, database: str, random: Random) -> None:
        self.server = server
        self.database = database
        self.items: dict[int, Item] = {}
        self._random = random
        self._transactions = 0
        server.create_database(database)
        server.execute(
            _CREATE.format(timestamp=_TIMESTAMP[server.name]),
            "CREATE INDEX changes ON items (changed, id)",
            database=database,
        )

    def add(self, count: int) -> None:
        """New rows, in one transaction."""
        first = len(self.items)
        self._write({number: self._any_item(number) for number in range(first, first + count)})

    def change(self, *, updates: int, deletes: int) -> None:
        """Other values for some rows and an end for others, in one transaction."""
        numbers = self._random.sample(range(len(self.items)), updates + deletes)
        changed = {number: self._any_item(number) for number in numbers[:updates]}
        for number in numbers[updates:]:
            changed[number] = self.items[number]._replace(deleted=1)
        self._write(changed)

    def live(self) -> dict[int, tuple[str, Decimal | None, int | None]]:
        """What the copy must have."""
        return {
            number: (item.name.upper(), item.amount, item.quantity)
            for number, item in self.items.items()
            if not item.deleted
        }

    def _any_item(self, number: int) -> Item:
        random = self._random
        amount = None if random.random() < 0.05 else Decimal(random.randrange(10**8)) / 100
        quantity = None if random.random() < 0.05 else random.randrange(1000)
        return Item(f"item {number} of {random.randrange(10**6)}", amount, quantity, 0)

    def _write(self, changed: dict[int, Item]) -> None:
        """Commits rows, again after a kill; to write the same rows twice does no harm."""

        def is_written() -> bool:
            self._transactions += 1
            changed_at = _BEGIN + datetime.timedelta(milliseconds=self._transactions)
            rows = [(number, *item, changed_at) for number, item in changed.items()]
            try:
                self._commit(rows)
            except ERRORS:
                return False
            return True

        wait_until(is_written, f"a commit in {self.server.name}", timeout_s=PATIENCE_S)
        self.items.update(changed)

    def _commit(self, rows: Sequence[Sequence[object]]) -> None:
        statement = f"INSERT INTO items ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s) "
        with closing(_in_transaction(self.server, self.database)) as connection:
            with connection.cursor() as cursor:
                cursor.executemany(statement + _UPSERT[self.server.name], rows)
            connection.commit()


# Any: connections of two drivers.
def _in_transaction(server: Server, database: str) -> Any:
    connection: Any = server.connect(database)
    if isinstance(server, PostgresServer):
        connection.autocommit = False
    else:
        connection.autocommit(False)
    return connection


class Copy:
    """The table at the other end."""

    def __init__(self, server: Server, database: str, table: str) -> None:
        self.server = server
        self.database = database
        self.table = table
        server.create_database(database)

    def rows(self) -> dict[int, tuple[str, Decimal | None, int | None]]:
        """All rows by number."""
        found = self._ask('SELECT "ID", "NAME", "AMOUNT", "QUANTITY" FROM')
        return {number: (name, amount, quantity) for number, name, amount, quantity in found}

    def sums(self) -> tuple[int, Decimal, int]:
        """How many rows, and the sums of their numbers; zero as long as there is no table."""
        try:
            ((count, amount, quantity),) = self._ask(
                'SELECT COUNT(*), COALESCE(SUM("AMOUNT"), 0), COALESCE(SUM("QUANTITY"), 0) FROM'
            )
        except ERRORS:
            return 0, Decimal(0), 0
        return count, amount, int(quantity)

    # Any: rows of two drivers.
    def _ask(self, select: str) -> Any:
        if isinstance(self.server, MariadbServer):
            select = select.replace('"', "`")
        with closing(self.server.connect(self.database)) as connection:
            cursor: Any = connection.cursor()
            cursor.execute(f"{select} {self.table}")
            return cursor.fetchall()


def wait_for_copies(
    pairs: Sequence[tuple[SourceTable, Copy]], check_health: Callable[[], None]
) -> None:
    """Returns when every copy is equal to its source."""

    wanted = [_sums(source) for source, _ in pairs]

    def is_equal() -> bool:
        check_health()
        if [copy.sums() for _, copy in pairs] != wanted:
            return False
        return all(copy.rows() == source.live() for source, copy in pairs)

    try:
        wait_until(is_equal, "a copy that is equal", timeout_s=PATIENCE_S)
    except TimeoutError as late:
        for source, copy in pairs:
            late.add_note(_difference(source, copy))
        raise


def _sums(source: SourceTable) -> tuple[int, Decimal, int]:
    live = source.live().values()
    amounts = sum((amount for _, amount, _ in live if amount is not None), Decimal(0))
    return len(live), amounts, sum(quantity for _, _, quantity in live if quantity is not None)


def _difference(source: SourceTable, copy: Copy) -> str:
    wanted, found = source.live(), copy.rows()
    missing = sorted(wanted.keys() - found.keys())
    extra = sorted(found.keys() - wanted.keys())
    other = [number for number in wanted.keys() & found.keys() if wanted[number] != found[number]]
    return (
        f"{source.server.name}: {len(wanted)} rows wanted, {len(found)} found;"
        f" {len(missing)} missing such as {missing[:3]}, {len(extra)} extra such as {extra[:3]},"
        f" {len(other)} different such as"
        f" {[(number, wanted[number], found[number]) for number in other[:2]]}"
    )
