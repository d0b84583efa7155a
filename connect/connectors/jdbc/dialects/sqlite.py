"""SQLite through Python's own driver: no server, and columns hold values of any type.

Times are stored as strings in ISO 8601, or as milliseconds since the epoch, and are compared with
millisecond precision, like SQLite's own functions. A NUMERIC keeps 15 digits.
"""

import datetime
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from sqlalchemy import types as sql

from connect.connectors.jdbc.dialects.dialect import (
    Action,
    Connection,
    Conversion,
    Cursor,
    DriverFailure,
    ReadColumn,
    ReadSettings,
    Row,
    SessionSettings,
    TableColumn,
    Target,
)
from connect.connectors.jdbc.dialects.statements import row_statement
from connect.connectors.jdbc.dialects.values import (
    in_utc,
    in_zone,
    no_column_type,
    plain_text,
    timestamp_column,
    type_by_schema,
)
from connect.connectors.jdbc.numeric_mapping import numeric_reader, numeric_schema, with_scale
from connect.connectors.jdbc.tables import Quoting, TableName
from connect.data import (
    BOOLEAN,
    BYTES,
    DATE_NAME,
    DECIMAL_NAME,
    FLOAT64,
    INT64,
    SCALE_PARAMETER,
    STRING,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Type,
    date,
    time,
)
from connect.errors import DataError

# How long a statement waits while another process writes.
_BUSY_TIMEOUT_S = 10.0
_VIEW = "millstream_described"
_DECLARED = re.compile(r"\s*([^(]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", re.ASCII)
_DIGITS_MAX = 38
_NUMBERS = (int, float)
_COLUMN_TYPES: Mapping[Type | str, "sql.TypeEngine[Any]"] = {
    Type.INT8: sql.INTEGER(),
    Type.INT16: sql.INTEGER(),
    Type.INT32: sql.INTEGER(),
    Type.INT64: sql.INTEGER(),
    Type.FLOAT32: sql.REAL(),
    Type.FLOAT64: sql.REAL(),
    Type.BOOLEAN: sql.BOOLEAN(),
    Type.STRING: sql.TEXT(),
    Type.BYTES: sql.BLOB(),
    DATE_NAME: sql.DATE(),
    TIME_NAME: sql.TIME(),
    TIMESTAMP_NAME: sql.TIMESTAMP(),
}


class SqliteDialect:
    """SQLite database files."""

    name = "Sqlite"
    quote_character = '"'
    engine = "sqlite"

    def connect(self, session: SessionSettings) -> Connection:
        """Opens the file; the task's thread and the one that stops it share the connection."""
        connection = sqlite3.connect(
            session.address.database, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        # A query must not open other files: ATTACH and VACUUM INTO need another database.
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        if session.isolation == "READ UNCOMMITTED":
            connection.execute("PRAGMA read_uncommitted = 1")
        return connection

    def failure(self, error: Exception) -> DriverFailure | None:
        """The kind of an error of sqlite3; a file is never unavailable."""
        if isinstance(error, OverflowError | UnicodeError):
            return DriverFailure.BAD_VALUE
        if not isinstance(error, sqlite3.Error):
            return None
        bad = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)
        return DriverFailure.BAD_VALUE if isinstance(error, bad) else DriverFailure.REFUSED

    def tables(self, connection: Connection) -> list[tuple[TableName, str]]:
        """All tables and views of the file."""
        rows = _native(connection).execute(
            "SELECT name, upper(type) FROM sqlite_master"
            " WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        return [(TableName(None, None, name), kind) for name, kind in rows]

    def table_name(self, session: SessionSettings, parts: Sequence[str]) -> TableName:
        """A table of the file."""
        return TableName(None, None, parts[-1])

    def now(self, connection: Connection) -> datetime.datetime:
        """The time of this machine."""
        (text,) = _native(connection).execute("SELECT strftime('%Y-%m-%d %H:%M:%f')").fetchone()
        return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)

    def query(self, connection: Connection, statement: str) -> Cursor:
        return _native(connection).execute(statement)

    def abandon(self, cursor: Cursor) -> None:
        cursor.close()

    def columns(
        self, connection: Connection, cursor: Cursor, statement: str, reading: ReadSettings
    ) -> list[ReadColumn]:
        """The declared types of the columns, from a view of the query."""
        native = _native(connection)
        native.execute(f"CREATE TEMPORARY VIEW {_VIEW} AS {statement}")
        try:
            described = native.execute(f"PRAGMA table_info({_VIEW})").fetchall()
        finally:
            native.execute(f"DROP VIEW temp.{_VIEW}")
        return [_read_column(name, declared, reading) for _, name, declared, *_ in described]

    def instant_expression(self, expression: str) -> str:
        """Converts strings and milliseconds to strings of one format."""
        form = "'%Y-%m-%d %H:%M:%f'"
        return (
            f"CASE typeof({expression}) WHEN 'text' THEN strftime({form}, {expression})"
            f" ELSE strftime({form}, {expression} / 1000.0, 'unixepoch') END"
        )

    def instant_literal(self, instant: datetime.datetime, zone: tzinfo) -> str:
        """Local time to the millisecond."""
        local = instant.astimezone(zone).replace(tzinfo=None)
        return f"'{local.isoformat(sep=' ', timespec='milliseconds')}'"

    def instant_offset(self, instant: datetime.datetime) -> datetime.datetime:
        """Rounded to milliseconds, as strftime does."""
        milliseconds = (instant.microsecond + 500) // 1000
        return instant.replace(microsecond=0) + datetime.timedelta(milliseconds=milliseconds)

    def column_type(self, schema: ConnectSchema, *, is_key: bool) -> "sql.TypeEngine[Any]":
        if schema.name == DECIMAL_NAME:
            assert schema.parameters is not None
            scale = int(schema.parameters[SCALE_PARAMETER])
            return sql.NUMERIC(max(_DIGITS_MAX, scale), scale)
        return type_by_schema(_COLUMN_TYPES, schema, self.name)

    def binding(
        self, schema: ConnectSchema, column: TableColumn, zone: tzinfo
    ) -> Conversion | None:
        """Times and decimals as strings, which numeric columns convert to numbers."""
        if schema.name == TIMESTAMP_NAME:
            local = in_zone(zone)
            return lambda value: str(local(value))
        if schema.name in (DATE_NAME, TIME_NAME):
            return str
        if schema.name == DECIMAL_NAME:
            return plain_text
        if schema.type not in _COLUMN_TYPES:
            raise no_column_type(schema, self.name)
        return None

    def prepare(
        self, connection: Connection, action: Action, target: Target, quoting: Quoting
    ) -> None:
        """Do nothing."""

    def write(
        self,
        connection: Connection,
        action: Action,
        target: Target,
        rows: Sequence[Row],
        quoting: Quoting,
    ) -> None:
        """Runs one prepared statement for all rows."""
        if action is Action.UPDATE:
            # Values are in the order of the statement: those of the key last.
            count = target.key_count
            rows = [[*row[count:], *row[:count]] for row in rows]
        statement = row_statement(action, target, quoting, lambda name: "?")
        _native(connection).executemany(statement, rows)


