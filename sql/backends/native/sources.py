"""Scan: the records of a topic as rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

from broker.errors import SerdeError
from broker.serde import BytesSerde, Serde
from sql.backends.native.row_run import RowRun
from sql.backends.native.row_times import time_reader
from sql.backends.native.rows import AnySerde, key_serde, stored_rows, value_serde, windowed
from sql.backends.native.source_code import ColumnsOf, ColumnSource, PythonCode
from sql.backends.native.steps import RowStream, RowTable, StepContext, then
from sql.errors import RecordFailed
from sql.expressions import ColumnValue
from sql.plan import Scan
from sql.rows.row_format import Row
from sql.schema import HeaderColumn
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed
from streams.stream_time import TimestampExtractor

DECODE = "SQL-DECODE-"

# Called with an error, and the row if it is known.
Log = Callable[[Exception, Row | None], None]
THROW_ON_INVALID = "ksql.timestamp.throw.on.invalid"
ReadRow = Callable[[object, Row, int, Headers], Row]
READ = "read(key, value, timestamp_ms, headers)"
PLACES = 2  # ROWPARTITION and ROWOFFSET, in a Position after the topic


def scanned_rows(step: Scan, context: StepContext) -> RowRun:
    """The rows of a topic, as a stream to which steps can be added."""
    stream = _records(step, context)
    return RowRun(stream, TopicRecords(step, has_place=context.needs_place))


def scanned_table(step: Scan, context: StepContext) -> RowTable:
    """The rows of a topic, as a table."""
    shape = step.shape
    rows = RowRun(_records(step, context), TopicRecords(step))
    if step.kept is not None:
        columns = zip(step.kept, shape.row, strict=True)
        kept = [ColumnValue(place, each.name, each.type) for place, each in columns]
        rows = rows.selected(kept, context.log_of(step.name))
    read = rows.added()
    table: RowTable = read.to_table(
        store=context.name_of(step, "-Reduce"),
        key=windowed(stored_rows(shape.key), shape.window),
        value=stored_rows(shape.row, step.earlier_rows),
        caching=False,
    )
    # To send rows to the partition of a key of this table, the key's bytes in the topic are needed.
    table.node.key_serde = key_serde(step.key_format, shape.key, context.registry, shape.window)
    return table


def _records(step: Scan, context: StepContext) -> RowStream:
    """The records of a topic: keys, and values without the other columns of a row."""
    shape = step.shape
    topic_key = key_serde(step.key_format, shape.key, context.registry, shape.window)
    values = value_serde(step.value_format, step.value, context.registry)
    extractor = extractor_of(step, context)
    if step.topic in context.shared_topics:
        raw = context.builder.stream(step.topic, key=BytesSerde(), value=BytesSerde())
        decoding = DecodeRecords(
            step.topic, topic_key, values, extractor, context.log_of(step.name)
        )
        return then(raw, DECODE, decoding)
    return context.builder.stream(
        step.topic, key=topic_key, value=values, timestamp_extractor=extractor
    )


@dataclass(frozen=True, slots=True)
class DecodeRecords:
    """Decodes keys and values of a topic that several sources read; invalid records are dropped."""

    topic: str
    key: AnySerde
    value: Serde[Row]
    extractor: TimestampExtractor | None
    log: Log

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, drop, topic, log = context.forward, context.drop, self.topic, self.log
        key_of, value_of, extractor = self.key.deserialize, self.value.deserialize, self.extractor

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            try:
                new_key = key_of(topic, cast("bytes | None", key))
                row = value_of(topic, cast("bytes | None", value))
            except SerdeError as error:
                log(error, None)
                drop("a record that cannot be read")
                return
            if extractor is not None:
                timestamp_ms = extractor(new_key, row, timestamp_ms, -1)
                if timestamp_ms < 0:
                    drop("a record without a timestamp")
                    return
            forward(new_key, row, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """Records of a topic: rows have headers, times, position, window and key after their values."""

    scan: Scan
    # Whether the partition and the offset are used.
    has_place: bool = True

    @property
    def _is_plain(self) -> bool:
        return not self.scan.headers and self.scan.shape.window is None

    @property
    def before(self) -> tuple[str, ...]:
        """Simple rows are only created when they are needed."""
        return () if self._is_plain else (f"row = {READ}",)

    @property
    def row(self) -> str:
        """The whole row."""
        if not self._is_plain:
            return "row"
        if self.has_place:
            return READ
        return "value + (timestamp_ms, None, None) + (no_key if key is None else key)"

    @property
    def read(self) -> str:
        """The whole row, with its position."""
        return READ if self._is_plain else "row"

    def columns(self) -> ColumnSource:
        """Columns of simple rows are read directly; others from the row."""
        return _PlainColumns(len(self.scan.value)) if self._is_plain else ColumnsOf("row")

    objects_named: ClassVar[tuple[str, ...]] = ("read", "place", "no_key")

    def objects(self, context: NodeContext) -> dict[str, object]:
        """The functions that create rows."""
        no_key: Row = (None,) * len(self.scan.shape.key)
        read = _open_plain(context, no_key) if self._is_plain else self._open(context, no_key)
        return {"read": read, "place": lambda: context.position, "no_key": no_key}

    def _open(self, context: NodeContext, no_key: Row) -> ReadRow:
        is_windowed = self.scan.shape.window is not None
        header_values = [header_reader(each) for each in self.scan.headers]

        def read(key: object, value: Row, timestamp_ms: int, headers: Headers) -> Row:
            position = context.position
            assert position is not None, "records of a topic have an offset"
            window: Row = (None, None) if is_windowed else ()
            key_row = key
            if is_windowed and key is not None:
                key_row, *bounds = cast("Windowed[object]", key)
                window = tuple(bounds)
            return (
                *value,
                *(each(headers) for each in header_values),
                timestamp_ms,
                position.partition,
                position.offset,
                *window,
                *(no_key if key_row is None else cast("Row", key_row)),
            )

        return read


def _open_plain(context: NodeContext, no_key: Row) -> ReadRow:
    def read(key: object, value: Row, timestamp_ms: int, headers: Headers) -> Row:
        position = context.position
        assert position is not None, "records of a topic have an offset"
        key_row = no_key if key is None else cast("Row", key)
        return (*value, timestamp_ms, position.partition, position.offset, *key_row)

    return read


@dataclass(frozen=True, slots=True)
class _PlainColumns:
    """Columns of rows without headers and windows."""

    values: int
    parameters: str = "key, value, timestamp_ms"

    def code(self, index: int) -> PythonCode:
        """An index of the value, the timestamp, the position or the key."""
        after = index - self.values
        if after < 0:
            return PythonCode(f"value[{index}]", atom=True)
        if after == 0:
            return PythonCode("timestamp_ms", nullable=False, atom=True)
        if after <= PLACES:
            return PythonCode(f"place()[{after}]", nullable=False)
        return PythonCode(f"(None if key is None else key[{after - PLACES - 1}])")


def header_reader(column: HeaderColumn) -> Callable[[Headers], object]:
    wanted = column.key
    if wanted is None:
        return lambda headers: [{"KEY": key, "VALUE": value} for key, value in headers]

    def last(headers: Headers) -> object:
        return next((value for key, value in reversed(headers) if key == wanted), None)

    return last


def extractor_of(step: Scan, context: StepContext) -> TimestampExtractor | None:
    """The timestamp of a row from its TIMESTAMP column; rows without one are dropped and logged."""
    if step.timestamp is None:
        return None
    columns = (*step.value, *step.shape.key)
    read = time_reader(step.timestamp, columns)
    width = len(step.value)
    no_value: Row = (None,) * width
    no_key: Row = (None,) * len(step.shape.key)
    log, fatal = context.log_of(step.name), context.flag(THROW_ON_INVALID)

    def extract(key: object, value: object, timestamp_ms: int, partition_time_ms: int) -> int:
        if value is None:
            return timestamp_ms
        plain = key.key if isinstance(key, Windowed) else key
        row = (
            *(no_value if value is None else cast("Row", value)),
            *(no_key if plain is None else cast("Row", plain)),
        )
        try:
            found = read(row)
        except Exception as error:  # a string that is not a valid time may raise anything
            if fatal:
                raise RecordFailed(
                    f"Fatal error: could not extract a timestamp from the record: {error}"
                ) from error
            log(error, row)
            return -1
        if found < 0:
            log(RecordFailed(f"the timestamp of the record is negative: {found}"), row)
        return found

    return extract
