"""Times in the metadata of committed offsets, so that they survive a crash or a move.

    1;<partition time>;<largest time>;<name>=<age>;<name>=<age>...
    2;<partition time>;<largest time>;<age>=<name><name>...;<age>=<name>...

All numbers in base 36. A name is the CRC-32 of an operator's name (in version 2 padded to
NAME_CHARS characters), an age is the largest time minus its time. Text in another format
is ignored.

In version 1 each partition has the times of all operators. If that is longer than TEXT_TARGET,
version 2 is used; if that is too long as well, each input partition has the times of some of the
operators. All partitions of a task are committed together, and read together.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from streams.processor import NO_TIME

logger = logging.getLogger(__name__)

VERSION = "1"
VERSION_BY_AGE = "2"
TEXT_TARGET = 1024
TEXT_MAX = 4096  # the default of Kafka's brokers: offset.metadata.max.bytes
NAME_CHARS = 7
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Times(NamedTuple):
    """Committed times: that of the partition, and those of operators by short name."""

    partition_ms: int = NO_TIME
    operators: Mapping[str, int] = {}


def short_name(name: str) -> str:
    """The short form of an operator's name, as in the text."""
    return _base36(crc32(name.encode()))


def encode_times(partitions: Sequence[int], operators: Mapping[str, int]) -> list[str]:
    """The text for each partition, from their times; operators without records are omitted."""
    known = {short_name(name): ms for name, ms in operators.items() if ms >= 0}
    whole = [_by_name(time_ms, known) for time_ms in partitions]
    if max(map(len, whole), default=0) <= TEXT_TARGET:
        return whole
    whole = [_by_age(time_ms, known) for time_ms in partitions]
    if max(map(len, whole)) <= TEXT_TARGET:
        return whole
    ordered = sorted(known, key=lambda name: (known[name], name))
    count = -(-len(ordered) // len(partitions))
    texts = []
    for number, time_ms in enumerate(partitions):
        part = ordered[number * count : (number + 1) * count]
        text = _by_age(time_ms, {name: known[name] for name in part})
        while len(text) > TEXT_MAX:
            omitted = len(part) // 2 + 1
            _warn(omitted)
            part = part[omitted:]  # the largest times are at the end
            text = _by_age(time_ms, {name: known[name] for name in part})
        texts.append(text)
    return texts


@cache
def _warn(count: int) -> None:
    """Log a warning once, not at each commit."""
    logger.warning(
        "the stream times of %d operators do not fit into %d bytes of offset metadata: after a "
        "restart they accept late records",
        count,
        TEXT_MAX,
    )


def _by_name(partition_ms: int, known: Mapping[str, int]) -> str:
    if partition_ms < 0 and not known:
        return ""
    largest = max(known.values(), default=0)
    parts = [VERSION, _base36(partition_ms), _base36(largest)]
    return ";".join(parts + [f"{name}={_base36(largest - ms)}" for name, ms in known.items()])


def _by_age(partition_ms: int, known: Mapping[str, int]) -> str:
    largest = max(known.values(), default=0)
    ages: dict[int, list[str]] = {}
    for name, ms in known.items():
        ages.setdefault(largest - ms, []).append(name.rjust(NAME_CHARS, "0"))
    parts = [VERSION_BY_AGE, _base36(partition_ms), _base36(largest)]
    return ";".join(parts + [f"{_base36(age)}={''.join(names)}" for age, names in ages.items()])


def decode_times(text: str) -> Times:
    """Decode a text; empty if it is in another format."""
    parts = text.split(";")
    if len(parts) < 3 or parts[0] not in (VERSION, VERSION_BY_AGE):
        return Times()
    try:
        partition_ms, largest = int(parts[1], 36), int(parts[2], 36)
        pairs = _by_name_of(parts[3:]) if parts[0] == VERSION else _by_age_of(parts[3:])
        operators = {name: largest - int(age, 36) for name, age in pairs}
    except ValueError:
        return Times()
    return Times(partition_ms, operators)


def _by_name_of(parts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in parts)
    return [(name, age) for name, _, age in pairs]


def _by_age_of(parts: Iterable[str]) -> list[tuple[str, str]]:
    return [
        (names[at : at + NAME_CHARS].lstrip("0") or "0", age)
        for age, _, names in (part.partition("=") for part in parts)
        for at in range(0, len(names), NAME_CHARS)
    ]


def _base36(number: int) -> str:
    if number < 0:
        return "-" + _base36(-number)
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
