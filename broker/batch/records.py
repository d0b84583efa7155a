"""The records section of a batch in plain Python, used where _speed.c was not built.

The layout of a record is at the top of broker/batch/layout.py. Both implementations have the same
functions and give the same results; invalid bytes raise ValueError.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from broker.batch.layout import RECORD_BYTES_MIN

T = TypeVar("T", bound=tuple[object, ...])

Bytes = bytes | bytearray | memoryview
Headers = Sequence[tuple[str, Bytes | None]]
Row = tuple[Bytes | None, Bytes | None, Headers, int]

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1
INT32_MAX = (1 << 31) - 1
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10


class Record(NamedTuple):
    """One record as a reader sees it; header keys may contain invalid UTF-8 (surrogateescape).

    A tuple, because C creates tuples at a third of the cost of any other object with fields.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Section(NamedTuple):
    """The fields of the batch header that a decoder needs."""

    record_count: int
    last_offset_delta: int
    base_offset: int
    base_timestamp: int
    fixed_timestamp: bool  # all records have the base timestamp, whatever their deltas


def zigzag(value: int) -> bytes:
    """The bytes of a zigzag varint."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


SMALL_VARINTS = [zigzag(value) for value in range(1024)]


def _size(value: int) -> bytes:
    return SMALL_VARINTS[value] if value < 1024 else zigzag(value)


# --- encoding ---------------------------------------------------------------------------------


def encode_rows(rows: Sequence[Row]) -> tuple[bytes, int, int]:
    """Encode new records with offset deltas 0, 1, ...: section, base and max timestamp.

    The base timestamp is the first record's.
    """
    base_timestamp = rows[0][3] if rows else -1
    max_timestamp = base_timestamp
    parts: list[bytes] = []
    for delta, (key, value, headers, timestamp_ms) in enumerate(rows):
        _encode(parts, (timestamp_ms - base_timestamp, delta), (key, value), headers)
        if timestamp_ms > max_timestamp:
            max_timestamp = timestamp_ms
    return b"".join(parts), base_timestamp, max_timestamp


def encode_kept(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytes:
    """Encode records that already have offsets, relative to a given base."""
    parts: list[bytes] = []
    for offset, timestamp_ms, key, value, headers in records:
        delta = offset - base_offset
        if not 0 <= delta <= INT32_MAX:
            raise ValueError(f"offset {offset} is outside a batch at {base_offset}")
        _encode(parts, (timestamp_ms - base_timestamp, delta), (key, value), headers)
    return b"".join(parts)


def _encode(
    parts: list[bytes],
    deltas: tuple[int, int],
    pair: tuple[Bytes | None, Bytes | None],
    headers: Iterable[tuple[str, Bytes | None]],
) -> None:
    timestamp_delta, offset_delta = deltas
    if not INT64_MIN <= timestamp_delta <= INT64_MAX:
        raise ValueError("timestamps of one batch are more than 64 bits apart")
    body = [b"\0", zigzag(timestamp_delta), _size(offset_delta)]
    for data in pair:
        _add_sized(body, data)
    if headers:
        encoded = [(name.encode("utf-8", "surrogateescape"), data) for name, data in headers]
        body.append(_size(len(encoded)))
        for name, data in encoded:
            body += (_size(len(name)), name)
            _add_sized(body, data)
    else:
        body.append(b"\0")
    record = b"".join(body)
    parts += (_size(len(record)), record)


def _add_sized(body: list[bytes], data: Bytes | None) -> None:
    if data is None:
        body.append(b"\1")
        return
    copied = data if type(data) is bytes else bytes(memoryview(data))
    body += (_size(len(copied)), copied)


# --- decoding ---------------------------------------------------------------------------------


def _varint(data: bytes, position: int, bytes_max: int = VARINT_BYTES_MAX) -> tuple[int, int]:
    result = 0
    for index in range(bytes_max):
        byte = data[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if result >> (32 if bytes_max == VARINT_BYTES_MAX else 64):
                break
            return (result >> 1) ^ -(result & 1), position + index + 1
    raise ValueError(f"varint at byte {position} is too long")


def _sized(data: bytes, position: int) -> tuple[int, int, int]:
    """Start, end and following position of a field that may be null (start -1)."""
    size, start = _varint(data, position)
    if size >= 0:
        return start, start + size, start + size
    if size == -1:
        return -1, -1, start
    raise ValueError(f"size {size} at byte {position} is negative")


def _headers(
    data: bytes, position: int, end: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = _varint(data, position)
    if not 0 <= count <= end - position:
        raise ValueError(f"{count} headers do not fit in the record")
    found = []
    for _ in range(count):
        start, stop, position = _sized(data, position)
        if start < 0 or stop > end:
            raise ValueError(f"header key at byte {position} runs past the end")
        name = data[start:stop].decode("utf-8", "surrogateescape")
        start, stop, position = _sized(data, position)
        if stop > end:
            raise ValueError(f"header value at byte {position} runs past the end")
        found.append((name, None if start < 0 else data[start:stop]))
    return tuple(found), position


Spans = tuple[int, int, int, int, int, int, tuple[tuple[str, bytes | None], ...]]


def _spans(data: bytes, section: Section) -> Iterable[Spans]:
    """Per record: offset, timestamp, key start and end, value start and end, headers."""
    count, last_offset_delta, base_offset, base_timestamp, fixed = section
    limit = len(data)
    position = 0
    for _ in range(count):
        size, start = _varint(data, position)
        end = start + size
        if size < 0 or end > limit:
            raise ValueError(f"record of {size} bytes at byte {position} runs past the end")
        delta, position = _varint(data, start + 1, VARLONG_BYTES_MAX)
        offset_delta, position = _varint(data, position)
        if not 0 <= offset_delta <= last_offset_delta:
            raise ValueError(f"offset delta {offset_delta} is outside the batch")
        timestamp_ms = base_timestamp if fixed else base_timestamp + delta
        if not INT64_MIN <= timestamp_ms <= INT64_MAX:
            raise ValueError(f"timestamp {timestamp_ms} is outside 64 bits")
        key_start, key_end, position = _sized(data, position)
        value_start, value_end, position = _sized(data, position)
        if position >= end:
            raise ValueError(f"key or value of the record before byte {end} runs past its end")
        if data[position] == 0:
            headers: tuple[tuple[str, bytes | None], ...] = ()
            position += 1
        else:
            headers, position = _headers(data, position, end)
        if position != end:
            raise ValueError(f"record ends at byte {position}, not {end}")
        offset = base_offset + offset_delta
        yield offset, timestamp_ms, key_start, key_end, value_start, value_end, headers
    if position != limit:
        raise ValueError(f"{limit - position} bytes follow the last record")


def decode_rows(
    data: bytes, section: Section, row_type: type[T], prefix: tuple[object, ...] = ()
) -> list[T]:
    """Decode all records of a section to named tuples: the prefix, then the fields of Record."""
    rows = []
    try:
        for offset, timestamp_ms, key_start, key_end, value_start, value_end, headers in _spans(
            data, section
        ):
            key = None if key_start < 0 else data[key_start:key_end]
            value = None if value_start < 0 else data[value_start:value_end]
            fields = (*prefix, offset, timestamp_ms, key, value, headers)
            rows.append(tuple.__new__(row_type, fields))
    except IndexError:
        raise ValueError("the last record is truncated") from None
    return rows


RowHeaders = list[tuple[tuple[str, bytes | None], ...]]


def decode_arrays(
    data: bytes, section: Section, longs: Sequence["array[int]"], ints: Sequence["array[int]"]
) -> RowHeaders | None:
    """Fill arrays of `count` items: offsets and timestamps; key and value starts and ends.

    A null has start and end -1. The headers come back as a list, or None when no record has any.
    """
    offsets, timestamps = longs
    key_starts, key_ends, value_starts, value_ends = ints
    found: RowHeaders = []
    try:
        for row, span in enumerate(_spans(data, section)):
            offsets[row], timestamps[row] = span[0], span[1]
            key_starts[row], key_ends[row] = span[2], span[3]
            value_starts[row], value_ends[row] = span[4], span[5]
            found.append(span[6])
    except IndexError:
        raise ValueError("the last record is truncated") from None
    return found if any(found) else None


def check_section(data: Bytes, fields: tuple[int, int, int, int, bool]) -> tuple[int, int, bool]:
    """Read a section as decoding would: first and last time, and whether a key is null.

    Its offsets must be the base offset and those that follow it, without a gap. `fields` are those
    of a Section.
    """
    section = Section._make(fields)
    if not 0 <= section.record_count <= len(data) // RECORD_BYTES_MIN:
        raise ValueError("there are fewer bytes than the records need")
    first_ms = last_ms = section.base_timestamp
    has_null_keys = False
    row = 0
    try:
        for row, (offset, timestamp_ms, key_start, *_) in enumerate(_spans(bytes(data), section)):
            if offset != section.base_offset + row:
                raise ValueError("offset deltas are not consecutive from 0")
            first_ms = min(first_ms, timestamp_ms) if row else timestamp_ms
            last_ms = max(last_ms, timestamp_ms) if row else timestamp_ms
            has_null_keys = has_null_keys or key_start < 0
    except IndexError:
        raise ValueError("the last record is truncated") from None
    return first_ms, last_ms, has_null_keys


# Offsets, timestamps, keys, values, and the headers: None when no record has any.
Lists = tuple[list[int], list[int], list[bytes | None], list[bytes | None], RowHeaders | None]


def decode_lists(data: bytes, section: Section) -> Lists:
    """Decode all records of a section into one list per field."""
    rows = decode_rows(data, section, Record)
    headers = [row.headers for row in rows]
    return (
        [row.offset for row in rows],
        [row.timestamp_ms for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        headers if any(headers) else None,
    )
