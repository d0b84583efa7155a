"""How an operator that keeps a table emits a change: at once, or held back until the commit.

Held back (the store's caching is on and the application gives it room), only the last change of
each key is emitted: at the commit, in the order of the keys' last changes; or earlier, the oldest
first, when the room is used up. The old value is then the one that was emitted last.

A join of two tables reads the other table as it was last emitted (`open_emitted`). If it saw
changes that are held back, a change of both sides between two commits would go wrong: deleted on
both sides, neither would find the other, and the result would stay forever; and old results would
include ones that were never emitted. (Kafka Streams reads the newest value.)
"""

from collections.abc import Callable, Hashable, Mapping

from streams.processor import NodeContext
from streams.record import Headers, Position, Windowed

# key, new value, old value, timestamp_ms, headers, and the bytes that the store's entry takes.
Emit = Callable[[object, object, object, int, Headers, int], None]
# The value of a key and its time; None when there is none.
Getter = Callable[[object], tuple[object, int] | None]

ENTRY_OVERHEAD_BYTES = 100


class _Held:
    """The last change of one key that its children have not seen."""

    __slots__ = ("bytes", "headers", "key", "new", "old", "position", "timestamp_ms")

    def __init__(self, key: object, old: object) -> None:
        self.key = key
        self.old = old
        self.new: object = None
        self.timestamp_ms = 0
        self.headers: Headers = ()
        self.position: Position | None = None
        self.bytes = 0


def open_emit(context: NodeContext, store: str, *, caching: bool, send_old: bool) -> Emit:
    """The way to the children of a node that keeps a table in a store."""
    if caching and context.cache_bytes > 0:
        return _open_held_back(context, store, send_old)
    forward = context.forward
    if send_old:

        def emit_with_old(
            key: object, new: object, old: object, timestamp_ms: int, headers: Headers, size: int
        ) -> None:
            forward(key, (new, old, True), timestamp_ms, headers)

        return emit_with_old

    def emit(
        key: object, new: object, old: object, timestamp_ms: int, headers: Headers, size: int
    ) -> None:
        forward(key, (new, None, True), timestamp_ms, headers)

    return emit


def open_emitted(context: NodeContext, store: str, newest: Getter) -> Getter:
    """The value of a key that was emitted last if it is held back; its newest value otherwise."""
    if context.cache_bytes <= 0:
        return newest
    held = _held_of(context, store)

    def get(key: object) -> tuple[object, int] | None:
        entry = held.get(key_identity(key))
        if entry is None:
            return newest(key)
        # The time of the value is not kept; that of the change which waits is not before it.
        return None if entry.old is None else (entry.old, entry.timestamp_ms)

    return get


def _held_of(context: NodeContext, store: str) -> dict[Hashable, _Held]:
    """What is held back of a store, the one changed longest ago first."""
    found: dict[Hashable, _Held] = context.shared(f"{store}-held-back", dict)
    return found


def _open_held_back(context: NodeContext, store: str, send_old: bool) -> Emit:
    forward = context.forward
    cache = context.cache
    held = _held_of(context, store)

    def release(entry: _Held) -> None:
        if entry.new is None and entry.old is None:
            return
        change = (entry.new, entry.old if send_old else None, True)
        context.at(
            entry.position,
            lambda: forward(entry.key, change, entry.timestamp_ms, entry.headers),
        )

    def emit(
        key: object, new: object, old: object, timestamp_ms: int, headers: Headers, size: int
    ) -> None:
        identity = key_identity(key)
        entry = held.pop(identity, None)
        if entry is None:
            entry = _Held(key, old)
        else:
            cache.used -= entry.bytes
        held[identity] = entry
        entry.new, entry.timestamp_ms, entry.headers = new, timestamp_ms, headers
        entry.position = context.position
        entry.bytes = max(size, 0) + ENTRY_OVERHEAD_BYTES
        cache.used += entry.bytes
        # Each store makes room for itself, as Kafka's do, whatever uses up the rest.
        while cache.used > cache.limit and held:
            release_oldest()

    def release_oldest() -> None:
        oldest = held.pop(next(iter(held)))
        cache.used -= oldest.bytes
        release(oldest)

    def flush() -> None:
        while held:
            release_oldest()

    def forget() -> None:
        cache.used -= sum(entry.bytes for entry in held.values())
        held.clear()

    context.before_commit(flush)
    context.on_close(forget)
    return emit


# Equal values of these types have equal bytes, and no value of one equals a value of another.
_PLAIN = frozenset({str, bytes, int})


def key_identity(key: object) -> Hashable:
    """Something hashable that is the same for keys with the same bytes: keys may be dicts.

    Python holds 1, 1.0 and True for equal; as keys they are three.
    """
    kind = type(key)
    if kind in _PLAIN or (kind is Windowed and type(key[0]) in _PLAIN):  # type: ignore[index]
        return key
    if isinstance(key, Mapping):
        items = ((key_identity(name), key_identity(value)) for name, value in key.items())
        return (kind, frozenset(items))
    if isinstance(key, (list, tuple)):
        return (kind, tuple(key_identity(part) for part in key))
    if isinstance(key, float):
        return (kind, repr(key))
    try:
        hash(key)
    except TypeError:
        return (kind, repr(key))
    return (kind, key)
