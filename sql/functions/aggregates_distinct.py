"""COUNT_DISTINCT: the approximate number of distinct values.

A state is a byte string; its first byte is its kind:

    0   the sorted hashes of up to 512 values, 8 bytes each: the count is exact
    1   a HyperLogLog: 2^14 registers of one byte. The first 14 bits of a hash select a register,
        which stores the maximum number of leading zeros of the other 50 bits, plus one.
"""

import json
import struct
from bisect import bisect_left
from collections.abc import Callable
from hashlib import blake2b
from math import log
from typing import Any

from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
)
from sql.functions.registry import Aggregator, Family, Settings

distinct = Family("AGGREGATE")

EXACT_MAX = 512
REGISTERS = 1 << 14
_HASH_BYTES = 8
_TAIL_BITS = 50
_TAIL = (1 << _TAIL_BITS) - 1
_EXACT, _APPROXIMATE = b"\0", b"\1"
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)
_POWERS = [2.0**-n for n in range(_TAIL_BITS + 2)]

Types = tuple[DataType, ...]
Constants = tuple[object, ...]


def _other_bytes(value: object) -> bytes:
    # Maps with the same entries in another order are equal.
    return json.dumps(value, sort_keys=True, default=str).encode()


_WHOLE = struct.Struct(">q").pack
# Any: a value of the type.
_BYTES_OF: dict[DataType, Callable[[Any], bytes]] = {
    STRING: lambda value: value.encode("utf-8", "surrogatepass"),
    BYTES: bytes,
    BOOLEAN: _WHOLE,
    **dict.fromkeys((INT, BIGINT, DATE, TIME, TIMESTAMP), _WHOLE),
    DOUBLE: struct.Struct(">d").pack,
}


class CountDistinct:
    """Counts values by their hashes."""

    state_type: DataType = BYTES
    result_type: DataType = BIGINT

    def __init__(self, type_: DataType) -> None:
        self._bytes = _BYTES_OF.get(type_, _other_bytes)

    def initial(self) -> bytes:
        return _EXACT

    def add(self, state: bytes, value: Any) -> bytes:
        """Nulls are not counted."""
        if value is None:
            return state
        hashed = blake2b(self._bytes(value), digest_size=_HASH_BYTES).digest()
        return _with_hash(state, hashed)

    def merge(self, left: bytes, right: bytes) -> bytes:
        if right[:1] == _EXACT:
            for hashed in _hashes(right):
                left = _with_hash(left, hashed)
            return left
        if left[:1] == _EXACT:
            return self.merge(right, left)
        return _APPROXIMATE + bytes(map(max, left[1:], right[1:]))

    def result(self, state: bytes) -> int:
        """The exact count, or an estimate."""
        if state[:1] == _EXACT:
            return len(state) // _HASH_BYTES
        registers = state[1:]
        empty = registers.count(0)
        estimate = _ALPHA * REGISTERS * REGISTERS / sum(map(_POWERS.__getitem__, registers))
        if empty and estimate <= 2.5 * REGISTERS:
            estimate = REGISTERS * log(REGISTERS / empty)
        return round(estimate)


def _hashes(state: bytes) -> list[bytes]:
    return [state[n : n + _HASH_BYTES] for n in range(1, len(state), _HASH_BYTES)]


def _with_hash(state: bytes, hashed: bytes) -> bytes:
    if state[:1] == _APPROXIMATE:
        place, rank = _register(hashed)
        if state[place] >= rank:
            return state
        return state[:place] + bytes((rank,)) + state[place + 1 :]
    count = len(state) // _HASH_BYTES
    index = bisect_left(
        range(count), hashed, key=lambda n: state[n * 8 + 1 : n * 8 + 1 + _HASH_BYTES]
    )
    place = index * _HASH_BYTES + 1
    if state[place : place + _HASH_BYTES] == hashed:
        return state
    if count < EXACT_MAX:
        return state[:place] + hashed + state[place:]
    registers = bytearray(_APPROXIMATE) + bytearray(REGISTERS)
    for each in (*_hashes(state), hashed):
        place, rank = _register(each)
        registers[place] = max(registers[place], rank)
    return bytes(registers)


def _register(hashed: bytes) -> tuple[int, int]:
    """The register of a hash, and its value."""
    number = int.from_bytes(hashed, "big")
    return (number >> _TAIL_BITS) + 1, _TAIL_BITS - (number & _TAIL).bit_length() + 1


@distinct.aggregate(
    "COUNT_DISTINCT(value T) -> BIGINT",
    "The number of distinct values; above 512 an estimate with an error of about 1%.",
)
def count_distinct(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return CountDistinct(types[0])
