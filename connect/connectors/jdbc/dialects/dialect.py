"""Dialect: the interface of each kind of database."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from connect.connectors.jdbc.addresses import Address
from connect.connectors.jdbc.numeric_mapping import NumericMapping
from connect.connectors.jdbc.tables import Quoting, TableName
from connect.data import ConnectSchema

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

# Any: values of every type are read and bound.
Conversion = Callable[[Any], object]
Row = Sequence[object]


class Connection(Protocol):
    """A connection of a driver, as in PEP 249."""

    # Any: a driver's cursor is used by its own dialect only.
    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class Cursor(Protocol):
    """A running query whose rows are fetched on demand."""

    def fetchmany(self, size: int) -> Sequence[Row]: ...

    def close(self) -> None: ...


class DriverFailure(enum.Enum):
    """The meaning of a driver's error."""

    AWAY = "the connection was lost, or the database is not available"
    REFUSED = "the statement failed; it may succeed later, or never"
    BAD_VALUE = "the table does not accept a row"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a connection."""

    address: Address
    zone: tzinfo
    isolation: str | None = None  # such as REPEATABLE READ; None leaves the database's default


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How columns are converted to fields."""

    zone: tzinfo
    numeric_mapping: NumericMapping
    timestamp_schema: ConnectSchema
    timestamp: Conversion | None  # from a datetime with a zone to a value of that schema


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """One column of a query's result."""

    name: str
    schema: ConnectSchema | None  # None: its type is not supported
    read: Conversion | None = None  # converts the driver's value; None if that is the value
    instant: Conversion | None = None  # converts a point in time to a datetime
    # Where a driver returns values of any type: values of `usual` use `read_usual`, not `read`.
    usual: type | None = None
    read_usual: Conversion | None = None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    name: str
    type: "TypeEngine[Any]"
    nullable: bool
    is_autoincrement: bool


class Action(enum.Enum):
    """The operation on the rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Target:
    """A table and the columns to write; the columns of the key come first."""

    table: TableName
    columns: tuple[str, ...]
    key_count: int
    is_view: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns."""
        return self.columns[: self.key_count]

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the columns that are not in the key."""
        return self.columns[self.key_count :]


class Dialect(Protocol):
    """One kind of database: its driver, its types and its SQL."""

    name: str
    quote_character: str
    engine: str  # SQLAlchemy's name of dialect and driver

    def connect(self, session: SessionSettings) -> Connection:
        """Opens a connection; every statement runs in a transaction."""
        ...

    def failure(self, error: Exception) -> DriverFailure | None:
        """The kind of an error; None if it is not from the database or the driver."""
        ...

    def tables(self, connection: Connection) -> list[tuple[TableName, str]]:
        """All tables except system tables, with JDBC's names of their kinds."""
        ...

    def table_name(self, session: SessionSettings, parts: Sequence[str]) -> TableName:
        """The table of a name of the form `table`, `schema.table` or `catalog.schema.table`."""
        ...

    def now(self, connection: Connection) -> datetime:
        """The current time of the database, in UTC."""
        ...

    def query(self, connection: Connection, statement: str) -> Cursor:
        """Starts a query; the cursor must be closed before another statement on the connection."""
        ...

    def abandon(self, cursor: Cursor) -> None:
        """Closes a query with unread rows; its connection is closed next."""
        ...

    def columns(
        self,
        connection: Connection,
        cursor: Cursor,
        statement: str,
        reading: ReadSettings,
    ) -> list[ReadColumn]:
        """The columns of a running query; called before the first fetch."""
        ...

    def instant_expression(self, expression: str) -> str:
        """A timestamp expression that can be compared with `instant_literal`."""
        ...

    def instant_literal(self, instant: datetime, zone: tzinfo) -> str:
        """A point in time as a literal."""
        ...

    def instant_offset(self, instant: datetime) -> datetime:
        """A point in time with the precision of the database's comparisons."""
        ...

    def column_type(self, schema: ConnectSchema, *, is_key: bool) -> "TypeEngine[Any]":
        """The type of a new column for a field; DataError if there is none."""
        ...

    def binding(
        self, schema: ConnectSchema, column: TableColumn, zone: tzinfo
    ) -> Conversion | None:
        """The conversion of values for a column; None if the driver accepts them unchanged."""
        ...

    def prepare(
        self, connection: Connection, action: Action, target: Target, quoting: Quoting
    ) -> None:
        """Creates what `write` needs: once per connection, and whenever a transaction
        returns to a target.
        """
        ...

    def write(
        self,
        connection: Connection,
        action: Action,
        target: Target,
        rows: Sequence[Row],
        quoting: Quoting,
    ) -> None:
        """Writes rows without committing; except with INSERT, keys are unique."""
        ...


def optional_columns(
    columns: Sequence[ReadColumn], required: Mapping[str, bool]
) -> list[ReadColumn]:
    """The columns with nullable schemas, unless they are required."""
    return [
        column
        if column.schema is None or required.get(column.name)
        else replace(column, schema=column.schema.as_optional())
        for column in columns
    ]
