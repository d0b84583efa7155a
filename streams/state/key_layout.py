"""Keys inside stores: Kafka's layouts, after the number of a segment; pure functions.

    window row      segment 8 | key | start 8 | sequence 4
    session row     segment 8 | key | end 8   | start 8
    version row     segment 8 | key | valid_to 8 | valid_from 8     (older versions of a key)
    latest version  0xff      | key                                 (unless it is a deletion)

All numbers are big-endian and never negative, so bytes sort as the numbers do. What follows the
segment is exactly the key of Kafka's changelog, for windows and sessions.

A segment has the rows whose time (start, end, valid_to) is in one interval of `interval_ms`.
Expired rows are whole segments at the front, so one range deletion removes them.

Keys have any length: between two rows of "a" there may be rows of "a\\0\\0". So a range of bytes is
only a first selection; scans must also compare the length.
"""

from struct import Struct

SEGMENT_BYTES = 8
WINDOW_SUFFIX_BYTES = 12
PAIR_SUFFIX_BYTES = 16
SEGMENT_INTERVAL_MIN_MS = 60_000
TIME_MAX = (1 << 63) - 1
SEQUENCE_MAX = (1 << 31) - 1
LATEST_PREFIX = b"\xff"
AFTER_SUFFIX = b"\xff" * 9  # after any row with the same first time in its suffix

_LONG = Struct(">q")
_WINDOW_SUFFIX = Struct(">qi")
_PAIR_SUFFIX = Struct(">qq")

pack_long = _LONG.pack
pack_window_suffix = _WINDOW_SUFFIX.pack
pack_pair_suffix = _PAIR_SUFFIX.pack
unpack_long = _LONG.unpack_from
unpack_pair_suffix = _PAIR_SUFFIX.unpack_from


def segment_interval_ms(retention_ms: int) -> int:
    """The time interval of one segment."""
    return max(retention_ms // 2, SEGMENT_INTERVAL_MIN_MS)


def segment_prefix(segment: int) -> bytes:
    """The prefix of all rows of a segment; also the first key after the previous segment."""
    return pack_long(segment)


def window_key(key: bytes, start_ms: int, sequence: int = 0) -> bytes:
    """Kafka's key of a window: in its window stores and their changelogs.

    >>> window_key(b"k", 1, 2).hex()
    '6b000000000000000100000002'
    """
    return key + pack_window_suffix(start_ms, sequence)


def window_key_parts(data: bytes) -> tuple[bytes, int, int]:
    """Key, start and sequence of a window key."""
    start_ms, sequence = _WINDOW_SUFFIX.unpack_from(data, len(data) - WINDOW_SUFFIX_BYTES)
    return data[:-WINDOW_SUFFIX_BYTES], start_ms, sequence


def session_key(key: bytes, start_ms: int, end_ms: int) -> bytes:
    """Kafka's key of a session: the end comes first.

    >>> session_key(b"k", 1, 2).hex()
    '6b00000000000000020000000000000001'
    """
    return key + pack_pair_suffix(end_ms, start_ms)


def session_key_parts(data: bytes) -> tuple[bytes, int, int]:
    """Key, start and end of a session key."""
    end_ms, start_ms = _PAIR_SUFFIX.unpack_from(data, len(data) - PAIR_SUFFIX_BYTES)
    return data[:-PAIR_SUFFIX_BYTES], start_ms, end_ms


def latest_key(key: bytes) -> bytes:
    """The row key of the latest version of a key."""
    return LATEST_PREFIX + key


def keys_bounds(
    prefix: bytes, first: bytes | None, last: bytes | None, to_ms: int
) -> tuple[bytes, bytes | None]:
    """Bounds of a scan for the rows of the keys `first` to `last` in one segment.

    Rows of a key that is a prefix of `last` can sort after the rows of `last` itself.
    """
    lower = prefix if first is None else prefix + first
    if last is None:
        return lower, after_prefix(prefix)
    suffix = pack_long(to_ms) + AFTER_SUFFIX
    return lower, prefix + max(last[:length] + suffix for length in range(len(last) + 1))


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key after all keys with a prefix; None if there is none.

    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"\\xff")
    (b'ac', b'b', None)
    """
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
