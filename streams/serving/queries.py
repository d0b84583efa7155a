"""Questions about a store, as an URL asks them, and their answers from what is here.

A query is read once, checked against the kind of the store, and answered either as one entry or
as a list of entries. An entry is JSON: key, value, and what the kind adds (times of the window or
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
SHOWN_MAX = 80  # of a wrong parameter

Entry = dict[str, object]

_TIMESTAMPED = frozenset({StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.TIMESTAMPED_WINDOW})
_WINDOWS = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW})
_WHOLE = (ShortSerde, IntegerSerde, LongSerde)
_REAL = (FloatSerde, DoubleSerde)


class BadQuery(StoreError):
    """The query makes no sense for this store."""


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """What is asked of one store; None is left open."""

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
    def is_about_a_key(self) -> bool:
        """Whether one partition has the whole answer."""
        return self.key is not None and self.form != "range"

    def is_backwards(self, kind: StoreKind) -> bool:
        """Whether many entries come in the reverse of their order; maps alone can do that."""
        return self.reverse and self.form in ("all", "range") and _is_map(kind)


def parse_query(form: str, parameters: Mapping[str, str], serde: Serde[Any]) -> StoreQuery:
    """The query of an URL; BadQuery when a parameter is missing or wrong."""
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
            f'"{name}" is {shown!r}, which is not a key of this store',
            hint="give a number for number keys, JSON for keys that are JSON",
        ) from error
    return key


def parse_key(text: str, serde: Serde[Any]) -> object:
    """A key as an URL spells it: plain text, a number, or JSON; ValueError when it is none."""
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
    found: object = orjson.loads(text)
    return found


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > DIGITS_MAX or int(text) > TIME_MAX:
        shown = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
        raise BadQuery(f'"{name}" is {shown!r}', hint=f"give a whole number from 0 to {TIME_MAX}")
    return int(text)


# Any: the store is whatever reads `StreamsApp.store` gives for its kind.
def answer_one(query: StoreQuery, spec: StoreSpec, store: Any) -> Entry | None:
    """The one entry that a "get" is about; None when there is none."""
    kind = spec.kind
    if kind in _WINDOWS:
        found = store.get(query.key, query.from_ms)
        end_ms = query.from_ms + max(0, spec.window_size_ms)
        return _entry(kind, Windowed(query.key, query.from_ms, end_ms), found)
    if kind is StoreKind.SESSION:
        found = store.get(query.key, query.from_ms, query.to_ms)
        return _entry(kind, Windowed(query.key, query.from_ms, query.to_ms), found)
    if kind is StoreKind.VERSIONED and query.as_of_ms is not None:
        return _entry(kind, query.key, store.get_as_of(query.key, query.as_of_ms))
    return _entry(kind, query.key, store.get(query.key))


def answer_many(query: StoreQuery, spec: StoreSpec, store: Any) -> list[Entry]:
    """The entries of every other query, at most `limit` of them."""
    entries = (
        entry
        for key, value in _rows(query, spec, store)
        if (entry := _entry(spec.kind, key, value)) is not None
    )
    return list(islice(entries, query.limit))


def _rows(query: StoreQuery, spec: StoreSpec, store: Any) -> Iterator[tuple[object, object]]:
    kind, form = spec.kind, query.form
    if form == "all":
        reads = store.reverse_all if query.is_backwards(kind) else store.all
        yield from reads()
    elif form == "range" and _is_map(kind):
        reads = store.reverse_range if query.reverse else store.range
        yield from reads(query.key, query.last)
    elif form == "prefix" and _is_map(kind):
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


def _is_map(kind: StoreKind) -> bool:
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
    """JSON of an answer; bytes as text, and what JSON does not know as its text."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value)