def _native(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection)


def _read_column(name: str, declared: str, reading: ReadSettings) -> ReadColumn:
    matched = _DECLARED.fullmatch(declared)
    kind, precision, scale = ("", None, None) if matched is None else matched.groups()
    kind = kind.upper()
    if kind in ("DATETIME", "TIMESTAMP"):
        return timestamp_column(name, reading, _instant_reader(reading.zone))
    if kind in ("NUMERIC", "DECIMAL"):
        digits = None if precision is None else int(precision)
        schema = numeric_schema(
            reading.numeric_mapping, digits, None if digits is None else int(scale or 0)
        )
        return ReadColumn(name, schema, _numeric_reader(schema))
    for parts, column in _BY_NAME:
        if any(part in kind for part in parts):
            return replace(column, name=name)
    return replace(_TEXT, name=name)


def _instant_reader(zone: tzinfo) -> Conversion:
    parse, local = datetime.datetime.fromisoformat, in_utc(zone)

    def read(value: object) -> object:
        if isinstance(value, _NUMBERS):
            return datetime.datetime.fromtimestamp(value / 1000, UTC)
        try:
            instant = parse(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise _no_value(value, "timestamp") from None
        return local(instant) if instant.tzinfo is None else instant.astimezone(UTC)

    return read


def _numeric_reader(schema: ConnectSchema) -> Conversion:
    convert = numeric_reader(schema)
    scale = None if schema.parameters is None else int(schema.parameters[SCALE_PARAMETER])

    def read(value: object) -> object:
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            raise _no_value(value, "number") from None
        if convert is not None:
            return convert(number)
        assert scale is not None
        return with_scale(number, scale)

    return read


def _converted(convert: Callable[[Any], object], what: str) -> Conversion:
    def read(value: object) -> object:
        try:
            return convert(value)
        except (TypeError, ValueError):
            raise _no_value(value, what) from None

    return read


def _no_value(value: object, what: str) -> DataError:
    return DataError(
        f"SQLite has {value!r} in a column that is declared as a {what}",
        hint="correct the row, or read the column with CAST in a query",
    )


def _read_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _read_text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _read_date(value: object) -> datetime.date:
    if isinstance(value, int):
        return datetime.datetime.fromtimestamp(value / 1000, UTC).date()
    return datetime.date.fromisoformat(str(value)[:10])


def _read_time(value: object) -> datetime.time:
    return datetime.time.fromisoformat(str(value))


_TEXT = ReadColumn("", STRING, _read_text, usual=str)
# By parts of the declared type's name, the first match first, as in SQLite's rules of affinity.
_BY_NAME: tuple[tuple[tuple[str, ...], ReadColumn], ...] = (
    (("INT",), ReadColumn("", INT64, _converted(int, "integer"), usual=int)),
    (
        ("BOOL",),
        ReadColumn("", BOOLEAN, _converted(bool, "boolean"), usual=int, read_usual=bool),
    ),
    (("CHAR", "CLOB", "TEXT"), _TEXT),
    (("BLOB", "BINARY"), ReadColumn("", BYTES, _read_bytes, usual=bytes)),
    (
        ("REAL", "FLOA", "DOUB"),
        ReadColumn("", FLOAT64, _converted(float, "floating point number"), usual=float),
    ),
    (("DATE",), ReadColumn("", date(), _converted(_read_date, "date"))),
    (("TIME",), ReadColumn("", time(), _converted(_read_time, "time"))),
)
