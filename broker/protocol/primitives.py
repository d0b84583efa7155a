"""Reads and writes of the wire types without a fixed size: varints, strings, bytes, tags.

    string          int16 length, UTF-8 bytes; length -1 is null
    bytes           int32 length, bytes; length -1 is null
    compact X       unsigned varint of length + 1; 0 is null
    array           int32 count, elements; count -1 is null
    tagged fields   unsigned varint count, then (varint tag, varint size, bytes) in ascending order

Every reader gets a buffer and a position and returns (value, next position). A length beyond the
end of the buffer is refused before anything is allocated.
"""

from struct import Struct, pack, unpack_from

from broker.errors import MalformedMessage

INT16 = Struct(">h")
INT32 = Struct(">i")
SMALL_VARINTS = tuple(bytes((value,)) for value in range(128))
VARINT_BYTES_MAX = 5


def read_unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    byte: int = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    for index in range(1, VARINT_BYTES_MAX):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise MalformedMessage(f"varint at byte {position} is longer than {VARINT_BYTES_MAX} bytes")


def unsigned_varint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 0x80:
        return SMALL_VARINTS[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(buffer: memoryview, position: int, size: int) -> tuple[str, int]:
    end = position + size
    if end > len(buffer):
        raise MalformedMessage(f"string of {size} bytes at byte {position} runs past the end")
    try:
        return str(buffer[position:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"string at byte {position} is not UTF-8") from error


def _slice(buffer: memoryview, position: int, size: int) -> tuple[memoryview, int]:
    end = position + size
    if end > len(buffer):
        raise MalformedMessage(f"{size} bytes at byte {position} run past the end")
    return buffer[position:end], end


def read_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    """Read a string that may be null."""
    size = unpack_from(">h", buffer, position)[0]
    if size < 0:
        return None, position + 2
    return _text(buffer, position + 2, size)


def read_string(buffer: memoryview, position: int) -> tuple[str, int]:
    """Read a string that may not be null."""
    size = unpack_from(">h", buffer, position)[0]
    if size < 0:
        raise MalformedMessage(f"string at byte {position} is null")
    return _text(buffer, position + 2, size)


def read_compact_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    """Read a compact string that may be null."""
    size, position = read_unsigned_varint(buffer, position)
    if size == 0:
        return None, position
    return _text(buffer, position, size - 1)


def read_compact_string(buffer: memoryview, position: int) -> tuple[str, int]:
    """Read a compact string that may not be null."""
    size, position = read_unsigned_varint(buffer, position)
    if size == 0:
        raise MalformedMessage(f"string at byte {position} is null")
    return _text(buffer, position, size - 1)


def read_nullable_bytes(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
    """Read bytes that may be null; the result is a copy."""
    view, position = read_nullable_records(buffer, position)
    return None if view is None else bytes(view), position


def read_bytes(buffer: memoryview, position: int) -> tuple[bytes, int]:
    """Read bytes that may not be null; the result is a copy."""
    view, position = read_nullable_records(buffer, position)
    if view is None:
        raise MalformedMessage(f"bytes before byte {position} are null")
    return bytes(view), position


def read_compact_nullable_bytes(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
    """Read compact bytes that may be null; the result is a copy."""
    view, position = read_compact_nullable_records(buffer, position)
    return None if view is None else bytes(view), position


def read_compact_bytes(buffer: memoryview, position: int) -> tuple[bytes, int]:
    """Read compact bytes that may not be null; the result is a copy."""
    view, position = read_compact_nullable_records(buffer, position)
    if view is None:
        raise MalformedMessage(f"bytes before byte {position} are null")
    return bytes(view), position


def read_nullable_records(buffer: memoryview, position: int) -> tuple[memoryview | None, int]:
    """Read record bytes as a view of the buffer, never a copy."""
    size = unpack_from(">i", buffer, position)[0]
    if size < 0:
        return None, position + 4
    return _slice(buffer, position + 4, size)


def read_compact_nullable_records(
    buffer: memoryview, position: int
) -> tuple[memoryview | None, int]:
    """Read compact record bytes as a view of the buffer, never a copy."""
    size, position = read_unsigned_varint(buffer, position)
    if size == 0:
        return None, position
    return _slice(buffer, position, size - 1)


def read_uuid(buffer: memoryview, position: int) -> tuple[bytes, int]:
    """Read a UUID as its 16 bytes."""
    view, position = _slice(buffer, position, 16)
    return bytes(view), position


def read_count(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read the count of an array; -1 is null."""
    count = unpack_from(">i", buffer, position)[0]
    return _checked_count(buffer, position + 4, count)


def read_compact_count(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read the count of a compact array; -1 is null."""
    count, position = read_unsigned_varint(buffer, position)
    return _checked_count(buffer, position, count - 1)


def _checked_count(buffer: memoryview, position: int, count: int) -> tuple[int, int]:
    # Every element takes at least one byte, so a larger count is invalid; refused before looping.
    if count < -1 or count > len(buffer) - position:
        raise MalformedMessage(
            f"array of {count} elements before byte {position} runs past the end"
        )
    return count, position


def skip_tagged_fields(buffer: memoryview, position: int) -> int:
    """Skip a tagged section and return the position after it."""
    count, position = read_unsigned_varint(buffer, position)
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
        if position > len(buffer):
            raise MalformedMessage("tagged field runs past the end")
    return position


def string(value: str | None) -> bytes:
    """The bytes of a string; null is allowed."""
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return INT16.pack(len(data)) + data


def compact_string(value: str | None) -> bytes:
    """The bytes of a compact string; null is allowed."""
    if value is None:
        return b"\0"
    data = value.encode()
    return unsigned_varint(len(data) + 1) + data


def sized(value: bytes | memoryview | None) -> bytes:
    """The bytes of a bytes field; null is allowed."""
    if value is None:
        return b"\xff\xff\xff\xff"
    return INT32.pack(len(value)) + bytes(value)


def compact_sized(value: bytes | memoryview | None) -> bytes:
    """The bytes of a compact bytes field; null is allowed."""
    if value is None:
        return b"\0"
    return unsigned_varint(len(value) + 1) + bytes(value)


def count(size: int) -> bytes:
    """The bytes of an array count."""
    return pack(">i", size)


def compact_count(size: int) -> bytes:
    """The bytes of a compact array count."""
    return unsigned_varint(size + 1)
