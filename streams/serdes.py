"""Serdes of streams: by Python type, of windowed keys and of changes; as in Kafka Streams.

windowed key      key | start 8                     (the reader must know the window size)
session key       key | end 8 | start 8
change, old only  old | 0x00                        with "is latest": old | latest 1 | 0x03
change, new only  new | 0x01                                          new | latest 1 | 0x04
change, both      varint length of new | new | old | 0x02             ... | latest 1 | 0x05
"""

from struct import Struct
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from broker.errors import SerdeError
from broker.serde import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    JsonSerde,
    LongSerde,
    Serde,
    StringSerde,
    UuidSerde,
)
from streams.errors import TopologyError
from streams.json_objects import JsonObjectSerde, is_json_type, is_plain_json, without_none
from streams.record import Change, Windowed

T = TypeVar("T")
K = TypeVar("K")

LONG = Struct(">q")
PAIR = Struct(">qq")
TIME_MAX = (1 << 63) - 1

# Any, because a serde of a type is not a serde of object.
AnySerde = Serde[Any]

_BY_TYPE: dict[object, AnySerde] = {
    str: StringSerde(),
    int: LongSerde(),
    float: DoubleSerde(),
    bytes: BytesSerde(),
    bool: BooleanSerde(),
    UUID: UuidSerde(),
    dict: JsonSerde(),
    list: JsonSerde(),
    object: JsonSerde(),
    Any: JsonSerde(),
}


def serde_of(given: object, *, at: str = "") -> AnySerde:
    """The serde of a type, or the given serde.

    >>> type(serde_of(int)).__name__
    'LongSerde'
    """
    # dict[str, int] is JSON, as dict is; and None is null for every serde.
    plain = without_none(given)
    serde = _BY_TYPE.get(plain) if isinstance(plain, type) or plain is Any else None
    if serde is not None:
        return serde
    if plain is not None and is_plain_json(plain):
        return _BY_TYPE[dict]
    if (
        not isinstance(given, type)
        and hasattr(given, "serialize")
        and hasattr(given, "deserialize")
    ):
        return cast(AnySerde, given)
    if is_json_type(given):
        return JsonObjectSerde(given, at=at)
    raise TopologyError(
        f'"{getattr(given, "__name__", repr(given))}" has no serde',
        at=at,
        hint="pass a Serde object, a dataclass, a msgspec or pydantic model, a container of these, "
        "or one of str, int, float, bytes, bool, dict, list, UUID",
    )


def serde_or_default(serde: AnySerde | None, default: AnySerde) -> AnySerde:
    """The serde, or the application's default if there is none, also for an inner serde."""
    if serde is None:
        return default
    if isinstance(serde, WindowedSerde | SessionWindowedSerde | ChangeSerde):
        return serde.with_default(default)
    return serde


class WindowedSerde(Generic[K]):
    """Keys of windowed tables in topics; the end of a window follows from its size."""

    def __init__(self, inner: Serde[K] | None, window_size_ms: int) -> None:
        """`inner` is the serde of plain keys; None: the application's default."""
        self.inner = inner
        self.window_size_ms = window_size_ms

    def with_default(self, default: Serde[K]) -> "WindowedSerde[K]":
        """The serde with this default as its inner serde, unless it has one."""
        return self if self.inner is not None else WindowedSerde(default, self.window_size_ms)

    def serialize_inner(self, topic: str, key: Windowed[K]) -> bytes | None:
        """Serialize the key without its window, for partitioning."""
        return given_inner(self.inner).serialize(topic, key.key)

    def serialize_window(self, key: Windowed[K]) -> bytes:
        """Serialize the window, which follows the plain key."""
        return LONG.pack(key.start_ms)

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        """Serialize key and start."""
        if value is None:
            return None
        return _key_bytes(self.inner, topic, value) + self.serialize_window(value)

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        """Deserialize a windowed key."""
        if data is None:
            return None
        _check_length(topic, data, LONG.size)
        (start_ms,) = LONG.unpack_from(data, len(data) - LONG.size)
        key = cast(K, given_inner(self.inner).deserialize(topic, data[: -LONG.size]))
        return Windowed(key, start_ms, min(start_ms + self.window_size_ms, TIME_MAX))


