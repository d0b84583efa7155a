"""Valid requests and batches to be damaged: every API in every version, every compression."""

from collections.abc import Iterator
from dataclasses import fields
from random import Random

from broker.batch.codec import control_batch, encode_batch
from broker.model import ProducerIdentity
from broker.protocol.frame import SIZE_BYTES, encode_request, encode_response, version_range
from broker.protocol.messages import REQUESTS, RESPONSES
from broker.protocol.wire import Wire

TOPIC = "orders"
NAMES = (TOPIC, "bills", "group-1", "", "member-7", "a" * 300, "grüße")
INTEGERS = (0, 0, 0, 1, 1, 2, 5, 100, 30_000, -1, -2)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def batches() -> list[bytes]:
    """Record batches: compressed, plain, idempotent, transactional, and a marker."""
    rows = [
        (b"key-%d" % number, b"value " * number, (("kind", b"x"), ("none", None)), 1_000 + number)
        for number in range(8)
    ]
    made = [encode_batch(rows, compression=name) for name in COMPRESSIONS]
    producer = ProducerIdentity(4, 0)
    made.append(encode_batch(rows, producer=producer, base_sequence=0))
    made.append(encode_batch(rows, producer=producer, base_sequence=0, transactional=True))
    made.append(encode_batch([(None, None, (), -1)]))
    made.append(
        control_batch(commit=True, producer=producer, coordinator_epoch=0, timestamp_ms=1_000)
    )
    return made


def requests(random: Random) -> list[bytes]:
    """Request frames without their size: each API in each version, fields filled at random."""
    records = batches()
    frames = []
    for api_key, cls in REQUESTS.items():
        versions = version_range(api_key)
        for version in range(versions.first, versions.last + 1):
            for _ in range(3):
                body = filled(cls, random, records)
                parts = encode_request(body, version, correlation_id=7, client_id="fuzz")
                frames.append(b"".join(bytes(part) for part in parts)[SIZE_BYTES:])  # type: ignore[call-overload]
    return frames


def responses(random: Random) -> Iterator[tuple[type[object], int, bytes]]:
    """Response class, version and frame without its size, of each API in each version."""
    records = batches()
    for api_key, cls in RESPONSES.items():
        versions = version_range(api_key)
        for version in range(versions.first, versions.last + 1):
            body = filled(cls, random, records)
            parts = encode_response(api_key, version, 7, body)
            yield cls, version, b"".join(bytes(part) for part in parts)[SIZE_BYTES:]  # type: ignore[call-overload]


def filled(cls: type[object], random: Random, records: list[bytes]) -> object:
    """A message whose fields have values that might be meant."""
    message = cls()
    for item in fields(cls):  # type: ignore[arg-type]
        wire: Wire = item.metadata["wire"]
        if random.random() < 0.15:
            continue
        setattr(message, item.name, _value(wire, random, records))
    return message


def _value(wire: Wire, random: Random, records: list[bytes]) -> object:
    match wire.kind:
        case "array":
            element = wire.element
            return [_element(element, random, records) for _ in range(random.randint(0, 2))]
        case "struct":
            assert isinstance(wire.element, type)
            return filled(wire.element, random, records)
        case "records":
            return random.choice(records)
        case kind:
            return _primitive(kind, random)


def _element(element: type[object] | str | None, random: Random, records: list[bytes]) -> object:
    if isinstance(element, str):
        return _primitive(element, random)
    assert element is not None
    return filled(element, random, records)


def _primitive(kind: str, random: Random) -> object:
    match kind:
        case "string":
            return random.choice(NAMES)
        case "bytes" | "sized":
            return random.randbytes(random.randint(0, 20))
        case "uuid":
            return random.randbytes(16)
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.random()
        case "int8":
            return random.choice((0, 1, 2, -1))
        case "uint16" | "uint32":
            return random.randint(0, 100)
        case _:
            return random.choice(INTEGERS)
