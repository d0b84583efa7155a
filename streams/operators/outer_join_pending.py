"""Records of a left or outer stream join that have found no partner yet, until their time is up.

They are kept in a key-value store, so they survive a crash:

    key    time (8 bytes) | side (1 byte: 0 right, 1 left) | key
    value  one after the other: length (4 bytes) | value, oldest first

so the order of the store is that of their release: by time, right before left, by key. An index of
the keys in memory spares a look into the store for each record; it is made when it is first needed.
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
    """A record whose time is up."""

    left: bool
    key: object
    value: object
    timestamp_ms: int


class PendingRecords:
    """What both sides of one join share in a task. Only the task's thread uses it."""

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
        self._lag_ms = lag_ms  # how long after its time a record of the right, the left waits
        self._interval_ms = interval_ms
        self._emit_at_ms = 0
        self._keys = {key for key, _ in store.all()}
        # Keys of each side, the earliest first; those no longer in `_keys` have found a partner.
        self._queues = tuple([key for key in self._keys if key[8] == side] for side in (0, 1))
        for queue in self._queues:
            heapify(queue)

    def is_over(self, side: int, timestamp_ms: int, stream_time_ms: int) -> bool:
        """Whether a record can no longer find a partner."""
        return timestamp_ms + self._lag_ms[side] < stream_time_ms

    def add(self, side: int, key: object, value: object, timestamp_ms: int) -> None:
        """Let a record wait for a partner."""
        place = self._serdes.place(side, key, timestamp_ms)
        kept = self._serdes.value_bytes(side, value)
        entry = _LENGTH.pack(len(kept)) + kept
        if place in self._keys:
            entry = (self._store.get(place) or b"") + entry
        else:
            self._keys.add(place)
            heappush(self._queues[side], place)
        self._store.put(place, entry)

    def match(self, side: int, key: object, timestamp_ms: int) -> None:
        """Records of a side at this key and time have found a partner."""
        if not self._keys:
            return
        place = self._serdes.place(side, key, timestamp_ms)
        if place in self._keys:
            self._keys.remove(place)
            self._store.delete(place)

    def release(self, stream_time_ms: int, now_ms: int) -> list[Unmatched]:
        """Records whose time is up; not more often than the interval of wall clock allows."""
        if not any(self._is_first_over(side, stream_time_ms) for side in (RIGHT, LEFT)):
            return []
        if now_ms < self._emit_at_ms:
            return []
        self._emit_at_ms = now_ms + self._interval_ms
        places = [place for side in (RIGHT, LEFT) for place in self._take(side, stream_time_ms)]
        places.sort()
        found: list[Unmatched] = []
        for place in places:
            found.extend(self._serdes.unmatched(place, self._store.delete(place) or b""))
        return found

    def _is_first_over(self, side: int, stream_time_ms: int) -> bool:
        queue, keys = self._queues[side], self._keys
        while queue and queue[0] not in keys:
            heappop(queue)
        return bool(queue) and self.is_over(side, _HEAD.unpack_from(queue[0])[0], stream_time_ms)

    def _take(self, side: int, stream_time_ms: int) -> Iterator[bytes]:
        while self._is_first_over(side, stream_time_ms):
            place = heappop(self._queues[side])
            self._keys.remove(place)
            yield place


@dataclass(frozen=True, slots=True)
class PendingSerdes:
    """Keys and values of the store. Any: only the user's code knows their types."""

    topic: str
    key: Serde[Any]
    left: Serde[Any]
    right: Serde[Any]

    def place(self, side: int, key: object, timestamp_ms: int) -> bytes:
        """The key of the store."""
        return _HEAD.pack(timestamp_ms, side) + (self.key.serialize(self.topic, key) or b"")

    def value_bytes(self, side: int, value: object) -> bytes:
        """The bytes of a value."""
        serde = self.left if side == LEFT else self.right
        return serde.serialize(self.topic, value) or b""

    def unmatched(self, place: bytes, entry: bytes) -> Iterator[Unmatched]:
        """The records of one entry, oldest first."""
        timestamp_ms, side = _HEAD.unpack_from(place)
        key = self.key.deserialize(self.topic, place[_HEAD.size :])
        serde = self.left if side == LEFT else self.right
        at = 0
        while at < len(entry):
            start = at + _LENGTH.size
            at = start + _LENGTH.unpack_from(entry, at)[0]
            value = serde.deserialize(self.topic, entry[start:at])
            yield Unmatched(side == LEFT, key, value, timestamp_ms)


@dataclass(frozen=True, slots=True)
class PendingSpec:
    """How both sides of a join find what they share."""

    store: str
    windows: JoinWindows
    key_serde: Serde[Any] | None = None
    left_serde: Serde[Any] | None = None
    right_serde: Serde[Any] | None = None

    def open(self, context: NodeContext) -> PendingRecords:
        """The records that wait, inside one task; call it with the first record."""
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
