"""MariaDB and MySQL through PyMySQL: rows are streamed, and written by INSERTs of many rows."""

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, cast

import pymysql
from pymysql.connections import Connection as MysqlConnection
from pymysql.constants import FIELD_TYPE, FLAG
from pymysql.converters import conversions, escape_string
from pymysql.cursors import SSCursor
from sqlalchemy import types as sql
from sqlalchemy.dialects import mysql

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
from connect.connectors.jdbc.dialects.statements import row_statement
from connect.connectors.jdbc.dialects.values import (
    in_utc,
    in_zone,
    no_column_type,
    plain_text,
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
    INT8,
    INT16,
    INT32,
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
from connect.errors import ConfigError, DataError

_CONNECT_TIMEOUT_S = 10
# Servers accept statements of 16 MB by default; longer ones than this are not faster.
_STATEMENT_LENGTH_MAX = 1_000_000
_SCALE_MAX = 38
_DIGITS_MAX = 65
_BINARY_CHARSET = 63
# A key column needs a length; an index has at most 768 characters of utf8mb4.
_KEY_LENGTH = 255

_UNKNOWN_ZONE = 1298
# 1040 too many connections, 1053 shutdown; 2002 to 2055, of the driver: no server, lost connection.
_AWAY = {0, 1040, 1053, 1152, 1158, 1159, 1160, 1161, 1927, *range(2002, 2056)}
# Errors that PyMySQL classifies differently: a failed check, an invalid value.
_BAD_VALUES = {1264, 1265, 1292, 1364, 1366, 1406, 3140, 4025, 4078}
_INTEGERS: dict[int, tuple[ConnectSchema, ConnectSchema]] = {  # signed, unsigned
    FIELD_TYPE.TINY: (INT8, INT16),
    FIELD_TYPE.SHORT: (INT16, INT32),
    FIELD_TYPE.INT24: (INT32, INT32),
    FIELD_TYPE.LONG: (INT32, INT64),
    FIELD_TYPE.LONGLONG: (INT64, INT64),
    FIELD_TYPE.YEAR: (INT16, INT16),
}
_SIMPLE: dict[int, ConnectSchema] = {
    FIELD_TYPE.FLOAT: FLOAT32,
    FIELD_TYPE.DOUBLE: FLOAT64,
    FIELD_TYPE.DATE: date(),
    FIELD_TYPE.NEWDATE: date(),
    FIELD_TYPE.TIME: time(),
    FIELD_TYPE.GEOMETRY: BYTES,
    FIELD_TYPE.JSON: STRING,
    FIELD_TYPE.ENUM: STRING,
    FIELD_TYPE.SET: STRING,
}
_COLUMN_TYPES: Mapping[Type | str, "sql.TypeEngine[Any]"] = {
    Type.INT8: mysql.TINYINT(),
    Type.INT16: sql.SMALLINT(),
    Type.INT32: sql.INTEGER(),
    Type.INT64: sql.BIGINT(),
    Type.FLOAT32: sql.FLOAT(),
    Type.FLOAT64: mysql.DOUBLE(),
    Type.BOOLEAN: mysql.TINYINT(1),
    Type.STRING: mysql.LONGTEXT(),
    Type.BYTES: mysql.LONGBLOB(),
    DATE_NAME: sql.DATE(),
    TIME_NAME: mysql.TIME(fsp=6),
    TIMESTAMP_NAME: mysql.DATETIME(fsp=6),
}
_KEY_TYPES: Mapping[Type, "sql.TypeEngine[Any]"] = {
    Type.STRING: sql.VARCHAR(_KEY_LENGTH),
    Type.BYTES: sql.VARBINARY(_KEY_LENGTH),
}
_LIST_TABLES = """
SELECT table_schema, table_name, table_type FROM information_schema.tables
 WHERE table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
"""
_KINDS = {"BASE TABLE": "TABLE", "VIEW": "VIEW"}


class MariadbDialect:
    """MariaDB, and MySQL where it is the same."""

    name = "MySql"
    quote_character = "`"
    engine = "mysql+pymysql"

    def connect(self, session: SessionSettings) -> Connection:
        """Opens a connection whose local times are in the session's time zone."""
        address = session.address
        connection: MysqlConnection[Any] = pymysql.connect(
            host=address.host,
            port=address.port,
            database=address.database or None,
            user=address.user,
            password=address.password,
            charset="utf8mb4",
            conv=_decoders(session.zone),
            **_options(address),
        )
        with connection.cursor() as cursor:
            # Literals are escaped with backslashes.
            no_escapes = "REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '')"
            cursor.execute(f"SET sql_mode = {no_escapes}, autocommit = 0")
            _set_zone(cursor, session.zone)
            if session.isolation is not None:
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {session.isolation}")
        return cast(Connection, connection)

    def failure(self, error: Exception) -> DriverFailure | None:
        if isinstance(error, OSError | EOFError):
            return DriverFailure.AWAY
        if not isinstance(error, pymysql.err.MySQLError):
            return None
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        is_bad = isinstance(error, pymysql.err.DataError | pymysql.err.IntegrityError)
        if is_bad or code in _BAD_VALUES:
            return DriverFailure.BAD_VALUE
        return DriverFailure.AWAY if code in _AWAY else DriverFailure.REFUSED

    def tables(self, connection: Connection) -> list[tuple[TableName, str]]:
        """All tables and views, except those of system databases."""
        with connection.cursor() as cursor:
            cursor.execute(_LIST_TABLES)
            rows = cursor.fetchall()
        return [
            (TableName(catalog, None, name), _KINDS.get(kind, kind)) for catalog, name, kind in rows
        ]

    def table_name(self, session: SessionSettings, parts: Sequence[str]) -> TableName:
        """A table, by default of the connection's database."""
        catalog = parts[-2] if len(parts) > 1 else session.address.database
        return TableName(catalog, None, parts[-1])

    def now(self, connection: Connection) -> datetime.datetime:
        """The server's time."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT UTC_TIMESTAMP(6)")
            (now,) = cursor.fetchone()
        return datetime.datetime.combine(now, now.time(), UTC)

    def query(self, connection: Connection, statement: str) -> Cursor:
        """Starts a query whose rows stay on the server until they are fetched."""
        cursor = cast("MysqlConnection[Any]", connection).cursor(SSCursor)
        cursor.execute(statement)
        return cast(Cursor, cursor)

    def abandon(self, cursor: Cursor) -> None:
        """Prevents PyMySQL from reading all remaining rows, which it does at every close."""
        _result_of(cursor).unbuffered_active = False
        cast(Any, cursor).connection = None

    def columns(
        self, connection: Connection, cursor: Cursor, statement: str, reading: ReadSettings
    ) -> list[ReadColumn]:
        """The columns, by the types and flags from the server."""
        return [_read_column(field, reading) for field in _result_of(cursor).fields]

    def instant_expression(self, expression: str) -> str:
        """The expression itself."""
        return expression

    def instant_literal(self, instant: datetime.datetime, zone: tzinfo) -> str:
        """Local time of the session's time zone."""
        return f"'{instant.astimezone(zone).replace(tzinfo=None).isoformat(sep=' ')}'"

    def instant_offset(self, instant: datetime.datetime) -> datetime.datetime:
        """Microseconds, as in Python."""
        return instant

    def column_type(self, schema: ConnectSchema, *, is_key: bool) -> "sql.TypeEngine[Any]":
        if schema.name == DECIMAL_NAME:
            assert schema.parameters is not None
            scale = min(int(schema.parameters[SCALE_PARAMETER]), _SCALE_MAX)
            return sql.DECIMAL(_DIGITS_MAX, scale)
        if is_key and schema.name is None and schema.type in _KEY_TYPES:
            return _KEY_TYPES[schema.type]
        return type_by_schema(_COLUMN_TYPES, schema, self.name)

    def binding(
        self, schema: ConnectSchema, column: TableColumn, zone: tzinfo
    ) -> Conversion | None:
        """Converts values to literals."""
        if schema.name == TIMESTAMP_NAME:
            local = in_zone(zone)
            return lambda value: f"'{local(value)}'"
        if schema.name in (DATE_NAME, TIME_NAME):
            return "'{}'".format
        if schema.name == DECIMAL_NAME:
            return plain_text
        literal = _LITERALS.get(schema.type)
        if literal is None:
            raise no_column_type(schema, self.name)
        return literal

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
        """Runs statements of many rows, but one UPDATE per row."""
        with connection.cursor() as cursor:
            if action is Action.UPDATE:
                for row in _null_as_literal(rows):
                    values = dict(zip(target.columns, row, strict=True))
                    cursor.execute(row_statement(action, target, quoting, values.__getitem__))
                return
            before, after = _statement_frame(action, target, quoting)
            for parts in _statement_parts(_null_as_literal(rows)):
                cursor.execute(before + ",".join(parts) + after)


def _result_of(cursor: Cursor) -> Any:
    # Only the private result has the flags of columns, and can be abandoned.
    return cast(Any, cursor)._result  # noqa: SLF001


def _statement_frame(action: Action, target: Target, quoting: Quoting) -> tuple[str, str]:
    table = quoting.table(target.table)
    columns = quoting.names(target.columns)
    if action is Action.DELETE:
        return f"DELETE FROM {table} WHERE ({columns}) IN (", ")"
    before = f"INSERT INTO {table} ({columns}) VALUES "
    if action is Action.INSERT:
        return before, ""
    # If all columns are in the key, one of them is set to its own value.
    names = [quoting.name(name) for name in target.others or target.keys[:1]]
    changes = ", ".join(f"{name} = VALUES({name})" for name in names)
    return before, f" ON DUPLICATE KEY UPDATE {changes}"


def _null_as_literal(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Rows of literals; the values are literals or None."""
    columns = [
        ["NULL" if value is None else value for value in column] if None in column else column
        for column in zip(*rows, strict=True)
    ]
    return cast("Iterator[tuple[str, ...]]", zip(*columns, strict=True))


def _statement_parts(rows: Iterator[tuple[str, ...]]) -> Iterator[list[str]]:
    """Groups of rows in parentheses, as many as fit a statement of limited length."""
    parts: list[str] = []
    length = 0
    for row in rows:
        text = f"({','.join(row)})"
        length += len(text)
        if length > _STATEMENT_LENGTH_MAX and parts:
            yield parts
            parts, length = [], len(text)
        parts.append(text)
    if parts:
        yield parts


def _string_literal(value: str) -> str:
    return f"'{escape_string(value)}'"


def _bytes_literal(value: bytes) -> str:
    return f"X'{value.hex()}'"


def _boolean_literal(value: bool) -> str:
    return "1" if value else "0"


def _float_literal(value: float) -> str:
    if not math.isfinite(value):
        raise DataError(f"MySQL cannot store the number {value}")
    return repr(value)


_LITERALS: dict[Type, Callable[[Any], str]] = {
    Type.STRING: _string_literal,
    Type.BYTES: _bytes_literal,
    Type.BOOLEAN: _boolean_literal,
    Type.FLOAT32: _float_literal,
    Type.FLOAT64: _float_literal,
    Type.INT8: str,
    Type.INT16: str,
    Type.INT32: str,
    Type.INT64: str,
}


def _set_zone(cursor: Any, zone: tzinfo) -> None:
    # TIMESTAMP columns then have the same local times as DATETIME columns.
    try:
        cursor.execute(f"SET time_zone = '{'+00:00' if zone is UTC else zone}'")
    except pymysql.err.MySQLError as error:
        if error.args[0] != _UNKNOWN_ZONE:
            raise
        raise ConfigError(
            f"The database does not know the time zone {zone} of configuration db.timezone",
            hint="load its time zone tables (mariadb-tzinfo-to-sql), or use UTC",
        ) from None


def _options(address: Address) -> dict[str, Any]:
    given = address.options
    options: dict[str, Any] = {
        "connect_timeout": int(given.get("connectTimeout", _CONNECT_TIMEOUT_S * 1000)) / 1000
    }
    if "socketTimeout" in given:
        options["read_timeout"] = options["write_timeout"] = int(given["socketTimeout"]) / 1000
    mode = given.get("sslMode", "").upper()
    if given.get("useSSL", "").lower() == "true" or mode in ("REQUIRED", "TRUST", "VERIFY_CA"):
        options["ssl"] = {"check_hostname": False}
    elif mode in ("VERIFY_IDENTITY", "VERIFY-FULL"):
        options["ssl"] = {"check_hostname": True}
    else:
        # Otherwise every connection loads the machine's certificates, which is slower than a query.
        options["ssl_disabled"] = True
    return options


def _read_column(field: Any, reading: ReadSettings) -> ReadColumn:
    name, kind = field.name, field.type_code
    if kind in _INTEGERS:
        signed, unsigned = _INTEGERS[kind]
        return ReadColumn(name, unsigned if field.flags & FLAG.UNSIGNED else signed)
    if kind in _SIMPLE:
        return ReadColumn(name, _SIMPLE[kind])
    if kind in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
        # The length includes the sign and the decimal point.
        precision = field.length - (field.scale > 0) - (not field.flags & FLAG.UNSIGNED)
        schema = numeric_schema(reading.numeric_mapping, precision, field.scale)
        return ReadColumn(name, schema, numeric_reader(schema))
    if kind in (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP):
        instant = None if reading.zone is UTC else in_utc(reading.zone)
        return timestamp_column(name, reading, instant)
    if kind == FIELD_TYPE.BIT:
        return (
            ReadColumn(name, BOOLEAN, b"\x01".__eq__)
            if field.length == 1
            else ReadColumn(name, BYTES)
        )
    return ReadColumn(name, BYTES if field.charsetnr == _BINARY_CHARSET else STRING)


def _datetime_reader(zone: tzinfo) -> Callable[[str], datetime.datetime | None]:
    """Parses strings to points in time if the zone is UTC, otherwise to local times."""
    parse, offset = datetime.datetime.fromisoformat, "+00:00" if zone is UTC else ""

    def read(text: str) -> datetime.datetime | None:
        try:
            return parse(text + offset)
        except ValueError:
            # '0000-00-00 00:00:00' becomes null, as JDBC drivers can be configured to do.
            if text.startswith("0000"):
                return None
            raise

    return read


def _read_date(text: str) -> datetime.date | None:
    return None if text.startswith("0000") else datetime.date.fromisoformat(text)


def _read_time(text: str) -> datetime.time:
    try:
        return datetime.time.fromisoformat(text)
    except ValueError:
        raise DataError(
            f"the TIME {text} is not a time of day", hint="read it as a string: CAST(... AS CHAR)"
        ) from None


def _decoders(zone: tzinfo) -> dict[Any, Any]:
    read_datetime = _datetime_reader(zone)
    return {
        **conversions,
        FIELD_TYPE.DATETIME: read_datetime,
        FIELD_TYPE.TIMESTAMP: read_datetime,
        FIELD_TYPE.DATE: _read_date,
        FIELD_TYPE.NEWDATE: _read_date,
        FIELD_TYPE.TIME: _read_time,
    }
