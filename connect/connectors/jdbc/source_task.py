"""JdbcSourceTask: polls its tables in turn for new rows."""

import logging
from collections.abc import Mapping, Sequence
from typing import NoReturn

from broker import concurrency
from broker.clock import Clock, SystemClock
from connect.api import SourceTask
from connect.config_def import Settings
from connect.connectors.jdbc.database import Database, given_up
from connect.connectors.jdbc.dialects.dialect import Connection, ReadSettings, TableColumn
from connect.connectors.jdbc.source_config import (
    INCREMENTING,
    SOURCE_DEFINITION,
    TIMESTAMP,
    TIMESTAMP_INCREMENTING,
    initial_timestamp,
    numeric_mapping,
)
from connect.connectors.jdbc.table_query import (
    QUERY_PARTITION,
    Offset,
    TableQuery,
    table_partition,
)
from connect.connectors.jdbc.table_reader import Origin, TableReader
from connect.connectors.jdbc.tables import TableName, read_table_list
from connect.connectors.jdbc.timestamps import GRANULARITIES
from connect.errors import ConnectError, RetriableError
from connect.records import SourceRecord
from connect.stop_signal import StopSignal

# The setting of a task with its tables, in the format of `list_tables`.
TABLES = "tables"
# A poll without rows returns after this time, so that the worker can do other work.
_WAIT_MS_MAX = 500

_log = logging.getLogger(__name__)


