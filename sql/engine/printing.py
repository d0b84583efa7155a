"""PRINT: the records of a topic, in the format that their bytes appear to have.

    Key format: KAFKA_STRING
    Value format: JSON or KAFKA_STRING
    rowtime: 2024/05/20 19:37:57.000 Z, key: a, value: {"x":1}, partition: 0

A format is possible as long as it can decode all values so far; null matches any format. The first
possible format is used.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from broker.client.api import ConsumerRecord
from broker.errors import MillstreamError, SerdeError
from broker.java.number_text import double_text
from broker.serde.registry.api import SchemaRegistry

Decode = Callable[[bytes], str]

INT_BYTES = 4
LONG_BYTES = 8
UNDECIDED = "¯\\_(ツ)_/¯ - no data processed"
NOTHING = "<null>"


class FormatGuess:
    """The possible formats of all keys, or of all values, so far."""

    def __init__(self, decoders: Mapping[str, Decode]) -> None:
        self._possible = dict(decoders)
        self._seen = False

    def shown(self, data: bytes | None) -> str:
        """The bytes in the first format that could decode all values so far."""
        if data is None:
            return NOTHING
        texts: dict[str, str] = {}
        for name, decode in self._possible.items():
            try:
                texts[name] = decode(data)
            except (MillstreamError, ValueError, struct.error, RecursionError):
                continue
        self._seen = True
        if not texts:
            self._possible = {UNRECOGNIZED: _hex}
            return _hex(data)
        self._possible = {name: self._possible[name] for name in texts}
        return next(iter(texts.values()))

    @property
    def description(self) -> str:
        """The description of the possible formats."""
        return " or ".join(self._possible) if self._seen else UNDECIDED


UNRECOGNIZED = "UNRECOGNIZED_BYTES"


class TopicPrinter:
    """Formats records as lines."""

    def __init__(self, topic: str, registry: SchemaRegistry | None) -> None:
        """Formats with schemas are guessed only if there is a registry."""
        self._key = FormatGuess(decoders(topic, registry, is_key=True))
        self._value = FormatGuess(decoders(topic, registry, is_key=False))
        self._shown_formats: tuple[str, str] | None = None

    def lines(self, record: ConsumerRecord) -> Iterator[str]:
        """The lines of a record; lines with the formats come first when they have changed."""
        key, value = self._key.shown(record.key), self._value.shown(record.value)
        formats = (self._key.description, self._value.description)
        if formats != self._shown_formats:
            if self._shown_formats is None or formats[0] != self._shown_formats[0]:
                yield f"Key format: {formats[0]}"
            if self._shown_formats is None or formats[1] != self._shown_formats[1]:
                yield f"Value format: {formats[1]}"
            self._shown_formats = formats
        yield (
            f"rowtime: {_time_text(record.timestamp_ms)}, key: {key}, value: {value}, "
            f"partition: {record.partition}"
        )


def decoders(topic: str, registry: SchemaRegistry | None, *, is_key: bool) -> dict[str, Decode]:
    """The available formats, in the order of preference."""
    found: dict[str, Decode] = {}
    if registry is not None:
        found |= _registered(topic, registry, is_key=is_key)
    found["JSON"] = _json
    plain: dict[str, Decode] = {
        "KAFKA_INT": _int,
        "KAFKA_BIGINT": _long,
        "KAFKA_DOUBLE": _double,
        "KAFKA_STRING": _text,
    }
    if is_key:
        for name in ("KAFKA_INT", "KAFKA_BIGINT", "KAFKA_DOUBLE", "KAFKA_STRING"):
            found[f"SESSION({name})"] = _session(plain[name])
        for name in ("KAFKA_INT", "KAFKA_BIGINT", "KAFKA_DOUBLE", "KAFKA_STRING"):
            found[f"TUMBLING({name})"] = _windowed(plain[name])
    return {**found, **plain}


def _registered(topic: str, registry: SchemaRegistry, *, is_key: bool) -> dict[str, Decode]:
    from broker.serde import RegistryAvroSerde, RegistryJsonSerde, RegistryProtobufSerde

    avro = RegistryAvroSerde(registry, is_key=is_key)
    json_schema = RegistryJsonSerde(registry, is_key=is_key)
    protobuf = RegistryProtobufSerde(registry, is_key=is_key)

    # Any: the library has no type hints.
    json_format: Any = import_module("google.protobuf.json_format")

    def protobuf_text(data: bytes) -> str:
        fields = json_format.MessageToDict(
            protobuf.deserialize(topic, data), preserving_proto_field_name=True
        )
        return _json_text(fields)

    return {
        "AVRO": lambda data: _json_text(avro.deserialize(topic, data)),
        "PROTOBUF": protobuf_text,
        "JSON_SR": lambda data: _json_text(json_schema.deserialize(topic, data)),
    }


def _json(data: bytes) -> str:
    text = data.decode()
    json.loads(text)
    return text


def _json_text(value: object) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _int(data: bytes) -> str:
    _check_size(data, INT_BYTES)
    return str(int.from_bytes(data, "big", signed=True))


def _long(data: bytes) -> str:
    _check_size(data, LONG_BYTES)
    return str(int.from_bytes(data, "big", signed=True))


def _double(data: bytes) -> str:
    _check_size(data, LONG_BYTES)
    return double_text(struct.unpack(">d", data)[0])


def _text(data: bytes) -> str:
    text = data.decode()
    if any(ord(sign) < ord(" ") and sign not in "\t\r\n" for sign in text):
        raise ValueError("control characters are not text")
    return text


def _windowed(inner: Decode) -> Decode:
    def decode(data: bytes) -> str:
        if len(data) <= LONG_BYTES:
            raise ValueError("no window")
        start_ms = _plausible_time(data[-LONG_BYTES:])
        return f"[{inner(data[:-LONG_BYTES])}@{start_ms}/-]"

    return decode


def _session(inner: Decode) -> Decode:
    def decode(data: bytes) -> str:
        if len(data) <= 2 * LONG_BYTES:
            raise ValueError("no session")
        end_ms = _plausible_time(data[-2 * LONG_BYTES : -LONG_BYTES])
        start_ms = _plausible_time(data[-LONG_BYTES:])
        return f"[{inner(data[: -2 * LONG_BYTES])}@{start_ms}/{end_ms}]"

    return decode


LATEST_MS = 4_102_444_800_000  # the year 2100: larger numbers are not timestamps


def _plausible_time(data: bytes) -> int:
    value = int.from_bytes(data, "big", signed=True)
    if not 0 <= value <= LATEST_MS:
        raise ValueError("no time")
    return value


def _hex(data: bytes) -> str:
    return "".join(f"\\x{each:02X}" for each in data)


def _check_size(data: bytes, size: int) -> None:
    if len(data) != size:
        raise SerdeError(f"{len(data)} bytes, not {size}")


def _time_text(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "N/A"
    time = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    return f"{time:%Y/%m/%d %H:%M:%S}.{timestamp_ms % 1000:03} Z"
