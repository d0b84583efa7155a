"""Record and Input: the input of a pipeline in a test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.serde import Serde
from streams.serdes import serde_of

FIRST_MS = 1_699_999_200_000  # 2023-11-14 22:00 UTC: the timestamp of the first record without one
STEP_MS = 1_000  # between records without timestamps


@dataclass(frozen=True, slots=True)
class Record:
    """One input record. Without timestamps, records of a topic are one second apart."""

    key: object
    value: object
    timestamp_ms: int | None = None
    partition: int | None = None  # None: by the key


Given = Record | tuple[object, object] | tuple[object, object, int]


@dataclass(frozen=True, slots=True)
class Input:
    """The records of a topic, with types or serdes.

    Only needed if these do not follow from the pipeline: a topology has the serdes of its topics;
    for SQL, strings, numbers and bytes are written unchanged, dicts and lists as JSON.
    """

    records: Sequence[Given]
    key: object = None
    value: object = None


Inputs = Mapping[str, Sequence[Given] | Input]


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A serialized record; `number` is its index in the test's list."""

    topic: str
    number: int
    shown_key: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    partition: int | None

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}], key {self.shown_key}"


# The serdes of a topic, for key and value; None: by the type of each object.
AnySerde = Serde[Any]  # Any, because a serde of a type is not a serde of object
SerdesOf = Callable[[str], tuple[AnySerde | None, AnySerde | None]]


def encode_records(inputs: Inputs, serdes_of: SerdesOf) -> dict[str, tuple[EncodedRecord, ...]]:
    """Serialize the records of all topics, and set missing timestamps."""
    encoded: dict[str, tuple[EncodedRecord, ...]] = {}
    for topic, given in inputs.items():
        typed = given if isinstance(given, Input) else Input(given)
        known_key, known_value = serdes_of(topic)
        key_serde = known_key if typed.key is None else serde_of(typed.key, at=topic)
        value_serde = known_value if typed.value is None else serde_of(typed.value, at=topic)
        encoded[topic] = tuple(
            _encoded(topic, number, _record(each), key_serde, value_serde)
            for number, each in enumerate(typed.records)
        )
    return encoded


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
