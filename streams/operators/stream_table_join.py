"""Joins a stream with a table: each record with the current value of its key in the table.

With a versioned table, it is the value at the record's own timestamp. Then records can also wait
for late changes of the table: with a grace they stay in a buffer until the stream time is past
their timestamp plus the grace, and are joined in the order of their timestamps. The buffer is a
key-value store:

    key    time (8 bytes) | key | number of the record with this time and key (4 bytes)
    value  see `_encode`
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from struct import Struct
from typing import Any, cast

from broker.serde import Serde
from streams.operators.joiner import Joiner, key_serde_or_default, value_serde_or_default
from streams.operators.views import TableView
from streams.processor import NodeContext, Process
from streams.record import Headers, Position
from streams.state.store import KeyValueStore

_TIME = Struct(">q")
_NUMBER = Struct(">i")
_SHORT = Struct(">h")
_POSITION = Struct(">iq")


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Joins each record immediately."""

    table: TableView
    joiner: Joiner
    left: bool = False  # whether records without a match are emitted, too
    as_of: bool = False  # whether the table is versioned

    def open(self, context: NodeContext) -> Process:
        drop, left = context.drop, self.left
        join = self.open_join(context)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop("a record without a key or value cannot be joined")
                return
            join(key, value, timestamp_ms, headers)

        return process

    def open_join(self, context: NodeContext) -> Process:
        """The function that joins one record with a value."""
        forward, join, left = context.forward, self.joiner, self.left
        if self.as_of:
            get_as_of = self.table.open_as_of(context)
        else:
            get = self.table.open(context)

            def get_as_of(key: object, timestamp_ms: int) -> tuple[object, int] | None:
                return get(key)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            found = None if key is None else get_as_of(key, timestamp_ms)
            if found is not None:
                forward(key, join(key, value, found[0]), timestamp_ms, headers)
            elif left:
                forward(key, join(key, value, None), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class BufferedStreamTableJoin:
    """Buffers records, so that late changes of a versioned table are joined."""

    join: StreamTableJoin
    grace_ms: int
    store: str
    key_serde: Serde[Any] | None = None  # Any: only the user's code knows the types
    value_serde: Serde[Any] | None = None

    def open(self, context: NodeContext) -> Process:
        drop, left, grace_ms = context.drop, self.join.left, self.grace_ms
        join = self.join.open_join(context)
        time = context.time()
        # Records that are not buffered do not release buffered ones, even if they are later.
        buffer_time = context.time(f"{self.store}-time")
        buffer: _Buffer | None = None

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            nonlocal buffer
            newest_ms = time.advance(timestamp_ms)
            if value is None or (key is None and not left):
                drop("a record without a key or value cannot be joined")
                return
            # While nodes are opened, the store may not be restored yet.
            waiting = buffer = buffer or self._open_buffer(context)
            if key is None or timestamp_ms < newest_ms - grace_ms:
                join(key, value, timestamp_ms, headers)
            else:
                buffer_time.advance(timestamp_ms)
                waiting.add(key, value, timestamp_ms, headers)
            waiting.release(buffer_time.ms - grace_ms, join)

        return process

    def _open_buffer(self, context: NodeContext) -> "_Buffer":
        return _Buffer(
            context,
            cast("KeyValueStore[bytes, bytes]", context.store(self.store)),
            f"{context.application_id}-{self.store}-changelog",
            key_serde_or_default(context, self.key_serde),
            value_serde_or_default(context, self.value_serde),
        )


class _Buffer:
    """Buffered records, the earliest first; the keys are in memory, the values in the store."""

    __slots__ = ("_context", "_key", "_queue", "_store", "_store_keys", "_topic", "_value")

    def __init__(
        self,
        context: NodeContext,
        store: KeyValueStore[bytes, bytes],
        topic: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
    ) -> None:
        self._context = context
        self._store = store
        self._topic = topic
        self._key = key_serde
        self._value = value_serde
        self._store_keys = {store_key for store_key, _ in store.all()}
        self._queue = list(self._store_keys)
        heapify(self._queue)

    def add(self, key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        head = _TIME.pack(timestamp_ms) + (self._key.serialize(self._topic, key) or b"")
        number = 0
        while (store_key := head + _NUMBER.pack(number)) in self._store_keys:
            number += 1
        data = self._value.serialize(self._topic, value) or b""
        self._store.put(store_key, _encode(data, headers, self._context.position))
        self._store_keys.add(store_key)
        heappush(self._queue, store_key)

    def release(self, until_ms: int, join: Process) -> None:
        queue = self._queue
        while queue and _TIME.unpack_from(queue[0])[0] <= until_ms:
            store_key = heappop(queue)
            self._store_keys.remove(store_key)
            value, headers, position = _decode(self._store.delete(store_key) or b"")
            self._context.at(position, self._deferred_join(join, store_key, value, headers))

    def _deferred_join(
        self, join: Process, store_key: bytes, value: bytes, headers: Headers
    ) -> Callable[[], None]:
        key = self._key.deserialize(self._topic, store_key[_TIME.size : -_NUMBER.size])
        decoded = self._value.deserialize(self._topic, value)
        timestamp_ms = _TIME.unpack_from(store_key)[0]
        return lambda: join(key, decoded, timestamp_ms, headers)


def _encode(value: bytes, headers: Headers, position: Position | None) -> bytes:
    """Encode a buffered record: its position, headers and value.

    length of topic (2, -1: unknown) | topic | partition (4) | offset (8)
    number of headers (2) | for each: length of name (2) | name | length (4, -1: none) | value
    value
    """
    parts: list[bytes] = []
    if position is None:
        parts.append(_SHORT.pack(-1))
    else:
        topic = position.topic.encode()
        parts += (
            _SHORT.pack(len(topic)),
            topic,
            _POSITION.pack(position.partition, position.offset),
        )
    parts.append(_SHORT.pack(len(headers)))
    for name, content in headers:
        text = name.encode()
        parts += (_SHORT.pack(len(text)), text)
        parts.append(_NUMBER.pack(-1 if content is None else len(content)))
        parts.append(content or b"")
    parts.append(value)
    return b"".join(parts)


def _decode(entry: bytes) -> tuple[bytes, Headers, Position | None]:
    length, at = _SHORT.unpack_from(entry)[0], _SHORT.size
    position = None
    if length >= 0:
        topic, at = entry[at : at + length].decode(), at + length
        position = Position(topic, *_POSITION.unpack_from(entry, at))
        at += _POSITION.size
    count, at = _SHORT.unpack_from(entry, at)[0], at + _SHORT.size
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = _SHORT.unpack_from(entry, at)[0], at + _SHORT.size
        name, at = entry[at : at + length].decode(), at + length
        length, at = _NUMBER.unpack_from(entry, at)[0], at + _NUMBER.size
        content = None if length < 0 else entry[at : at + length]
        at += max(length, 0)
        headers.append((name, content))
    return entry[at:], tuple(headers), position
