"""Queries of a store: parsed from a URL and answered from the local partitions.

A query is parsed once, validated against the kind of the store, and answered with one entry or a
list of entries. An entry is JSON: key, value, and the fields of the kind (bounds of the window or
session, the timestamp, the validity of a version).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

import orjson

from broker.errors import SerdeError
from broker.serde import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    Serde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)
from streams.errors import StoreError
from streams.record import Windowed
from streams.state.store import LATEST, StoreKind, StoreSpec, VersionedRecord

LIMIT = 1000
LIMIT_MAX = 100_000
TIME_MAX = (1 << 63) - 1
DIGITS_MAX = 19  # of TIME_MAX
SHOWN_MAX = 80  # characters of an invalid parameter in an error

Entry = dict[str, object]

_TIMESTAMPED = frozenset({StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.TIMESTAMPED_WINDOW})
_WINDOWS = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW})
_WHOLE = (ShortSerde, IntegerSerde, LongSerde)
_REAL = (FloatSerde, DoubleSerde)


class BadQuery(StoreError):
    """The query is invalid, or the store does not support it."""


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """A query of one store; None means unspecified."""

    form: str  # "get", "range", "prefix", "all", "windows", "sessions", "versions"
    key: object = None
    last: object = None
    prefix: str = ""
    from_ms: int = 0
    to_ms: int = TIME_MAX
    as_of_ms: int | None = None
    reverse: bool = False
    limit: int = LIMIT

    @property
    def is_for_one_key(self) -> bool:
        """Whether one partition can answer the query."""
        return self.key is not None and self.form != "range"

    def is_backwards(self, kind: StoreKind) -> bool:
        """Whether entries are returned in descending order; only key-value stores support this."""
        return self.reverse and self.form in ("all", "range") and _is_key_value(kind)


def parse_query(form: str, parameters: Mapping[str, str], serde: Serde[Any]) -> StoreQuery:
    """Parse the parameters of a URL; raises BadQuery if one is missing or invalid."""
    if form in ("get", "versions") and "key" not in parameters:
        raise BadQuery(f'"{form}" needs a key', hint="add ?key=...")
    if form == "prefix" and "prefix" not in parameters:
        raise BadQuery('"prefix" needs a prefix', hint="add ?prefix=...")
    first = "from" if form == "range" else "key"
    ranged = form != "range"
    return StoreQuery(
        form,
        key=_key(parameters, first, serde),
        last=None if ranged else _key(parameters, "to", serde),
        prefix=parameters.get("prefix", ""),
        from_ms=_number(parameters, "from", 0) if ranged else 0,
        to_ms=_number(parameters, "to", TIME_MAX) if ranged else TIME_MAX,
        as_of_ms=_number(parameters, "as_of", 0) if "as_of" in parameters else None,
        reverse=parameters.get("reverse", "false") == "true",
        limit=min(_number(parameters, "limit", LIMIT), LIMIT_MAX),
    )


def _key(parameters: Mapping[str, str], name: str, serde: Serde[Any]) -> object:
    text = parameters.get(name)
    if text is None:
        return None
    try:
        key = parse_key(text, serde)
        if serde.serialize("", key) is None:
            raise ValueError("null is not a key")
    except (ValueError, SerdeError) as error:
        shown = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
        raise BadQuery(
            f'"{name}" is {shown!r}, which cannot be a key of this store',
            hint="use a number if keys are numbers, JSON if keys are JSON",
        ) from error
    return key


def parse_key(text: str, serde: Serde[Any]) -> object:
    """Parse a key from a URL: plain text, a number or JSON; raises ValueError."""
    if isinstance(serde, StringSerde):
        return text
    if isinstance(serde, _WHOLE):
        return int(text)
    if isinstance(serde, _REAL):
        return float(text)
    if isinstance(serde, BytesSerde):
        return text.encode("utf-8", "surrogateescape")
    if isinstance(serde, UuidSerde):
        return UUID(text)
    if isinstance(serde, BooleanSerde) and text not in ("true", "false"):
        raise ValueError("it must be true or false")
    key: object = orjson.loads(text)
    return key


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > DIGITS_MAX or int(text) > TIME_MAX:
        shown = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
        raise BadQuery(
            f'"{name}" is {shown!r}', hint=f"it must be a whole number from 0 to {TIME_MAX}"
        )
    return int(text)


# Any: the type of the store depends on its kind.
def answer_one(query: StoreQuery, spec: StoreSpec, store: Any) -> Entry | None:
    """Answer a "get" query; None if there is no such entry."""
    kind = spec.kind
    if kind in _WINDOWS:
        value = store.get(query.key, query.from_ms)
        end_ms = query.from_ms + max(0, spec.window_size_ms)
        return _entry(kind, Windowed(query.key, query.from_ms, end_ms), value)
    if kind is StoreKind.SESSION:
        value = store.get(query.key, query.from_ms, query.to_ms)
        return _entry(kind, Windowed(query.key, query.from_ms, query.to_ms), value)
    if kind is StoreKind.VERSIONED and query.as_of_ms is not None:
        return _entry(kind, query.key, store.get_as_of(query.key, query.as_of_ms))
    return _entry(kind, query.key, store.get(query.key))


def answer_many(query: StoreQuery, spec: StoreSpec, store: Any) -> list[Entry]:
    """Answer any other query; returns at most `limit` entries."""
    entries = (
        entry
        for key, value in _rows(query, spec, store)
        if (entry := _entry(spec.kind, key, value)) is not None
    )
    return list(islice(entries, query.limit))


def _rows(query: StoreQuery, spec: StoreSpec, store: Any) -> Iterator[tuple[object, object]]:
    kind, form = spec.kind, query.form
    if form == "all":
        read = store.reverse_all if query.is_backwards(kind) else store.all
        yield from read()
    elif form == "range" and _is_key_value(kind):
        read = store.reverse_range if query.reverse else store.range
        yield from read(query.key, query.last)
    elif form == "prefix" and _is_key_value(kind):
        yield from store.prefix_scan(query.prefix.encode("utf-8", "surrogateescape"))
    elif form == "windows" and kind in _WINDOWS:
        yield from _windows(query, spec, store)
    elif form == "sessions" and kind is StoreKind.SESSION:
        yield from _sessions(query, store)
    elif form == "versions" and kind is StoreKind.VERSIONED:
        for version in store.versions(query.key, query.from_ms, query.to_ms):
            yield query.key, version
    else:
        raise BadQuery(
            f'"{form}" is not supported by "{spec.name}", a {kind.value} store',
            hint="key-value: get, range, prefix, all; window: get, windows, all; "
            "session: get, sessions, all; versioned: get, versions, all",
        )


def _windows(
    query: StoreQuery, spec: StoreSpec, store: Any
) -> Iterator[tuple[Windowed[object], object]]:
    if query.key is None:
        yield from store.fetch_all(query.from_ms, query.to_ms)
        return
    fetch = store.backward_fetch if query.reverse else store.fetch
    size_ms = max(0, spec.window_size_ms)
    for start_ms, value in fetch(query.key, query.from_ms, query.to_ms):
        yield Windowed(query.key, start_ms, start_ms + size_ms), value


def _sessions(query: StoreQuery, store: Any) -> Iterator[tuple[Windowed[object], object]]:
    if query.key is None:
        yield from store.sessions_ended(query.from_ms, query.to_ms)
    else:
        yield from store.find_sessions(query.key, query.from_ms, query.to_ms)


def _is_key_value(kind: StoreKind) -> bool:
    return kind in (StoreKind.KEY_VALUE, StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.LRU)


def _entry(kind: StoreKind, key: object, value: object) -> Entry | None:
    if value is None:
        return None
    entry: Entry = {"key": key}
    if isinstance(key, Windowed):
        entry = {"key": key.key, "start_ms": key.start_ms, "end_ms": key.end_ms}
    if isinstance(value, VersionedRecord):
        entry["value"], entry["timestamp_ms"] = value.value, value.timestamp_ms
        entry["valid_to_ms"] = None if value.valid_to_ms == LATEST else value.valid_to_ms
    elif kind in _TIMESTAMPED and isinstance(value, tuple):
        entry["value"], entry["timestamp_ms"] = value
    else:
        entry["value"] = value
    return entry


def to_json(value: object) -> bytes:
    """Encode a response as JSON; bytes and values that JSON does not support become strings."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value)
