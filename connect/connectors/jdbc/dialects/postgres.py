"""PostgreSQL through psycopg 3: rows are read with server-side cursors and written with COPY."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from typing import Any, cast

import psycopg
from psycopg.postgres import types as pg_types
from psycopg.types.string import TextLoader
from sqlalchemy import types as sql
from sqlalchemy.dialects import postgresql

from connect.connectors.jdbc.addresses import Address
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
from connect.connectors.jdbc.dialects.statements import equals, on_conflict
from connect.connectors.jdbc.dialects.values import (
    aware_in_utc,
    in_utc,
    in_zone,
    timestamp_column,
    type_by_schema,
)
from connect.connectors.jdbc.numeric_mapping import numeric_reader, numeric_schema
from connect.connectors.jdbc.tables import Quoting, TableName
from connect.data import (
    BOOLEAN,
    BYTES,
    DATE_NAME,
    DECIMAL_NAME,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Type,
    date,
)
from connect.data import time as time_of_day

PgConnection = psycopg.Connection[tuple[Any, ...]]

# Rows per FETCH.
_FETCH_ROWS = 2000
_CONNECT_TIMEOUT_S = 10
# The JDBC driver's names of some libpq parameters.
_JDBC_OPTIONS = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "options": "options",
}
_KINDS = {
    "r": "TABLE",
    "p": "PARTITIONED TABLE",
    "v": "VIEW",
    "m": "MATERIALIZED VIEW",
    "f": "FOREIGN TABLE",
}
_SIMPLE: dict[str, ConnectSchema] = {
    "bool": BOOLEAN,
    "int2": INT16,
    "int4": INT32,
    "int8": INT64,
    "oid": INT64,
    "float4": FLOAT32,
    "float8": FLOAT64,
    "bytea": BYTES,
    "date": date(),
    "time": time_of_day(),
}
# Read as strings of the database, not as the driver's own classes.
_AS_TEXT = ("json", "jsonb", "uuid", "interval", "inet", "cidr", "int4range", "int8range")
_COLUMN_TYPES: Mapping[Type | str, "sql.TypeEngine[Any]"] = {
    Type.INT8: sql.SMALLINT(),
    Type.INT16: sql.SMALLINT(),
    Type.INT32: sql.INTEGER(),
    Type.INT64: sql.BIGINT(),
    Type.FLOAT32: sql.REAL(),
    Type.FLOAT64: sql.DOUBLE_PRECISION(),
    Type.BOOLEAN: sql.BOOLEAN(),
    Type.STRING: sql.TEXT(),
    Type.BYTES: postgresql.BYTEA(),
    DECIMAL_NAME: sql.DECIMAL(),
    DATE_NAME: sql.DATE(),
    TIME_NAME: sql.TIME(),
    TIMESTAMP_NAME: sql.TIMESTAMP(),
}
_LIST_TABLES = """
SELECT current_database(), n.nspname, c.relname, c.relkind::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
   AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""


class PostgresDialect:
    """PostgreSQL, and databases with its protocol."""

    name = "PostgreSql"
    quote_character = '"'
    engine = "postgresql+psycopg"

    def connect(self, session: SessionSettings) -> Connection:
        """Opens a connection whose timestamps are in UTC."""
        address = session.address
        connection = psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.database,
            user=address.user or None,
            password=address.password or None,
            **_options(address),
        )
        connection.autocommit = True
        connection.execute("SET TIME ZONE 'UTC'")
        connection.autocommit = False
        connection.isolation_level = _ISOLATION.get(session.isolation or "")
        for name in _AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
        return cast(Connection, connection)

    def failure(self, error: Exception) -> DriverFailure | None:
        if not isinstance(error, psycopg.Error):
            return None
        if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
            return DriverFailure.BAD_VALUE
        state = error.sqlstate or ""
        # 08: connection, 57P: shutdown, 53: resources; errors of libpq itself have no state.
        is_away = isinstance(error, psycopg.OperationalError) and (
            not state or state[:2] in ("08", "53") or state[:3] == "57P"
        )
        return DriverFailure.AWAY if is_away else DriverFailure.REFUSED

    def tables(self, connection: Connection) -> list[tuple[TableName, str]]:
        """All tables and views, except those of system schemas."""
        with connection.cursor() as cursor:
            rows = cursor.execute(_LIST_TABLES).fetchall()
        return [
            (TableName(catalog, schema, name), _KINDS[kind]) for catalog, schema, name, kind in rows
        ]

    def table_name(self, session: SessionSettings, parts: Sequence[str]) -> TableName:
        """A table, by default of schema "public"."""
        schema = parts[-2] if len(parts) > 1 else "public"
        return TableName(session.address.database, schema, parts[-1])

    def now(self, connection: Connection) -> datetime:
        """The current time, not the start of the transaction."""
        with connection.cursor() as cursor:
            now: datetime = cursor.execute("SELECT clock_timestamp()").fetchone()[0]
        return now.astimezone(UTC)

    def query(self, connection: Connection, statement: str) -> Cursor:
        """Declares a cursor in the current transaction."""
        cursor = cast(PgConnection, connection).cursor(name="millstream")
        cursor.itersize = _FETCH_ROWS
        try:
            cursor.execute(statement.encode())
        except BaseException:
            self.abandon(cast(Cursor, cursor))
            raise
        return cast(Cursor, cursor)

    def abandon(self, cursor: Cursor) -> None:
        """Closes the cursor, if the connection still has it."""
        with contextlib.suppress(psycopg.Error):
            cursor.close()

    def columns(
        self, connection: Connection, cursor: Cursor, statement: str, reading: ReadSettings
    ) -> list[ReadColumn]:
        """The columns, by the types from the server."""
        described = cast("psycopg.ServerCursor[Any]", cursor).description or ()
        return [_read_column(column, reading) for column in described]

    def instant_expression(self, expression: str) -> str:
        """The expression itself."""
        return expression

    def instant_literal(self, instant: datetime, zone: tzinfo) -> str:
        """Local time with its offset: TIMESTAMP uses the time only, TIMESTAMPTZ both."""
        return f"'{instant.astimezone(zone).isoformat(sep=' ')}'"

    def instant_offset(self, instant: datetime) -> datetime:
        """Microseconds, as in Python."""
        return instant

    def column_type(self, schema: ConnectSchema, *, is_key: bool) -> "sql.TypeEngine[Any]":
        return type_by_schema(_COLUMN_TYPES, schema, self.name)

    def binding(
        self, schema: ConnectSchema, column: TableColumn, zone: tzinfo
    ) -> Conversion | None:
        """COPY ignores the offset in a string for TIMESTAMP: such values are local times."""
        is_local = isinstance(column.type, sql.TIMESTAMP) and not column.type.timezone
        if schema.name == TIMESTAMP_NAME and is_local:
            return in_zone(zone)
        return None

    def prepare(
        self, connection: Connection, action: Action, target: Target, quoting: Quoting
    ) -> None:
        """Creates a temporary table with the same columns, which is emptied by each commit."""
        if _is_copied(action, target):
            return
        columns = quoting.names(target.columns)
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS {_rows_table(target)} ON COMMIT DELETE ROWS"
                f" AS SELECT {columns} FROM {_path(target, quoting)} WITH NO DATA".encode()
            )
            cursor.execute(f"TRUNCATE {_rows_table(target)}".encode())

    def write(
        self,
        connection: Connection,
        action: Action,
        target: Target,
        rows: Sequence[Row],
        quoting: Quoting,
    ) -> None:
        """Copies rows into the table, or into a temporary table to merge them from."""
        table, copied = _path(target, quoting), _rows_table(target)
        with connection.cursor() as cursor:
            into = table if _is_copied(action, target) else copied
            columns = quoting.names(target.columns)
            with cursor.copy(f"COPY {into} ({columns}) FROM STDIN".encode()) as copy:
                write_row = copy.write_row
                for row in rows:
                    write_row(row)
            if into is copied:
                cursor.execute(_merge(action, target, quoting).encode())


