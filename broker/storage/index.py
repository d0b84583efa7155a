"""OffsetIndex, TimeIndex and TransactionIndex: positions of batches in a segment.

Big endian, entries of fixed size, in ascending order; `offset` is relative to the segment's base.

    NNN.index      offset i32 | position i32                          8 bytes
    NNN.timeindex  timestamp i64 | offset i32                        12 bytes
    NNN.txnindex   version i16 = 0 | producer id i64 | first offset i64
                   | last offset i64 | last stable offset i64        34 bytes

An entry of the offset index contains the last offset of a batch and the batch's position. An entry
of the time index contains the largest timestamp so far and the last offset of its batch. The
transaction index contains aborted transactions; its offsets are absolute.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY = struct.Struct(">qi")
ABORTED_ENTRY = struct.Struct(">hqqqq")
ABORTED_VERSION = 0
SWAP_BYTES = sys.byteorder == "little"
LOW_HALF = 0 if SWAP_BYTES else 1  # of a number of 8 bytes, counted in 4
OFFSET_ENTRY = struct.Struct(">ii")
RELATIVE_OFFSET_MAX = 2**31 - 1


class StaleIndex(Exception):
    """An index file that does not match its segment; it is rebuilt from the log."""


class OffsetIndex:
    """Offset -> position, sparse."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")

    @classmethod
    def from_bytes(cls, data: bytes, *, log_bytes: int) -> "OffsetIndex":
        """Read an index file; StaleIndex if it cannot belong to a log of that size."""
        if len(data) % OFFSET_ENTRY_BYTES:
            raise StaleIndex("size is not a whole number of entries")
        both = array("I", data)
        if SWAP_BYTES:
            both.byteswap()
        index = cls()
        index.offsets, index.positions = both[0::2], both[1::2]
        for column in (index.offsets, index.positions):
            _check_ends(column)
        if index.positions and index.positions[-1] >= log_bytes:
            raise StaleIndex("last entry is beyond the end of the log")
        if index.offsets and index.offsets[-1] > RELATIVE_OFFSET_MAX:
            raise StaleIndex("an offset is negative")
        return index

    def to_bytes(self) -> bytes:
        """The index file."""
        both = array("I", bytes(OFFSET_ENTRY_BYTES * len(self.offsets)))
        both[0::2], both[1::2] = self.offsets, self.positions
        if SWAP_BYTES:
            both.byteswap()
        return both.tobytes()

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.offsets)

    def append(self, offset: int, position: int) -> None:
        """Add the last entry."""
        self.offsets.append(offset)
        self.positions.append(position)

    def position_before(self, offset: int) -> int:
        """The position from which to search for an offset: no earlier batch contains it."""
        found = bisect_right(self.offsets, offset)
        return self.positions[found - 1] if found else 0

    def batch_before(self, position: int) -> int:
        """The position of the last indexed batch that begins at a position or before it."""
        found = bisect_right(self.positions, position)
        return self.positions[found - 1] if found else 0

    def offset_at(self, position: int) -> int:
        """The relative offset of the entry with that position."""
        return self.offsets[bisect_right(self.positions, position) - 1]


class TimeIndex:
    """Timestamp -> offset, sparse."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("I")

    @classmethod
    def from_bytes(cls, data: bytes) -> "TimeIndex":
        """Read an index file; StaleIndex if it is invalid."""
        if len(data) % TIME_ENTRY.size:
            raise StaleIndex("size is not a whole number of entries")
        words = array("I", data)
        if SWAP_BYTES:
            words.byteswap()
        index = cls()
        index.offsets = words[2::3]
        halves = array("I", bytes(8 * len(index.offsets)))
        halves[LOW_HALF::2], halves[1 - LOW_HALF :: 2] = words[1::3], words[0::3]
        index.timestamps = array("q", halves.tobytes())
        _check_ends(index.timestamps)
        if index.offsets and index.offsets[-1] > RELATIVE_OFFSET_MAX:
            raise StaleIndex("an offset is negative")
        return index

    def to_bytes(self) -> bytes:
        """The index file."""
        halves = array("I", self.timestamps.tobytes())
        words = array("I", bytes(TIME_ENTRY.size * len(self.offsets)))
        words[0::3], words[1::3] = halves[1 - LOW_HALF :: 2], halves[LOW_HALF::2]
        words[2::3] = self.offsets
        if SWAP_BYTES:
            words.byteswap()
        return words.tobytes()

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.offsets)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, if it differs from the last one."""
        if not self.timestamps or timestamp > self.timestamps[-1]:
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def entry_before(self, timestamp: int) -> int:
        """The number of the last entry before a time: no earlier batch reaches it; -1: none."""
        return bisect_left(self.timestamps, timestamp) - 1


def _check_ends(column: "array[int]") -> None:
    """Detect an index of another segment; its entries are checked when they are used."""
    if len(column) > 1 and column[0] >= column[-1]:
        raise StaleIndex("entries are not in ascending order")


class AbortedRange(NamedTuple):
    """An aborted transaction: its offsets, and the last stable offset after its end."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_from_bytes(data: bytes) -> list[AbortedRange]:
    """Read a transaction index; StaleIndex if it is invalid."""
    if len(data) % ABORTED_ENTRY.size:
        raise StaleIndex("size is not a whole number of entries")
    found = []
    for version, *fields in ABORTED_ENTRY.iter_unpack(data):
        if version != ABORTED_VERSION:
            raise StaleIndex(f"version {version} is not known")
        found.append(AbortedRange(*fields))
    return found


def aborted_to_bytes(ranges: Iterable[AbortedRange]) -> bytes:
    """The transaction index file."""
    return b"".join(ABORTED_ENTRY.pack(ABORTED_VERSION, *item) for item in ranges)
