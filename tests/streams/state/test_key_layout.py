"""Keys of stores: bytes as Kafka has them, and ranges that miss no row."""

from hypothesis import given
from hypothesis import strategies as st

from streams.state.key_layout import (
    after_prefix,
    keys_bounds,
    segment_interval_ms,
    segment_prefix,
    session_key,
    session_key_parts,
    window_key,
    window_key_parts,
)

KEYS = st.binary(max_size=6) | st.text("\0\1a", max_size=4).map(str.encode)
TIMES = st.integers(0, (1 << 63) - 1)


def test_a_window_key_is_key_start_sequence() -> None:
    expected = b"key" + bytes.fromhex("0000018bcfe5680000000007")
    assert window_key(b"key", 1_700_000_000_000, 7) == expected
    assert window_key_parts(expected) == (b"key", 1_700_000_000_000, 7)


def test_a_session_key_has_the_end_before_the_start() -> None:
    expected = b"key" + bytes.fromhex("00000000000000ff0000000000000010")
    assert session_key(b"key", 16, 255) == expected
    assert session_key_parts(expected) == (b"key", 16, 255)


def test_a_segment_is_half_the_retention_and_at_least_a_minute() -> None:
    assert segment_interval_ms(10) == 60_000
    assert segment_interval_ms(120_002) == 60_001
    assert segment_prefix(258) == bytes([0, 0, 0, 0, 0, 0, 1, 2])


@given(prefix=st.binary(max_size=4), rest=KEYS, other=KEYS)
def test_what_begins_with_a_prefix_is_before_what_comes_after(
    prefix: bytes, rest: bytes, other: bytes
) -> None:
    after = after_prefix(prefix)
    assert after is None or prefix + rest < after
    is_inside = other >= prefix and (after is None or other < after)
    assert is_inside == other.startswith(prefix)


@given(first=KEYS, key=KEYS, last=KEYS, start=TIMES, later=st.integers(0, 5))
def test_a_range_of_keys_has_every_row_of_them(
    first: bytes, key: bytes, last: bytes, start: int, later: int
) -> None:
    first, key, last = sorted((first, key, last))
    to_ms = min(start + later, (1 << 63) - 1)
    prefix = segment_prefix(3)
    lower, before = keys_bounds(prefix, first, last, to_ms)
    row = prefix + window_key(key, start, (1 << 31) - 1)
    assert before is not None
    assert lower <= row < before
    session = prefix + session_key(key, start, start)
    assert lower <= session < before


def test_a_row_of_a_shorter_key_may_lie_behind_those_of_the_last() -> None:
    row = segment_prefix(0) + window_key(b"a", 1 << 62)
    _, before = keys_bounds(segment_prefix(0), b"", b"a\0", 1 << 62)
    assert before is not None
    assert segment_prefix(0) + window_key(b"a\0", 1 << 62) < row < before
