"""CachedRegistry: caches the responses of a registry, so that records need no requests.

    what                      kept
    a schema by its id        always: an id never changes its meaning
    the id of a schema        always, per subject
    version n of a subject    always
    the latest version        for `latest_ms`
    "there is no such thing"  for `failures_ms`, so that bad records do not hammer the registry

The size is limited: the least recently used entry is evicted first.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from broker import concurrency
from broker.clock import Clock, SystemClock
from broker.errors import RegistryError
from broker.serde.registry.api import LATEST, RegisteredSchema, SchemaRegistry
from broker.serde.schema.schema import Schema

T = TypeVar("T")

_ALWAYS = None


class CachedRegistry:
    """A SchemaRegistry with a cache for another one; any thread may call it."""

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        capacity: int = 10_000,
        latest_ms: int = 60_000,
        failures_ms: int = 1_000,
        clock: Clock | None = None,
    ) -> None:
        """Cache at most `capacity` responses."""
        self._registry = registry
        self._capacity = capacity
        self._latest_ms = latest_ms
        self._failures_ms = failures_ms
        self._clock = clock or SystemClock()
        self._lock = concurrency.Lock()
        # Responses or errors, with the monotonic time at which they expire.
        self._known: OrderedDict[Hashable, tuple[object, int | None]] = OrderedDict()

    @classmethod
    def of(cls, registry: SchemaRegistry) -> "CachedRegistry":
        """The registry itself if it has a cache, otherwise one with a cache."""
        return registry if isinstance(registry, cls) else cls(registry)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, which is registered if necessary."""
        return self._remembered(
            ("register", subject, schema, normalize),
            lambda: self._register(subject, schema, normalize=normalize),
        )

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id."""
        return self._remembered(
            ("schema", schema_id, subject),
            lambda: self._registry.schema(schema_id, subject=subject),
        )

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registered version of a schema in a subject."""
        return self._remembered(
            ("lookup", subject, schema, normalize),
            lambda: self._registry.lookup(subject, schema, normalize=normalize),
        )

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject; the latest may be slightly outdated."""
        return self._remembered(
            ("version", subject, version),
            lambda: self._registry.version(subject, version),
            self._latest_ms if version == LATEST else _ALWAYS,
        )

    def forget(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._known.clear()

    def _register(self, subject: str, schema: Schema, *, normalize: bool) -> int:
        schema_id = self._registry.register(subject, schema, normalize=normalize)
        with self._lock:
            self._known.pop(("version", subject, LATEST), None)  # may be outdated
        return schema_id

    def _remembered(self, key: Hashable, ask: Callable[[], T], kept_ms: int | None = _ALWAYS) -> T:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
        if known is not None:
            answer, until_ms = known
            if until_ms is None or self._clock.monotonic_ms() < until_ms:
                if isinstance(answer, RegistryError):
                    raise _again(answer)
                return cast(T, answer)
        # Requested without the lock: a slow registry must not block cached responses.
        try:
            found = ask()
        except RegistryError as error:
            self._keep(key, _again(error), self._failures_ms)
            raise
        self._keep(key, found, kept_ms)
        return found

    def _keep(self, key: Hashable, answer: object, kept_ms: int | None) -> None:
        until_ms = None if kept_ms is None else self._clock.monotonic_ms() + kept_ms
        with self._lock:
            self._known[key] = (answer, until_ms)
            self._known.move_to_end(key)
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)


def _again(error: RegistryError) -> RegistryError:
    """A copy of the error without its traceback, which would grow each time it is raised."""
    return RegistryError(error.code, error.message, hint=error.hint)
