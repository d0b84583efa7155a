"""Records of a left or outer stream join that have no match yet, until their window has passed.

They are stored in a key-value store, so they survive a crash:

    key    time (8 bytes) | side (1 byte: 0 right, 1 left) | key
    value  for each value, oldest first: length (4 bytes) | value

so the order of the store is the order of emission: by time, right before left, by key. An index of
the keys in memory saves a lookup in the store for each record; it is created when first needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from struct import Struct
from typing import Any, NamedTuple, cast

from broker.serde import Serde
from streams.operators.joiner import key_serde_or_default, value_serde_or_default
from streams.processor import NodeContext
from streams.state.store import KeyValueStore
from streams.windows import JoinWindows

EMIT_INTERVAL_SETTING = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"
EMIT_INTERVAL_MS = 1000

RIGHT, LEFT = 0, 1
_HEAD = Struct(">qB")
_LENGTH = Struct(">i")


class Unmatched(NamedTuple):
    """A record without a match."""

    left: bool
    key: object
    value: object
    timestamp_ms: int


class PendingRecords:
    """The pending records of both sides of a join in a task. Only the task's thread uses it."""

    __slots__ = ("_emit_at_ms", "_interval_ms", "_keys", "_lag_ms", "_queues", "_serdes", "_store")

    def __init__(
        self,
        store: KeyValueStore[bytes, bytes],
        serdes: "PendingSerdes",
        lag_ms: tuple[int, int],
        interval_ms: int,
    ) -> None:
        self._store = store
        self._serdes = serdes
        self._lag_ms = lag_ms  # how long records of the right, the left side wait
        self._interval_ms = interval_ms
        self._emit_at_ms = 0
        self._keys = {key for key, _ in store.all()}
        # Keys of each side, the earliest first; those no longer in `_keys` have found a match.
        self._queues = tuple([key for key in self._keys if key[8] == side] for side in (0, 1))
        for queue in self._queues:
            heapify(queue)

    def is_expired(self, side: int, timestamp_ms: int, stream_time_ms: int) -> bool:
        """Whether a record can no longer find a match."""
        return timestamp_ms + self._lag_ms[side] < stream_time_ms

    def add(self, side: int, key: object, value: object, timestamp_ms: int) -> None:
        """Add a record that waits for a match."""
        store_key = self._serdes.store_key(side, key, timestamp_ms)
        data = self._serdes.value_bytes(side, value)
        entry = _LENGTH.pack(len(data)) + data
        if store_key in self._keys:
            entry = (self._store.get(store_key) or b"") + entry
        else:
            self._keys.add(store_key)
            heappush(self._queues[side], store_key)
        self._store.put(store_key, entry)

    def match(self, side: int, key: object, timestamp_ms: int) -> None:
        """Remove records of a side with this key and time: they have found a match."""
        if not self._keys:
            return
        store_key = self._serdes.store_key(side, key, timestamp_ms)
        if store_key in self._keys:
            self._keys.remove(store_key)
            self._store.delete(store_key)

    def release(self, stream_time_ms: int, now_ms: int) -> list[Unmatched]:
        """Remove and return records whose window has passed; at most once per interval."""
        if not any(self._is_first_expired(side, stream_time_ms) for side in (RIGHT, LEFT)):
            return []
        if now_ms < self._emit_at_ms:
            return []
        self._emit_at_ms = now_ms + self._interval_ms
        store_keys = [
            store_key
            for side in (RIGHT, LEFT)
            for store_key in self._remove_expired(side, stream_time_ms)
        ]
        store_keys.sort()
        unmatched_records: list[Unmatched] = []
        for store_key in store_keys:
            unmatched_records.extend(
                self._serdes.unmatched(store_key, self._store.delete(store_key) or b"")
            )
        return unmatched_records

    def _is_first_expired(self, side: int, stream_time_ms: int) -> bool:
        queue, keys = self._queues[side], self._keys
        while queue and queue[0] not in keys:
            heappop(queue)
        return bool(queue) and self.is_expired(side, _HEAD.unpack_from(queue[0])[0], stream_time_ms)

    def _remove_expired(self, side: int, stream_time_ms: int) -> Iterator[bytes]:
        while self._is_first_expired(side, stream_time_ms):
            store_key = heappop(self._queues[side])
            self._keys.remove(store_key)
            yield store_key


@dataclass(frozen=True, slots=True)
class PendingSerdes:
    """The serdes of the store. Any: only the user's code knows the types."""

    topic: str
    key: Serde[Any]
    left: Serde[Any]
    right: Serde[Any]

    def store_key(self, side: int, key: object, timestamp_ms: int) -> bytes:
        """Encode a key of the store."""
        return _HEAD.pack(timestamp_ms, side) + (self.key.serialize(self.topic, key) or b"")

    def value_bytes(self, side: int, value: object) -> bytes:
        """Serialize a value."""
        serde = self.left if side == LEFT else self.right
        return serde.serialize(self.topic, value) or b""

    def unmatched(self, store_key: bytes, entry: bytes) -> Iterator[Unmatched]:
        """The records of one entry, oldest first."""
        timestamp_ms, side = _HEAD.unpack_from(store_key)
        key = self.key.deserialize(self.topic, store_key[_HEAD.size :])
        serde = self.left if side == LEFT else self.right
        at = 0
        while at < len(entry):
            start = at + _LENGTH.size
            at = start + _LENGTH.unpack_from(entry, at)[0]
            value = serde.deserialize(self.topic, entry[start:at])
            yield Unmatched(side == LEFT, key, value, timestamp_ms)


@dataclass(frozen=True, slots=True)
class PendingSpec:
    """The store, windows and serdes of pending records."""

    store: str
    windows: JoinWindows
    key_serde: Serde[Any] | None = None
    left_serde: Serde[Any] | None = None
    right_serde: Serde[Any] | None = None

    def open(self, context: NodeContext) -> PendingRecords:
        """The pending records of a task; called with the first record."""
        return context.shared(f"{self.store}-pending", lambda: self._make(context))

    def _make(self, context: NodeContext) -> PendingRecords:
        serdes = PendingSerdes(
            f"{context.application_id}-{self.store}-changelog",
            key_serde_or_default(context, self.key_serde),
            value_serde_or_default(context, self.left_serde),
            value_serde_or_default(context, self.right_serde),
        )
        windows = self.windows
        lag_ms = (windows.before_ms + windows.grace_ms, windows.after_ms + windows.grace_ms)
        given = context.setting(EMIT_INTERVAL_SETTING)
        interval_ms = EMIT_INTERVAL_MS if given is None else int(cast("int | str", given))
        store = cast("KeyValueStore[bytes, bytes]", context.store(self.store))
        return PendingRecords(store, serdes, lag_ms, interval_ms)
