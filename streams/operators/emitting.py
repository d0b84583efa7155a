"""How an operator with a store emits changes: immediately, or cached until the commit.

With caching (enabled for the store, and the application's cache is larger than 0), only the last
change of each key is emitted: at the commit, in the order of the keys' last changes; or earlier,
the oldest first, if the cache is full. The old value is then the one that was emitted last.

A join of two tables reads the other table as it was last emitted (`open_emitted`). If it read
cached changes, a change of both sides between two commits would give wrong results: if both rows
are deleted, neither side finds the other, and the result is never deleted; and old values of
results could include some that were never emitted. (Kafka Streams reads the latest value.)
"""

from collections.abc import Callable, Hashable, Mapping

from streams.processor import NodeContext
from streams.record import Headers, Position, Windowed

# key, new value, old value, timestamp_ms, headers, and the size of the store's entry in bytes.
Emit = Callable[[object, object, object, int, Headers, int], None]
# The value of a key and its time; None when there is none.
Getter = Callable[[object], tuple[object, int] | None]

ENTRY_OVERHEAD_BYTES = 100


class _CachedChange:
    """The last change of a key that was not yet emitted."""

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
    """A function that emits changes of a store to the children."""
    if caching and context.cache_bytes > 0:
        return _open_cached(context, store, send_old)
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
    """The last emitted value of a key if a change is cached; otherwise its latest value."""
    if context.cache_bytes <= 0:
        return newest
    changes = _cached_changes(context, store)

    def get(key: object) -> tuple[object, int] | None:
        entry = changes.get(key_identity(key))
        if entry is None:
            return newest(key)
        # The timestamp of the old value is unknown; that of the cached change is not smaller.
        return None if entry.old is None else (entry.old, entry.timestamp_ms)

    return get


def _cached_changes(context: NodeContext, store: str) -> dict[Hashable, _CachedChange]:
    """The cached changes of a store; the key that changed longest ago is first."""
    changes: dict[Hashable, _CachedChange] = context.shared(f"{store}-cached-changes", dict)
    return changes


def _open_cached(context: NodeContext, store: str, send_old: bool) -> Emit:
    forward = context.forward
    cache = context.cache
    changes = _cached_changes(context, store)

    def release(entry: _CachedChange) -> None:
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
        entry = changes.pop(identity, None)
        if entry is None:
            entry = _CachedChange(key, old)
        else:
            cache.used -= entry.bytes
        changes[identity] = entry
        entry.new, entry.timestamp_ms, entry.headers = new, timestamp_ms, headers
        entry.position = context.position
        entry.bytes = max(size, 0) + ENTRY_OVERHEAD_BYTES
        cache.used += entry.bytes
        # As in Kafka Streams, a store evicts only its own changes, even if others fill the cache.
        while cache.used > cache.limit and changes:
            release_oldest()

    def release_oldest() -> None:
        oldest = changes.pop(next(iter(changes)))
        cache.used -= oldest.bytes
        release(oldest)

    def flush() -> None:
        while changes:
            release_oldest()

    def forget() -> None:
        cache.used -= sum(entry.bytes for entry in changes.values())
        changes.clear()

    context.before_commit(flush)
    context.on_close(forget)
    return emit


# Equal values of these types have equal bytes, and no value of one equals a value of another.
_PLAIN = frozenset({str, bytes, int})


def key_identity(key: object) -> Hashable:
    """A hashable value that is the same for keys with the same bytes; keys may be dicts.

    In Python 1, 1.0 and True are equal, but they are three different keys.
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
