"""JdbcSinkTask: writes records with retries, and isolates records that the table refuses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from connect.api import SinkTask
from connect.connectors.jdbc.database import Database, given_up
from connect.connectors.jdbc.dialects.dialect import DriverFailure
from connect.connectors.jdbc.sink_config import SINK_DEFINITION, mapping_of
from connect.connectors.jdbc.sink_rows import PreparedRow
from connect.connectors.jdbc.sink_tables import SinkTables
from connect.connectors.jdbc.sink_writer import SinkWriter
from connect.connectors.jdbc.tables import TableName
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import SinkRecord

_TOPIC = "${topic}"


class JdbcSinkTask(SinkTask):
    """Writes the records of each topic into one table."""

    def __init__(self) -> None:
        self._writer: SinkWriter | None = None
        self._failures = 0
        self._names: dict[str, TableName] = {}

    def start(self, config: Mapping[str, str]) -> None:
        """Reads the configuration; the first records open the connection."""
        settings = SINK_DEFINITION.parse(config)
        self._database = Database(settings, config)
        self._name_format = settings.text("table.name.format")
        self._rows_max = settings.integer("batch.size")
        self._retries_max = settings.integer("max.retries")
        self._backoff_ms = settings.integer("retry.backoff.ms")
        tables = SinkTables(
            self._database,
            create=settings.boolean("auto.create"),
            evolve=settings.boolean("auto.evolve"),
            kinds=frozenset(kind.upper() for kind in settings.strings("table.types")),
        )
        self._writer = SinkWriter(self._database, tables, mapping_of(settings))

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Writes records table by table; retriable errors make the worker put them again."""
        if not records:
            return
        try:
            for table, of_table in self._by_table(records).items():
                self._write_table(table, of_table)
        except Exception as error:
            self._fail(error)
        self._failures = 0

    def stop(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _by_table(self, records: Sequence[SinkRecord]) -> dict[TableName, list[SinkRecord]]:
        result: dict[TableName, list[SinkRecord]] = {}
        for record in records:
            table = self._names.get(record.topic)
            if table is None:
                name = self._name_format.replace(_TOPIC, record.topic)
                table = self._names[record.topic] = self._database.table_named(name.split("."))
            result.setdefault(table, []).append(record)
        return result

    def _write_table(self, table: TableName, records: Sequence[SinkRecord]) -> None:
        for start in range(0, len(records), self._rows_max):
            chunk = records[start : start + self._rows_max]
            rows = list(self._rows(table, chunk))
            if rows:
                self._write(rows)

    def _rows(self, table: TableName, records: Sequence[SinkRecord]) -> Iterator[PreparedRow]:
        assert self._writer is not None
        for record in records:
            try:
                row = self._writer.row(table, record)
            except DataError as error:
                self._refuse(record, error)
                continue
            if row is not None:
                yield row

    def _write(self, rows: Sequence[PreparedRow]) -> None:
        """Write rows; on a bad value, halve them until the bad rows are isolated."""
        assert self._writer is not None
        try:
            self._writer.write(rows)
        except Exception as error:
            if not self._is_bad_value(error):
                raise
            if self.context.errant_record_reporter is None:
                raise self._bad_rows(rows, error) from error
            if len(rows) == 1:
                self._refuse(rows[0].record, error)
                return
            middle = len(rows) // 2
            self._write(rows[:middle])
            self._write(rows[middle:])

    def _is_bad_value(self, error: Exception) -> bool:
        if isinstance(error, DataError):
            return True
        return self._database.dialect.failure(error) is DriverFailure.BAD_VALUE

    def _refuse(self, record: SinkRecord, error: Exception) -> None:
        """Report a record to the dead letter queue, or fail."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            message = error.message if isinstance(error, ConnectError) else str(error)
            hint = error.hint if isinstance(error, ConnectError) else ""
            raise DataError(message, at=_place(record), hint=hint) from error
        reporter.report(record, error)

    def _bad_rows(self, rows: Sequence[PreparedRow], error: Exception) -> ConnectError:
        at = _place(rows[0].record)
        if len(rows) > 1:
            at = f"one of {len(rows)} records, from {at} to {_place(rows[-1].record)}"
        return ConnectError(
            f"the table does not accept a row: {str(error).strip()}",
            at=at,
            hint="with errors.tolerance=all such records are skipped, and written to the "
            "dead letter queue",
        )

    def _fail(self, error: Exception) -> NoReturn:
        """Raise RetriableError until the retries are exhausted."""
        assert self._writer is not None
        self._writer.forget()
        found = self._database.translated("cannot write", error)
        if found is None:
            if not isinstance(error, RetriableError):
                raise error
            found = error
        cause = error.__cause__ if found is error else error
        self._failures += 1
        if 0 <= self._retries_max < self._failures:
            raise given_up(found, "see max.retries") from cause
        self.context.timeout(self._backoff_ms)
        raise found from cause


def _place(record: SinkRecord) -> str:
    return (
        f'topic "{record.original_topic}" partition {record.original_partition} '
        f"offset {record.original_offset}"
    )
