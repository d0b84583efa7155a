"""Confluent's wire format: the id of a record's schema in front of its bytes.

    offset  size
    0       1     magic byte 00
    1       4     id of the schema in the registry, int32, big endian
    5       ..    Avro and JSON: the value
                  Protobuf: the indexes of the message, then the message

The indexes are a path: the message's index in the file, then that of each nested message in the
previous one. They are written as zigzag varints, after their number. The path [0], the first
message of the file, is a single byte 00.

    [0]     00
    [1]     02 02
    [2, 0]  04 04 00

Version 1 of the format, magic byte 01, has a GUID of 16 bytes instead of the id; it is normally
sent in a header, "__value_schema_id". It is recognized here, but not supported.
"""

import struct
from collections.abc import Sequence

from broker.errors import SerdeError

MAGIC = 0
MAGIC_GUID = 1
PREFIX_BYTES = 5
INDEXES_MAX = 100  # protobuf itself stops reading messages that are nested deeper
_PREFIX = struct.Struct(">bi")
_INDEX_END = 1 << 31


def frame(schema_id: int) -> bytes:
    """The five bytes in front of a value."""
    if not 0 <= schema_id < 1 << 31:
        raise SerdeError(f"the schema id {schema_id} is not a non-negative int32")
    return _PREFIX.pack(MAGIC, schema_id)


def schema_id_of(topic: str, data: bytes) -> int:
    """The id of the schema with which bytes were written."""
    if len(data) < PREFIX_BYTES or data[0] != MAGIC:
        raise _no_prefix(topic, data)
    schema_id: int = _PREFIX.unpack_from(data)[1]
    if schema_id < 0:
        raise SerdeError(
            f"the schema id {schema_id} is negative",
            at=f'topic "{topic}"',
            hint="the bytes were not written by a serializer of a schema registry",
        )
    return schema_id


def frame_indexes(path: Sequence[int]) -> bytes:
    """The encoded indexes of a message."""
    if list(path) == [0]:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(path), *path))


def read_indexes(topic: str, data: bytes) -> tuple[tuple[int, ...], int]:
    """The indexes of a message, and the position of the message."""
    count, position = _read_zigzag(topic, data, PREFIX_BYTES)
    if count == 0:
        return (0,), position
    if not 0 < count <= INDEXES_MAX:
        raise _bad_indexes(topic, f"there are {count} of them")
    path = []
    for _ in range(count):
        index, position = _read_zigzag(topic, data, position)
        if not 0 <= index < _INDEX_END:
            raise _bad_indexes(topic, f"{index} is not a valid index")
        path.append(index)
    return tuple(path), position


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_zigzag(topic: str, data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise _bad_indexes(topic, "the bytes end within them")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), position
    raise _bad_indexes(topic, "a number has more than ten bytes")


def _bad_indexes(topic: str, reason: str) -> SerdeError:
    return SerdeError(
        f"the message indexes are invalid: {reason}",
        at=f'topic "{topic}"',
        hint="the bytes were not written by a Protobuf serializer of a schema registry",
    )


def _no_prefix(topic: str, data: bytes) -> SerdeError:
    at = f'topic "{topic}"'
    if not data:
        return SerdeError("no bytes, not even a schema id", at=at, hint=_LOOKS["plain"])
    magic = data[0]
    if magic == MAGIC:
        return SerdeError(
            f"only {len(data)} bytes, too few for a schema id", at=at, hint=_LOOKS["plain"]
        )
    if magic == MAGIC_GUID and len(data) >= 17:
        return SerdeError("magic byte 0x01: the schema is named by a GUID", at=at, hint=_GUID)
    looks = _looks_like(data)
    return SerdeError(
        f"magic byte 0x{magic:02x}: not written with a schema registry"
        + (f"; the data looks like {looks}" if looks else ""),
        at=at,
        hint=_LOOKS.get(looks, _LOOKS["plain"]),
    )


def _looks_like(data: bytes) -> str:
    if data[:4] == b"Obj\x01":
        return "an Avro file"
    if data[:2] == b"\xc3\x01":
        return "Avro with a fingerprint"
    if data[:1] in b'{["':
        return "JSON"
    text = data[:32]
    return "text" if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in text) else ""


_GUID = (
    'write with the id in front: in Confluent\'s clients that is the "prefix" schema id serializer'
)
_LOOKS = {
    "plain": "use the serde that the topic was written with, perhaps one without a registry",
    "JSON": "read plain JSON with JsonSerde(); RegistryJsonSerde reads what it or "
    "Confluent's serializer wrote",
    "text": "read text with StringSerde()",
    "Avro with a fingerprint": "records in Avro's single object encoding are not read here",
    "an Avro file": "the record's value is a whole file; read it with BytesSerde() and fastavro",
}
