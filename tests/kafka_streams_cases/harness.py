"""What runs a case: the test driver, or a real application; and the bytes of topics it speaks."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streams.record import Headers, Windowed
from streams.state.store import StoreKind
from streams.windows import UNLIMITED_END_MS, SessionWindows, SlidingWindows, TimeWindows, Windows
from tests.kafka_streams_cases.build import BuiltCase
from tests.kafka_streams_cases.compare import Row
from tests.kafka_streams_cases.flows import Flow
from tests.kafka_streams_cases.values import SERDES, from_json, to_json

# Settings that say how a case runs, not how an application does.
OF_THE_CASE = ("cache_bytes", "optimize", "commit", "start_wall_clock_ms")
EMIT_ON_CLOSE = "__emit.interval.ms.kstreams.windowed.aggregation__"
_START = struct.Struct(">q")
_END_AND_START = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record of a topic, as bytes."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()
    partition: int | None = None  # None: as its key says


class NotHere(Exception):
    """This harness cannot do what the case asks."""


class Harness(Protocol):
    """Runs one topology."""

    def pipe(self, records: Sequence[RawRecord]) -> None:
        """Put records in their topics, then process them completely."""
        ...

    def read(self, topic: str) -> list[RawRecord]:
        """What was written to a topic since it was read last."""
        ...

    def advance_wall_clock(self, ms: int) -> None:
        """Let time pass."""
        ...

    def commit(self) -> None:
        """Commit now."""
        ...

    def restart(self) -> None:
        """Close, and open again from what is kept."""
        ...

    def rows(self, store: str) -> list[tuple[object, object, int | None]]:
        """All of a store: key, value and the value's time where the store has one."""
        ...

    def metric(self, name: str) -> float:
        """The sum of a metric over all tasks and nodes."""
        ...

    def internal_topics(self) -> list[str]:
        """The names of the repartition topics, without the application's id, sorted."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Opener(Protocol):
    """Starts a harness."""

    def __call__(self, built: BuiltCase, config: Mapping[str, Any]) -> Harness:
        """A harness for one case with its settings."""
        ...


def raw_input(action: Mapping[str, Any], serdes: tuple[str, str]) -> RawRecord:
    """The record of an `in` action."""
    topic = action["in"]
    if "value_bytes" in action:
        value = from_json(action["value_bytes"], "bytes")
    else:
        value = SERDES[serdes[1]].serialize(topic, from_json(action["value"], serdes[1]))
    assert value is None or isinstance(value, bytes)
    return RawRecord(
        topic,
        SERDES[serdes[0]].serialize(topic, from_json(action["key"], serdes[0])),
        value,
        action["ts"],
        tuple(
            (name, None if data is None else bytes.fromhex(data))
            for name, data in action.get("headers", [])
        ),
        action.get("partition"),
    )


def row(record: RawRecord, flow: Flow) -> Row:
    """A record of an output topic, as the case files write it."""
    return {
        "key": to_json(read_key(record.topic, record.key, flow.key, flow.windows)),
        "value": to_json(SERDES[flow.value].deserialize(record.topic, record.value)),
        "ts": record.timestamp_ms,
        "headers": [[name, None if data is None else data.hex()] for name, data in record.headers],
    }


def read_key(topic: str, data: bytes | None, serde: str, windows: Windows | None) -> object:
    """A key of a topic. Windowed: the key and its start; of sessions the key, end and start."""
    if data is None or windows is None:
        return SERDES[serde].deserialize(topic, data)
    if isinstance(windows, SessionWindows):
        end, start = _END_AND_START.unpack(data[-16:])
        return Windowed(SERDES[serde].deserialize(topic, data[:-16]), start, end)
    (start,) = _START.unpack(data[-8:])
    return Windowed(SERDES[serde].deserialize(topic, data[:-8]), start, _end(start, windows))


def _end(start: int, windows: Windows) -> int:
    match windows:
        case TimeWindows():
            return start + windows.size_ms
        case SlidingWindows():
            return start + windows.difference_ms
        case _:
            return UNLIMITED_END_MS


def value_and_time(kind: StoreKind, value: Any) -> tuple[object, int | None]:
    """What a store of a kind holds under a key: the value, and its time if it has one."""
    match kind:
        case StoreKind.TIMESTAMPED_KEY_VALUE | StoreKind.TIMESTAMPED_WINDOW:
            return value[0], value[1]
        case StoreKind.VERSIONED:
            return value.value, value.timestamp_ms
        case _:
            return value, None


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an application by Kafka's names, out of those of a case."""
    given = {name: value for name, value in config.items() if name not in OF_THE_CASE}
    return {
        "statestore.cache.max.bytes": config.get("cache_bytes", 0),
        EMIT_ON_CLOSE: 0,
        **given,
    }
