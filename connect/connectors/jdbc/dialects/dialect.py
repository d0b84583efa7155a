"""Dialect: what a connector asks of each kind of database."""

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
    """A driver's connection, as PEP 249 has it."""

    # Any: a driver's cursor is used by its own dialect only.
    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class Cursor(Protocol):
    """A running query whose rows come as they are asked for."""

    def fetchmany(self, size: int) -> Sequence[Row]: ...

    def close(self) -> None: ...


class FailureKind(enum.Enum):
    """What an error of a driver means for the one who asked."""

    AWAY = "the connection was lost, or the database is not available"
    REFUSED = "the statement failed; it may succeed later, or never"
    BAD_VALUE = "the table does not accept a row"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How to open a connection."""

    address: Address
    zone: tzinfo
    isolation: str | None = None  # such as REPEATABLE READ; None leaves the database's default


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How columns become fields."""

    zone: tzinfo
    numeric_mapping: NumericMapping
    timestamp_schema: ConnectSchema
    timestamp: Conversion | None  # from a datetime with a zone to a value of that schema


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """One column of a query's result."""

    name: str
    schema: ConnectSchema | None  # None: values of its type have no place in a record
    read: Conversion | None = None  # from what the driver gives; None when that is the value
    instant: Conversion | None = None  # the same as a datetime, if it is a point in time
    # Where a driver gives values of any type: those of this one need no `read`, but this.
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
    """What to do with rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Target:
    """The columns of a table that rows have; the key's columns come first."""

    table: TableName
    columns: tuple[str, ...]
    key_count: int
    is_view: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key's columns."""
        return self.columns[: self.key_count]

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the columns that are not in the key."""
        return self.columns[self.key_count :]


class Dialect(Protocol):
    """One kind of database: its driver, its types and its SQL."""

    name: str
    quote_sign: str
    engine: str  # SQLAlchemy's name of dialect and driver

    def connect(self, session: SessionSettings) -> Connection:
        """Opens a connection; every statement on it is in a transaction."""
        ...

    def failure(self, error: Exception) -> FailureKind | None:
        """The meaning of an error; None if it is not from the database or the driver."""
        ...

    def tables(self, connection: Connection) -> list[tuple[TableName, str]]:
        """Tables that are not the system's, with JDBC's names of their kinds."""
        ...

    def table_name(self, session: SessionSettings, parts: Sequence[str]) -> TableName:
        """The table that `table`, `schema.table` or `catalog.schema.table` names."""
        ...

    def now(self, connection: Connection) -> datetime:
        """The database's time, in UTC."""
        ...

    def query(self, connection: Connection, statement: str) -> Cursor:
        """Starts a query; no other statement runs on the connection before the cursor is closed."""
        ...

    def abandon(self, cursor: Cursor) -> None:
        """Closes a query that may have more rows; its connection is closed next."""
        ...

    def columns(
        self,
        connection: Connection,
        cursor: Cursor,
        statement: str,
        reading: ReadSettings,
    ) -> list[ReadColumn]:
        """The columns of a running query; asked before its first row is fetched."""
        ...

    def instant_expression(self, expression: str) -> str:
        """A timestamp as the database can compare it with what `instant_literal` writes."""
        ...

    def instant_literal(self, instant: datetime, zone: tzinfo) -> str:
        """A point in time as a constant in a statement."""
        ...

    def instant_offset(self, instant: datetime) -> datetime:
        """A point in time as precise as the database compares it."""
        ...

    def column_type(self, schema: ConnectSchema, *, is_key: bool) -> "TypeEngine[Any]":
        """The type of a column that is made for a field; DataError when there is none."""
        ...

    def binding(
        self, schema: ConnectSchema, column: TableColumn, zone: tzinfo
    ) -> Conversion | None:
        """How values of a field are written into a column; None when the driver takes them."""
        ...

    def prepare(
        self, connection: Connection, action: Action, target: Target, quoting: Quoting
    ) -> None:
        """Makes what `write` needs: once for each connection and every time that a transaction
        comes back to a target.
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
        """Writes rows; no key is there twice, except with INSERT. Commits nothing."""
        ...


def optional_columns(
    columns: Sequence[ReadColumn], required: Mapping[str, bool]
) -> list[ReadColumn]:
    """The columns with null allowed, where they are not required."""
    return [
        column
        if column.schema is None or required.get(column.name)
        else replace(column, schema=column.schema.as_optional())
        for column in columns
    ]
