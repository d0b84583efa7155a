"""Database: opens connections to a database and describes its tables."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from broker import concurrency
from connect.config_def import Settings
from connect.connectors.jdbc.connection_config import address_of, zone_of
from connect.connectors.jdbc.dialects import load_dialect
from connect.connectors.jdbc.dialects.dialect import (
    Connection,
    Dialect,
    DriverFailure,
    SessionSettings,
    TableColumn,
)
from connect.connectors.jdbc.tables import Quoting, TableName
from connect.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    from sqlalchemy import Connection as SqlConnection
    from sqlalchemy import Engine
    from sqlalchemy.engine.interfaces import ReflectedColumn

T = TypeVar("T")

_log = logging.getLogger(__name__)
_ISOLATION_DEFAULT = "DEFAULT"


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """The description of a table or view."""

    columns: list[TableColumn]
    is_view: bool


class Database:
    """A database with its dialect; it holds no connection."""

    def __init__(
        self, settings: Settings, config: Mapping[str, str], *, isolation: str | None = None
    ) -> None:
        """Reads the connection settings; ConfigError if the driver is missing."""
        address = address_of(settings, config)
        self.dialect: Dialect = load_dialect(address.dialect)
        self.session = SessionSettings(
            address, zone_of(settings.text("db.timezone")), _isolation_level(isolation)
        )
        self.quoting = Quoting(
            self.dialect.quote_character, settings.text("quote.sql.identifiers").upper() == "ALWAYS"
        )
        self.attempts = settings.integer("connection.attempts")
        self.backoff_ms = settings.integer("connection.backoff.ms")
        self._engine: Engine | None = None

    def __str__(self) -> str:
        return str(self.session.address)

    def connect(self) -> Connection:
        """Opens a connection; RetriableError if the database is unavailable."""
        return self.attempt("cannot connect", lambda: self.dialect.connect(self.session))

    def attempt(self, complaint: str, action: Callable[[], T]) -> T:
        """Runs an action; an error of the driver becomes a RetriableError."""
        try:
            return action()
        except Exception as error:
            found = self.translated(complaint, error)
            if found is None:
                raise
            raise found from error

    def attempt_with_retries(self, action: Callable[[], T], stopping: concurrency.Event) -> T:
        """Runs an action with as many attempts as configured."""
        for attempt in range(1, self.attempts + 1):
            try:
                return action()
            except RetriableError as error:
                _log.warning("attempt %d of %d: %s", attempt, self.attempts, error)
                if attempt == self.attempts:
                    raise given_up(error, "see connection.attempts") from error.__cause__
                if stopping.wait(self.backoff_ms / 1000):
                    break
        raise ConnectError("stopped before the database responded", at=str(self))

    def translated(self, complaint: str, error: Exception) -> RetriableError | None:
        """An error of the driver as one of Connect; None for other errors."""
        failure = self.dialect.failure(error)
        if failure is None or isinstance(error, ConnectError):
            return None
        message = f"{complaint}: {str(error).strip() or type(error).__name__}"
        hint = ""
        if failure is DriverFailure.AWAY:
            hint = "check connection.url and connection.user, and whether the database is running"
        return RetriableError(message, at=str(self), hint=hint)

    def table_named(self, parts: Sequence[str]) -> TableName:
        """The table with a name of one to three parts."""
        return self.dialect.table_name(self.session, parts)

    def engine(self) -> "Engine":
        """SQLAlchemy with the same driver: for reflection and DDL, not for data."""
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        if self._engine is None:
            self._engine = create_engine(
                f"{self.dialect.engine}://",
                creator=lambda: self.dialect.connect(self.session),
                poolclass=NullPool,
            )
        return self._engine

    @contextmanager
    def sqlalchemy(self, complaint: str) -> Iterator["SqlConnection"]:
        """A transaction of SQLAlchemy; its errors are translated like those of the driver."""
        from sqlalchemy.exc import DBAPIError

        try:
            with self.engine().begin() as connection:
                yield connection
        except DBAPIError as error:
            inner = error.orig if isinstance(error.orig, Exception) else error
            found = self.translated(complaint, inner)
            if found is None:
                raise
            raise found from inner

    def describe(self, table: TableName) -> DescribedTable | None:
        """The columns of a table or view; None if it does not exist."""
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoSuchTableError

        schema = table.schema or table.catalog
        try:
            with self.sqlalchemy(f"cannot describe {table}") as connection:
                inspector = inspect(connection)
                reflected = inspector.get_columns(table.name, schema=schema)
                keys = inspector.get_pk_constraint(table.name, schema=schema)
                native = connection.connection.driver_connection
                kinds = dict(self.dialect.tables(cast(Connection, native)))
        except NoSuchTableError:
            return None
        key_names = keys["constrained_columns"]
        columns = [self._column(column, key_names) for column in reflected]
        return DescribedTable(columns, kinds.get(table) == "VIEW")

    def _column(self, column: "ReflectedColumn", key_names: Sequence[str]) -> TableColumn:
        name, is_key = column["name"], column["name"] in key_names
        # In SQLite, a key of one INTEGER is always autoincremented.
        counts = is_key and len(key_names) == 1 and str(column["type"]) == "INTEGER"
        return TableColumn(
            name,
            column["type"],
            nullable=column["nullable"] and not is_key,
            is_autoincrement=column.get("autoincrement") is True
            or "identity" in column
            or (counts and self.dialect.name == "Sqlite"),
        )

    def list_tables(self) -> list[tuple[TableName, str]]:
        """All tables with their kinds, on a separate connection."""
        with closing(self.connect()) as connection:
            return self.attempt("cannot list tables", lambda: self.dialect.tables(connection))


def given_up(error: RetriableError, hint: str) -> ConnectError:
    """The same error as one that is not retried."""
    return ConnectError(error.message, at=error.at, hint=error.hint or hint)


def _isolation_level(setting: str | None) -> str | None:
    if setting is None or setting.upper() == _ISOLATION_DEFAULT:
        return None
    return setting.upper().replace("_", " ")
