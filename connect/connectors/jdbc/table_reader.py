"""TableReader: the rows of one table or query as records, from an offset on.

A query runs until its last row is returned; the next one starts at its end. `read` returns rows in
order, and every record has the offset to continue from after it. In mode timestamp, several rows
may have the same time: their records have the offset of the previous time, except the last one, so
that a restart may repeat rows but never skips one.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.dialects.dialect import (
    Connection,
    Conversion,
    Cursor,
    ReadColumn,
    ReadSettings,
    Row,
    optional_columns,
)
from connect.connectors.jdbc.table_query import (
    INCREMENTING_KEY,
    Offset,
    TableQuery,
    timestamp_offset,
)
from connect.data import ConnectSchema, Field, Struct, struct
from connect.errors import ConnectError
from connect.records import SourceRecord

# Rows per fetch: more than a batch, which may be small.
_FETCH_ROWS = 2000

# Integers, or a Decimal without digits after the point. Any: whatever the column has.
_number: Callable[[Any], int] = int

OffsetOf = Callable[[Row, Row | None], dict[str, object]]


@dataclass(frozen=True, slots=True)
class Origin:
    """The names of a table or query."""

    name: str | None  # of the schema
    topic: str
    partition: Mapping[str, object]
    required: Mapping[str, bool]  # columns that are never null


@dataclass(slots=True)
class _Shape:
    """How rows of the running query are converted to records."""

    schema: ConnectSchema
    positions: Sequence[int] | None  # of the columns that are read; None: all
    conversions: list[tuple[int, ReadColumn]]
    offset_of: OffsetOf


class TableReader:
    """Reads one table or query repeatedly."""

    def __init__(
        self,
        database: Database,
        query: TableQuery,
        origin: Origin,
        reading: ReadSettings,
        *,
        start: Offset,
        delay_ms: int,
    ) -> None:
        self.due_ms = 0
        self._database = database
        self._query = query
        self._origin = origin
        self._reading = reading
        self._delay = timedelta(milliseconds=delay_ms)
        self._offset = start
        self._passed = start.timestamp
        self._cursor: Cursor | None = None
        self._shape: _Shape | None = None
        self._rows: Sequence[Row] = ()
        self._is_last_fetch = False

    def __str__(self) -> str:
        return f"table {self._origin.name}" if self._origin.name else "the query"

    @property
    def is_running(self) -> bool:
        """Whether a query has rows that were not returned yet."""
        return self._cursor is not None

    def read(self, connection: Connection, rows_max: int) -> list[SourceRecord]:
        """The next records; starts a query if none is running, ends it after its last row."""
        if self._cursor is None:
            self._start(connection)
        assert self._cursor is not None
        # One row more than the batch shows whether there are more rows with the last row's time.
        while len(self._rows) <= rows_max and not self._is_last_fetch:
            fetched = self._cursor.fetchmany(_FETCH_ROWS)
            self._is_last_fetch = len(fetched) < _FETCH_ROWS
            self._rows = [*self._rows, *fetched] if self._rows else fetched
        batch, self._rows = self._rows[:rows_max], self._rows[rows_max:]
        following = self._rows[0] if self._rows else None
        records = self._records(batch, following)
        if not self._rows and self._is_last_fetch:
            self._finish(connection)
        # Only now: if ending the query failed, these rows are read again.
        if records:
            self._offset = Offset.from_map(records[-1].source_offset)
        return records

    def reset(self) -> None:
        """Ends a running query: the next one starts after the last returned record."""
        cursor, self._cursor = self._cursor, None
        self._rows = ()
        self._passed = self._offset.timestamp
        if cursor is not None:
            self._database.dialect.abandon(cursor)

    def _start(self, connection: Connection) -> None:
        until = None
        if self._query.timestamps:
            until = self._database.dialect.now(connection) - self._delay
        statement = self._query.statement(self._offset, until)
        cursor = self._database.dialect.query(connection, statement)
        self._cursor = cursor
        self._rows, self._is_last_fetch = (), False
        # Columns may have changed since the last query.
        columns = self._database.dialect.columns(connection, cursor, statement, self._reading)
        self._shape = self._shape_of(columns)

    def _finish(self, connection: Connection) -> None:
        assert self._cursor is not None
        self._cursor.close()
        connection.rollback()  # reading needs no commit, and holds no locks between queries
        self._cursor = None

    def _records(self, batch: Sequence[Row], following: Row | None) -> list[SourceRecord]:
        if not batch:
            return []
        shape = self._shape
        assert shape is not None
        schema, offset_of = shape.schema, shape.offset_of
        partition, topic = self._origin.partition, self._origin.topic
        count, followers = len(batch), itertools.chain(batch[1:], (following,))
        return SourceRecord.of_columns(
            itertools.repeat(partition, count),
            map(offset_of, batch, followers),
            itertools.repeat(topic, count),
            itertools.repeat(None, count),  # any partition
            itertools.repeat(None, count),  # no key
            itertools.repeat(None, count),
            itertools.repeat(schema, count),
            map(Struct, itertools.repeat(schema), _values(shape, batch)),
            itertools.repeat(None, count),  # the producer's time
            itertools.repeat((), count),
        )

    def _shape_of(self, columns: list[ReadColumn]) -> _Shape:
        kept = [index for index, column in enumerate(columns) if column.schema is not None]
        read = optional_columns([columns[index] for index in kept], self._origin.required)
        fields = [Field(column.name, column.schema) for column in read if column.schema]
        conversions = [
            (index, column) for index, column in enumerate(read) if column.read is not None
        ]
        return _Shape(
            struct(self._origin.name, fields),
            None if len(kept) == len(columns) else kept,
            conversions,
            self._offset_of(columns),
        )

    def _offset_of(self, columns: list[ReadColumn]) -> OffsetOf:
        query = self._query
        if not query.timestamps:
            if query.incrementing is None:
                return lambda row, following: {}
            place = _index_of(columns, query.incrementing)
            return lambda row, following: {INCREMENTING_KEY: _number(row[place])}
        instant_of = self._instant_of(columns)
        if query.incrementing is not None:
            place = _index_of(columns, query.incrementing)
            return lambda row, following: {
                **timestamp_offset(instant_of(row)),
                INCREMENTING_KEY: _number(row[place]),
            }

        def passed(row: Row, following: Row | None) -> dict[str, object]:
            instant = instant_of(row)
            if following is None or instant_of(following) != instant:
                self._passed = instant
            assert self._passed is not None
            return timestamp_offset(self._passed)

        return passed

    def _instant_of(self, columns: list[ReadColumn]) -> Callable[[Row], datetime]:
        """The time of a row: that of the first timestamp column that is not null."""
        places = [_index_of(columns, name) for name in self._query.timestamps]
        readers: list[tuple[int, Conversion]] = []
        for place in places:
            convert = columns[place].instant
            if convert is None:
                raise ConnectError(
                    f'column "{columns[place].name}" is not a timestamp', at=str(self)
                )
            readers.append((place, convert))
        rounded = self._database.dialect.instant_offset

        def instant_of(row: Row) -> datetime:
            for place, convert in readers:
                if row[place] is not None:
                    instant = convert(row[place])
                    assert isinstance(instant, datetime)
                    return rounded(instant)
            raise ConnectError("a row without a time was found by its time", at=str(self))

        return instant_of


def _values(shape: _Shape, batch: Sequence[Row]) -> Iterable[list[object]]:
    """The values of rows as in records: whole columns are converted at once."""
    if shape.positions is None and not shape.conversions:
        return map(list, batch)
    columns: list[Sequence[object]] = list(zip(*batch, strict=True))
    if shape.positions is not None:
        columns = [columns[position] for position in shape.positions]
    for position, column in shape.conversions:
        columns[position] = _converted(column, columns[position])
    return map(list, zip(*columns, strict=True))


def _converted(column: ReadColumn, values: Sequence[object]) -> Sequence[object]:
    read = column.read
    assert read is not None
    if column.usual is not None and set(map(type, values)) == {column.usual}:
        usual = column.read_usual
        return values if usual is None else list(map(usual, values))
    if None in values:
        return [None if value is None else read(value) for value in values]
    return list(map(read, values))


def _index_of(columns: list[ReadColumn], name: str) -> int:
    """The index of a column in a row; case is ignored if only one column matches."""
    names = [column.name for column in columns]
    if name in names:
        return names.index(name)
    similar = [index for index, other in enumerate(names) if other.lower() == name.lower()]
    if len(similar) != 1:
        raise ConnectError(
            f'column "{name}" does not exist', hint=f"the columns are {', '.join(names)}"
        )
    return similar[0]
