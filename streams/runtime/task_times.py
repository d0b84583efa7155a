"""Times in the metadata of committed offsets, so that they survive a crash or a move.

    1;<partition time>;<largest time>;<name>=<age>;<name>=<age>...

All numbers in base 36. A name is the CRC-32 of an operator's name, an age how much smaller its time
is than the largest. Text that does not look so is somebody else's and is ignored.
"""

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from streams.processor import NO_TIME

VERSION = "1"
TEXT_MAX = 1024
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Times(NamedTuple):
    """What was committed: the partition's time, and operators' times by short name."""

    partition_ms: int = NO_TIME
    operators: Mapping[str, int] = {}


def short_name(name: str) -> str:
    """How an operator's name stands in the text."""
    return _base36(crc32(name.encode()))


def encode_times(partition_ms: int, operators: Mapping[str, int]) -> str:
    """The text for a partition; operators that have seen no record are left out.

    Should there be hundreds of operators, the last ones do not fit and begin again after a move.
    """
    known = {name: ms for name, ms in operators.items() if ms >= 0}
    if partition_ms < 0 and not known:
        return ""
    largest = max(known.values(), default=0)
    text = f"{VERSION};{_base36(partition_ms)};{_base36(largest)}"
    for name, ms in known.items():
        part = f";{short_name(name)}={_base36(largest - ms)}"
        if len(text) + len(part) > TEXT_MAX:
            break
        text += part
    return text


def decode_times(text: str) -> Times:
    """What a text says; nothing when it is not ours."""
    parts = text.split(";")
    if len(parts) < 3 or parts[0] != VERSION:
        return Times()
    try:
        partition_ms, largest = int(parts[1], 36), int(parts[2], 36)
        operators = {}
        for part in parts[3:]:
            name, _, age = part.partition("=")
            operators[name] = largest - int(age, 36)
    except ValueError:
        return Times()
    return Times(partition_ms, operators)


def _base36(number: int) -> str:
    if number < 0:
        return "-" + _base36(-number)
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