class JdbcSourceTask(SourceTask):
    """Reads some tables, or one query."""

    def __init__(self, clock: Clock | None = None) -> None:
        """The clock is used for waits."""
        self._clock = clock or SystemClock()
        self._stop = StopSignal(self._clock)
        # Held while the connection is used: `stop` closes it from another thread.
        self._lock = concurrency.Lock()
        self._connection: Connection | None = None
        self._readers: list[TableReader] = []
        self._failures = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Connects, checks the tables and restores the offsets."""
        settings = SOURCE_DEFINITION.parse(config)
        self._settings = settings
        self._database = Database(
            settings, config, isolation=settings.text("transaction.isolation.mode")
        )
        self._rows_max = settings.integer("batch.max.rows")
        self._interval_ms = settings.integer("poll.interval.ms")
        self._retries_max = settings.integer("query.retry.attempts")
        self._database.attempt_with_retries(lambda: self._open(config), self.context.stopping())

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next rows of the table that is due."""
        if not self._readers:
            self._stop.wait(_WAIT_MS_MAX)
            return None
        # A running query continues: only one can run on a connection.
        reader = min(self._readers, key=lambda each: (not each.is_running, each.due_ms))
        wait_ms = reader.due_ms - self._clock.monotonic_ms()
        if not reader.is_running and wait_ms > 0:
            self._stop.wait(min(wait_ms, _WAIT_MS_MAX))
            if wait_ms > _WAIT_MS_MAX or self._stop.is_set():
                return None
        with self._lock:
            if self._stop.is_set():
                return None
            return self._read(reader) or None

    def stop(self) -> None:
        """Ends a wait immediately, and a query after its current rows."""
        self._stop.set()
        with self._lock:
            self._disconnect()

    def _read(self, reader: TableReader) -> Sequence[SourceRecord]:
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            records = reader.read(self._connection, self._rows_max)
        except Exception as error:
            self._fail(reader, error)
        self._failures = 0
        if not reader.is_running:
            reader.due_ms = self._clock.monotonic_ms() + self._interval_ms
        return records

    def _fail(self, reader: TableReader, error: Exception) -> NoReturn:
        """Raise RetriableError until the retries are exhausted."""
        self._disconnect()
        found = self._database.translated(f"cannot read {reader}", error)
        if found is None:
            if not isinstance(error, RetriableError):
                raise error
            found = error
        cause = error.__cause__ if found is error else error
        self._failures += 1
        if 0 <= self._retries_max < self._failures:
            raise given_up(found, "see query.retry.attempts") from cause
        reader.due_ms = self._clock.monotonic_ms() + min(
            self._database.backoff_ms, self._interval_ms
        )
        raise found from cause

    def _disconnect(self) -> None:
        for reader in self._readers:
            reader.reset()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except Exception as error:
            # A broken connection cannot be closed properly; nothing is lost.
            _log.debug("closing a connection to %s: %s", self._database, error)

    def _open(self, config: Mapping[str, str]) -> None:
        self._connection = self._database.connect()
        try:
            self._readers = self._database.attempt(
                "cannot start", lambda: self._all_readers(config)
            )
        except Exception:
            self._disconnect()
            raise

    def _all_readers(self, config: Mapping[str, str]) -> list[TableReader]:
        settings = self._settings
        schema, shown = GRANULARITIES[settings.text("timestamp.granularity")]
        reading = ReadSettings(
            self._database.session.zone, numeric_mapping(settings), schema, shown
        )
        if settings.text("query"):
            return [self._query_reader(settings.text("query"), reading)]
        tables = read_table_list(config.get(TABLES, ""))
        return [self._table_reader(table, reading) for table in tables]

    def _query_reader(self, select: str, reading: ReadSettings) -> TableReader:
        settings = self._settings
        origin = Origin(None, settings.text("topic.prefix"), QUERY_PARTITION, {})
        incrementing = settings.text("incrementing.column.name") or None
        return self._reader(select, origin, reading, incrementing if self._grows else None)

    def _table_reader(self, table: TableName, reading: ReadSettings) -> TableReader:
        settings, database = self._settings, self._database
        described = database.describe(table)
        if described is None:
            raise ConnectError(f"table {table} does not exist", at=str(database))
        columns = described.columns
        incrementing = _incrementing_column(settings, table, columns) if self._grows else None
        if settings.boolean("validate.non.null"):
            timestamps = settings.strings("timestamp.column.name") if self._has_times else []
            _check_not_null(table, columns, incrementing, timestamps)
        origin = Origin(
            table.name,
            settings.text("topic.prefix") + table.name,
            table_partition(table),
            {column.name: not column.nullable for column in columns},
        )
        select = f"SELECT * FROM {database.quoting.table(table)}"
        return self._reader(select, origin, reading, incrementing)

    def _reader(
        self, select: str, origin: Origin, reading: ReadSettings, incrementing: str | None
    ) -> TableReader:
        settings, database = self._settings, self._database
        query = TableQuery(
            select,
            settings.text("query.suffix"),
            incrementing,
            tuple(settings.strings("timestamp.column.name")) if self._has_times else (),
            database.dialect,
            database.quoting,
            database.session.zone,
        )
        start = Offset.from_map(self.context.offset_reader.offset(origin.partition))
        if query.timestamps and start.timestamp is None:
            assert self._connection is not None
            now = database.dialect.now(self._connection)
            start = Offset(start.incrementing, initial_timestamp(settings, now))
        return TableReader(
            database,
            query,
            origin,
            reading,
            start=start,
            delay_ms=settings.integer("timestamp.delay.interval.ms"),
        )

    @property
    def _grows(self) -> bool:
        return self._settings.text("mode") in (INCREMENTING, TIMESTAMP_INCREMENTING)

    @property
    def _has_times(self) -> bool:
        return self._settings.text("mode") in (TIMESTAMP, TIMESTAMP_INCREMENTING)


def _incrementing_column(
    settings: Settings, table: TableName, columns: Sequence[TableColumn]
) -> str:
    """The configured column, or the only autoincrement column of the table."""
    name = settings.text("incrementing.column.name")
    if name:
        return name
    found = [column.name for column in columns if column.is_autoincrement]
    if len(found) != 1:
        raise ConnectError(
            f"table {table} has {len(found)} autoincrement columns, not one",
            hint="set incrementing.column.name to the column to use",
        )
    return found[0]


def _check_not_null(
    table: TableName,
    columns: Sequence[TableColumn],
    incrementing: str | None,
    timestamps: Sequence[str],
) -> None:
    nullable = {column.name.lower(): column.nullable for column in columns}
    hint = "declare the column NOT NULL, or set validate.non.null=false"
    if incrementing is not None and nullable.get(incrementing.lower(), False):
        raise ConnectError(
            f"Cannot make incremental queries using incrementing column {incrementing} on "
            f"{table} because this column is nullable.",
            hint=hint,
        )
    if timestamps and all(nullable.get(name.lower(), False) for name in timestamps):
        raise ConnectError(
            f"Cannot make incremental queries using timestamp columns {', '.join(timestamps)} on "
            f"{table} because all of these columns nullable.",
            hint=hint,
        )
