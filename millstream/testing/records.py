"""Record and Input: what a pipeline reads in a test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.serde import Serde
from streams.serdes import serde_of

FIRST_MS = 1_699_999_200_000  # 2023-11-14 22:00 UTC: the time of the first record without one
STEP_MS = 1_000  # how far records without a time are apart


@dataclass(frozen=True, slots=True)
class Record:
    """One input record. Without a time, records of a topic are one second apart."""

    key: object
    value: object
    timestamp_ms: int | None = None
    partition: int | None = None  # None: by the key


Given = Record | tuple[object, object] | tuple[object, object, int]


@dataclass(frozen=True, slots=True)
class Input:
    """The records of a topic, with types or serdes.

    Only needed when they do not follow from the pipeline: a topology names the serdes of its
    topics; SQL gets strings, numbers and bytes as they are, and dicts and lists as JSON.
    """

    records: Sequence[Given]
    key: object = None
    value: object = None


Inputs = Mapping[str, Sequence[Given] | Input]


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record as it is sent; `number` is its place in the list of the test."""

    topic: str
    number: int
    shown_key: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    partition: int | None

    def __str__(self) -> str:
        """As reports name it."""
        return f"{self.topic}[{self.number}], key {self.shown_key}"


# The serdes of a topic, for key and value; None: by the type of each object.
AnySerde = Serde[Any]  # Any, because a serde of one type is none of object
SerdesOf = Callable[[str], tuple[AnySerde | None, AnySerde | None]]


def encoded(inputs: Inputs, serdes_of: SerdesOf) -> dict[str, tuple[EncodedRecord, ...]]:
    """The records of all topics as bytes, with a time each."""
    found: dict[str, tuple[EncodedRecord, ...]] = {}
    for topic, given in inputs.items():
        typed = given if isinstance(given, Input) else Input(given)
        known_key, known_value = serdes_of(topic)
        key_serde = known_key if typed.key is None else serde_of(typed.key, at=topic)
        value_serde = known_value if typed.value is None else serde_of(typed.value, at=topic)
        found[topic] = tuple(
            _encoded(topic, number, _record(each), key_serde, value_serde)
            for number, each in enumerate(typed.records)
        )
    return found


def _record(given: Given) -> Record:
    return given if isinstance(given, Record) else Record(*given)


def _encoded(
    topic: str, number: int, record: Record, key: AnySerde | None, value: AnySerde | None
) -> EncodedRecord:
    return EncodedRecord(
        topic,
        number,
        repr(record.key),
        _bytes(topic, record.key, key),
        _bytes(topic, record.value, value),
        FIRST_MS + number * STEP_MS if record.timestamp_ms is None else record.timestamp_ms,
        record.partition,
    )


def _bytes(topic: str, value: object, serde: AnySerde | None) -> bytes | None:
    if value is None:
        return None
    return (serde or serde_of(type(value), at=topic)).serialize(topic, value)
