"""suppress: buffers the changes of a table until a time limit, or until their window closes.

The buffer is a key-value store of bytes with a changelog. Its rows are also in memory, with a heap
by buffer time and serialised key, which is the order in which rows are emitted. A later change of a
buffered key replaces its value, but not its buffer time. The store is written at commits.

    row      serialised key
             buffer time int64 | timestamp int64 | position | headers | prior value | new value
    position offset int64 | partition int32 | topic; a topic of length -1: no position
    headers  count int32, then name and value each
    strings and values: length int32 (-1: null) | bytes

Old values are the last emitted ones: the old value of the first change of a key that is not
buffered. (Kafka Streams sends the old value of the last change, which its children never received,
so aggregates of a suppressed table are wrong there.)
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, cast

from broker.serde import Serde
from streams.errors import BufferOverflow
from streams.operators.emitting import Getter
from streams.operators.joiner import key_serde_or_default, value_serde_or_default
from streams.operators.views import GetterAsOf, TableView
from streams.processor import NodeContext, Process
from streams.record import Change, Headers, Position, Windowed
from streams.state.store import NO_LIMIT, KeyValueStore

_TIMES = struct.Struct(">qq")
_POSITION = struct.Struct(">qi")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Suppress:
    """Buffers changes.

    A row is emitted when stream time has reached its buffer time plus `wait_ms`. The buffer time is
    the end of its window if `until_window_closes`, otherwise the time of its first buffered change.
    With `end_is_inclusive` a record at the end belongs to the window, so stream time must be past
    it.
    """

    store: str
    wait_ms: int
    key_serde: Serde[Any] | None = None  # None: the application's default
    value_serde: Serde[Any] | None = None
    until_window_closes: bool = False
    end_is_inclusive: bool = False
    records_max: int = NO_LIMIT
    bytes_max: int = NO_LIMIT
    shuts_down: bool = False  # when full; otherwise rows are emitted early

    def open(self, context: NodeContext) -> Process:
        """For each change: buffer it, then emit the rows that are due or exceed the limits."""
        buffer = shared_buffer(context, self.store, self.key_serde, self.value_serde)
        context.before_commit(buffer.write)
        time, forward, final = context.time(), context.forward, self.until_window_closes
        wait_ms = self.wait_ms + 1 if self.end_is_inclusive else self.wait_ms
        records_max = self.records_max if self.records_max != NO_LIMIT else None
        bytes_max = self.bytes_max if self.bytes_max != NO_LIMIT else None

        def release() -> None:
            row = buffer.pop()
            # The deletion of a window that was never emitted is not emitted.
            if row.new is None and row.prior is None and final:
                return
            change = (row.new, row.prior, True)
            context.at(
                row.position, lambda: forward(row.key, change, row.timestamp_ms, row.headers)
            )

        def is_full() -> bool:
            return (records_max is not None and len(buffer.rows) > records_max) or (
                bytes_max is not None and buffer.bytes > bytes_max
            )

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, _ = cast("Change", value)
            now_ms = time.advance(timestamp_ms)
            time_ms = cast("Windowed[object]", key).end_ms if final else timestamp_ms
            row = buffer.row_of(key, time_ms, old)
            row.new, row.timestamp_ms, row.headers = new, timestamp_ms, headers
            row.position = context.position
            if bytes_max is not None:
                buffer.measure(row)
            due_ms = now_ms - wait_ms
            while buffer.first_time_ms() <= due_ms:
                release()
            while is_full():
                if self.shuts_down:
                    raise self._overflow(context, buffer)
                release()

        return process

    def _overflow(self, context: NodeContext, buffer: "Buffer") -> BufferOverflow:
        return BufferOverflow(
            f"the suppress buffer is full: {len(buffer.rows)} records, {buffer.bytes} bytes",
            at=f'node "{context.node}", task {context.task_id}',
            hint='increase max_records or max_bytes, or use when_full="emit_early"',
        )


class Row:
    """A row of the buffer: the last change of a key, and the last emitted value."""

    __slots__ = (
        "bytes",
        "headers",
        "key",
        "key_bytes",
        "new",
        "position",
        "prior",
        "time_ms",
        "timestamp_ms",
    )

    def __init__(self, key: object, key_bytes: bytes, time_ms: int, prior: object) -> None:
        self.key, self.key_bytes, self.time_ms, self.prior = key, key_bytes, time_ms, prior
        self.new: object = None
        self.timestamp_ms = 0
        self.headers: Headers = ()
        self.position: Position | None = None
        self.bytes = 0


class Buffer:
    """The buffered rows, in memory and in the store."""

    def __init__(
        self,
        store: KeyValueStore[bytes, bytes],
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
    ) -> None:
        """The store is read at the first use, because it may not be restored yet."""
        self._store, self._name = store, name
        self._key_serde, self._value_serde = key_serde, value_serde
        self._order: list[tuple[int, bytes]] = []
        self._dirty: dict[bytes, None] = {}
        self._rows: dict[bytes, Row] | None = None
        self.bytes = 0  # correct only if rows are measured

    @property
    def rows(self) -> dict[bytes, Row]:
        """Rows by serialised key."""
        if self._rows is None:
            self._rows = {}
            for key_bytes, data in self._store.all():
                row = self._decoded(key_bytes, data)
                self._rows[key_bytes] = row
                self._order.append((row.time_ms, key_bytes))
                row.bytes = len(key_bytes) + len(data)
                self.bytes += row.bytes
            self._order.sort()
        return self._rows

    def row_of(self, key: object, time_ms: int, old: object) -> Row:
        """The buffered row of a key, or a new one; it is written at the next commit."""
        rows = self.rows
        key_bytes = self._serialized_key(key)
        row = rows.get(key_bytes)
        if row is None:
            row = rows[key_bytes] = Row(key, key_bytes, time_ms, old)
            heappush(self._order, (time_ms, key_bytes))
        self._dirty[key_bytes] = None
        return row

    def find(self, key: object) -> Row | None:
        """The row of a key, if it is buffered."""
        return self.rows.get(self._serialized_key(key))

    def measure(self, row: Row) -> None:
        """Update the size of a row."""
        size = len(row.key_bytes) + len(self._encoded(row))
        self.bytes += size - row.bytes
        row.bytes = size

    def first_time_ms(self) -> float:
        """The buffer time of the first row; infinity if there is none."""
        return self._order[0][0] if self._order else float("inf")

    def pop(self) -> Row:
        """Remove and return the first row."""
        _, key_bytes = heappop(self._order)
        row = self.rows.pop(key_bytes)
        self._dirty[key_bytes] = None
        self.bytes -= row.bytes
        return row

    def write(self) -> None:
        """Write changed rows to the store."""
        rows = self.rows if self._dirty else {}
        for key_bytes in self._dirty:
            row = rows.get(key_bytes)
            self._store.put(key_bytes, None if row is None else self._encoded(row))
        self._dirty.clear()

    def _serialized_key(self, key: object) -> bytes:
        return cast("bytes", self._key_serde.serialize(self._name, key))

    def _encoded(self, row: Row) -> bytes:
        parts = [_TIMES.pack(row.time_ms, row.timestamp_ms)]
        if row.position is None:
            parts += [_POSITION.pack(-1, -1), _with_length(None)]
        else:
            parts.append(_POSITION.pack(row.position.offset, row.position.partition))
            parts.append(_with_length(row.position.topic.encode()))
        parts.append(_LENGTH.pack(len(row.headers)))
        for name, value in row.headers:
            parts += [_with_length(name.encode()), _with_length(value)]
        for content in (row.prior, row.new):
            parts.append(_with_length(self._value_serde.serialize(self._name, content)))
        return b"".join(parts)

    def _decoded(self, key_bytes: bytes, data: bytes) -> Row:
        time_ms, timestamp_ms = _TIMES.unpack_from(data)
        offset, partition = _POSITION.unpack_from(data, _TIMES.size)
        topic, at = _read(data, _TIMES.size + _POSITION.size)
        (count,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        headers = []
        for _ in range(count):
            name, at = _read(data, at)
            value, at = _read(data, at)
            headers.append((cast("bytes", name).decode(), value))
        prior, at = _read(data, at)
        new, at = _read(data, at)
        value_of = self._value_serde.deserialize
        key = self._key_serde.deserialize(self._name, key_bytes)
        row = Row(key, key_bytes, time_ms, value_of(self._name, prior))
        row.new, row.timestamp_ms = value_of(self._name, new), timestamp_ms
        row.headers = tuple(headers)
        row.position = None if topic is None else Position(topic.decode(), partition, offset)
        return row


def _with_length(data: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if data is None else _LENGTH.pack(len(data)) + data


def _read(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    begin = at + _LENGTH.size
    return (None, begin) if length < 0 else (data[begin : begin + length], begin + length)


def shared_buffer(
    context: NodeContext,
    store: str,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> Buffer:
    """The buffer of a store, the same for all nodes of a task."""

    def make() -> Buffer:
        return Buffer(
            cast("KeyValueStore[bytes, bytes]", context.store(store)),
            store,
            key_serde_or_default(context, key_serde),
            value_serde_or_default(context, value_serde),
        )

    return context.shared(f"{store}-buffer", make)


@dataclass(frozen=True, slots=True)
class SuppressedView:
    """The view of a suppressed table: the last emitted values."""

    parent: TableView
    store: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        """The buffer, and the stores of the table above."""
        return (self.store, *self.parent.stores)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """The value before the buffered change; the table's own if no change is buffered."""
        above: Callable[[object], tuple[object, int] | None] = self.parent.open(
            context, emitted=emitted
        )
        buffer = shared_buffer(context, self.store, self.key_serde, self.value_serde)

        def get(key: object) -> tuple[object, int] | None:
            row = buffer.find(key)
            if row is None:
                return above(key)
            # The timestamp of a prior value is unknown; a join uses the larger one of both sides.
            return None if row.prior is None else (row.prior, -1)

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the current value: a suppressed table has no history."""
        present = self.open(context)
        return lambda key, timestamp_ms: present(key)