def _is_copied(action: Action, target: Target) -> bool:
    """Whether rows are copied directly into the table; COPY cannot write to views."""
    return action is Action.INSERT and not target.is_view


def _merge(action: Action, target: Target, quoting: Quoting) -> str:
    table, copied = _path(target, quoting), _rows_table(target)
    is_row = " AND ".join(f"t.{quoting.name(key)} = c.{quoting.name(key)}" for key in target.keys)
    match action:
        case Action.INSERT | Action.UPSERT:
            columns = quoting.names(target.columns)
            rows = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {copied}"
            return rows if action is Action.INSERT else rows + on_conflict(target, quoting)
        case Action.UPDATE:
            changes = equals(target.others, quoting, lambda name: f"c.{quoting.name(name)}", ", ")
            return f"UPDATE {table} AS t SET {changes} FROM {copied} AS c WHERE {is_row}"
        case Action.DELETE:
            return f"DELETE FROM {table} AS t USING {copied} AS c WHERE {is_row}"


def _path(target: Target, quoting: Quoting) -> str:
    # Without the catalog: a connection has a single database.
    return quoting.table(TableName(None, target.table.schema, target.table.name))


def _rows_table(target: Target) -> str:
    # One name per table and columns; names are short enough for PostgreSQL whatever the table's.
    return f"millstream_{hash((target.table, target.columns)) & 0xFFFFFFFFFFFFFFFF:x}"


_ISOLATION = {
    "READ UNCOMMITTED": psycopg.IsolationLevel.READ_UNCOMMITTED,
    "READ COMMITTED": psycopg.IsolationLevel.READ_COMMITTED,
    "REPEATABLE READ": psycopg.IsolationLevel.REPEATABLE_READ,
    "SERIALIZABLE": psycopg.IsolationLevel.SERIALIZABLE,
}


def _options(address: Address) -> dict[str, Any]:
    options: dict[str, Any] = {"connect_timeout": _CONNECT_TIMEOUT_S}
    for name, value in address.options.items():
        known = _JDBC_OPTIONS.get(name)
        if known is not None:
            options[known] = value
    if address.options.get("ssl", "false").lower() == "true":
        options.setdefault("sslmode", "require")
    if "currentSchema" in address.options:
        options["options"] = f"-csearch_path={address.options['currentSchema']}"
    return options


def _read_column(column: "psycopg.Column", reading: ReadSettings) -> ReadColumn:
    info = pg_types.get(column.type_code)
    name = "" if info is None else info.name
    if info is not None and column.type_code == info.array_oid:
        return ReadColumn(column.name, None)
    if name in _SIMPLE:
        return ReadColumn(column.name, _SIMPLE[name])
    match name:
        case "numeric":
            schema = numeric_schema(reading.numeric_mapping, column.precision, column.scale)
            return ReadColumn(column.name, schema, numeric_reader(schema))
        case "timestamp" | "timestamptz":
            instant = in_utc(reading.zone) if name == "timestamp" else aware_in_utc
            return timestamp_column(column.name, reading, instant)
        case "timetz":
            return ReadColumn(column.name, time_of_day(), _without_zone)
        case "bit" if column.display_size == 1:
            return ReadColumn(column.name, BOOLEAN, "1".__eq__)
    return ReadColumn(column.name, STRING)


def _without_zone(value: time) -> time:
    return value.replace(tzinfo=None)
