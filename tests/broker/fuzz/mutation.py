"""Damages bytes as networks, bugs and enemies do; the same seed gives the same damage."""

from collections.abc import Sequence
from random import Random
from struct import Struct

import crc32c

INT16 = Struct(">h")
INT32 = Struct(">i")
INT64 = Struct(">q")

# Lengths and counts that catch readers which trust them.
HARD_VALUES = (0, 1, -1, -2, 127, 128, 255, 32_767, 65_535, 1 << 20, 1 << 28, (1 << 31) - 1)
# Unsigned varints: huge, endless, minus one.
HARD_VARINTS = (b"\xff\xff\xff\xff\x0f", b"\xff" * 10, b"\x80\x80\x80\x80\x08", b"\x00", b"\x01")

CRC_AT = 17
ATTRIBUTES_AT = 21
LENGTH_AT = 8
LENGTH_END = 12
HEADER_BYTES = 61


class Mutator:
    """Makes damaged copies of valid bytes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds = (
            self._flip,
            self._flip,
            self._overwrite_integer,
            self._overwrite_integer,
            self._overwrite_varint,
            self._truncate,
            self._insert,
            self._remove,
            self._repeat,
        )

    def damaged(self, source: bytes, others: Sequence[bytes] = ()) -> bytearray:
        """A copy with one to four kinds of damage; sometimes a splice with another."""
        data = bytearray(source)
        if others and self._random.random() < 0.05:
            other = self._random.choice(others)
            data[self._at(data) :] = other[self._at(other) :]
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            if data:
                self._random.choice(self._kinds)(data)
        return data

    def damaged_frame(self, source: bytes, others: Sequence[bytes]) -> bytearray:
        """A damaged request; its api key and version are often others, or unknown ones."""
        data = self.damaged(source, others)
        chance = self._random.random()
        if chance < 0.05 and len(data) >= 4:
            INT16.pack_into(data, 0, self._random.randint(-2, 100))
        elif chance < 0.15 and len(data) >= 4:
            INT16.pack_into(data, 2, self._random.randint(-2, 20))
        elif chance < 0.85:
            # Most damage should meet the body, not be refused for its header.
            data[: min(8, len(data))] = source[: min(8, len(data))]
        return data

    def damaged_batch(self, source: bytes, others: Sequence[bytes]) -> bytearray:
        """A damaged batch; most are given a right length and checksum, so they come further."""
        data = self.damaged(source, others)
        if len(data) < HEADER_BYTES or self._random.random() < 0.2:
            return data
        if self._random.random() < 0.1:
            data[ATTRIBUTES_AT + 1] = self._random.randrange(256)
        if self._random.random() < 0.9:
            INT32.pack_into(data, LENGTH_AT, len(data) - LENGTH_END)
        checksum = crc32c.crc32c(memoryview(data)[ATTRIBUTES_AT:])
        data[CRC_AT:ATTRIBUTES_AT] = checksum.to_bytes(4, "big")
        return data

    def _at(self, data: Sequence[int]) -> int:
        return self._random.randrange(len(data))

    def _flip(self, data: bytearray) -> None:
        for _ in range(self._random.choice((1, 1, 3, 8))):
            data[self._at(data)] ^= 1 << self._random.randrange(8)

    def _overwrite_integer(self, data: bytearray) -> None:
        kind = self._random.choice((INT16, INT32, INT64))
        if len(data) < kind.size:
            return
        value = self._random.choice(HARD_VALUES)
        bits = 8 * kind.size
        value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        kind.pack_into(data, self._random.randint(0, len(data) - kind.size), value)

    def _overwrite_varint(self, data: bytearray) -> None:
        at = self._at(data)
        value = self._random.choice(HARD_VARINTS)
        data[at : at + len(value)] = value

    def _truncate(self, data: bytearray) -> None:
        del data[self._at(data) :]

    def _insert(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = self._random.randbytes(self._random.choice((1, 2, 4, 16)))

    def _remove(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self._random.choice((1, 2, 4, 16))]

    def _repeat(self, data: bytearray) -> None:
        at = self._at(data)
        piece = data[at : at + self._random.choice((4, 16, 64))]
        data[at:at] = piece * self._random.choice((1, 1, 8))