class SessionWindowedSerde(Generic[K]):
    """Keys of session tables in topics."""

    def __init__(self, inner: Serde[K] | None) -> None:
        """`inner` is the serde of plain keys; None: the application's default."""
        self.inner = inner

    def with_default(self, default: Serde[K]) -> "SessionWindowedSerde[K]":
        """The serde with this default as its inner serde, unless it has one."""
        return self if self.inner is not None else SessionWindowedSerde(default)

    def serialize_inner(self, topic: str, key: Windowed[K]) -> bytes | None:
        """Serialize the key without its session, for partitioning."""
        return given_inner(self.inner).serialize(topic, key.key)

    def serialize_window(self, key: Windowed[K]) -> bytes:
        """Serialize the window, which follows the plain key."""
        return PAIR.pack(key.end_ms, key.start_ms)

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        """Serialize key, end and start."""
        if value is None:
            return None
        return _key_bytes(self.inner, topic, value) + self.serialize_window(value)

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        """Deserialize the key of a session."""
        if data is None:
            return None
        _check_length(topic, data, PAIR.size)
        end_ms, start_ms = PAIR.unpack_from(data, len(data) - PAIR.size)
        key = cast(K, given_inner(self.inner).deserialize(topic, data[: -PAIR.size]))
        return Windowed(key, start_ms, end_ms)


class ChangeSerde:
    """Changes of a table in a repartition topic.

    Written as by Kafka 3.4 and later; the newer format, with "is latest", is read, too.
    """

    # Any: the values of the table.
    def __init__(self, inner: Serde[Any] | None) -> None:
        """`inner` is the serde of values; None: the application's default."""
        self.inner = inner

    def with_default(self, default: Serde[Any]) -> "ChangeSerde":
        """The serde with this default as its inner serde, unless it has one."""
        return self if self.inner is not None else ChangeSerde(default)

    def serialize(self, topic: str, value: Change | None) -> bytes | None:
        """Serialize the new value, the old one or both, and a flag for which of these it is."""
        if value is None:
            return None
        new, old, _ = value
        inner = given_inner(self.inner)
        new_data, old_data = inner.serialize(topic, new), inner.serialize(topic, old)
        if new_data is None and old_data is None:
            raise SerdeError(
                "a change has neither a new nor an old value",
                at=f'topic "{topic}"',
                hint="such a change must not be sent",
            )
        if new_data is None:
            return cast(bytes, old_data) + b"\0"
        if old_data is None:
            return new_data + b"\1"
        return zigzag(len(new_data)) + new_data + old_data + b"\2"

    def deserialize(self, topic: str, data: bytes | None) -> Change | None:
        """Deserialize a change."""
        if data is None:
            return None
        flag = data[-1] if data else 255
        is_latest, body = True, data[:-1]
        if 3 <= flag <= 5:
            is_latest, body, flag = body[-1:] == b"\1", body[:-1], flag - 3
        value_of = given_inner(self.inner).deserialize
        if flag == 0:
            return None, value_of(topic, body), is_latest
        if flag == 1:
            return value_of(topic, body), None, is_latest
        if flag == 2:
            length, start = read_zigzag(body)
            new, old = body[start : start + length], body[start + length :]
            return value_of(topic, new), value_of(topic, old), is_latest
        raise SerdeError(
            f"cannot decode as change: unknown flag {flag}",
            at=f'topic "{topic}"',
            hint="only the repartition topic of a table aggregation has changes",
        )


def zigzag(number: int) -> bytes:
    """Encode a number that is not negative as Kafka's varint.

    >>> zigzag(1).hex(), zigzag(300).hex()
    ('02', 'd804')
    """
    number <<= 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def read_zigzag(data: bytes) -> tuple[int, int]:
    """Decode the varint at the start of bytes; returns the number and its size."""
    number = 0
    for index, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number >> 1, index + 1
    raise SerdeError("cannot decode as change: its length is cut off")


def given_inner(inner: Serde[T] | None) -> Serde[T]:
    """The inner serde; a task replaces None with the default before the first use."""
    assert inner is not None, "the application's default was not filled in"
    return inner


def _key_bytes(inner: Serde[K] | None, topic: str, windowed: Windowed[K]) -> bytes:
    data = given_inner(inner).serialize(topic, windowed.key)
    if data is None:
        raise SerdeError("a windowed key has no key", at=f'topic "{topic}"')
    return data


def _check_length(topic: str, data: bytes, minimum: int) -> None:
    if len(data) < minimum:
        raise SerdeError(
            f"cannot decode as windowed key: {len(data)} bytes are less than {minimum}",
            at=f'topic "{topic}"',
            hint="the topic may have plain keys, or keys of other windows",
        )
