"""The order and equality of values as Java compares them, where Python's differ.

Strings are compared by their UTF-16 units, bytes as signed numbers, and among doubles NaN is the
largest and -0.0 is less than 0.0. Values of other types are their own keys. NaN equals NaN.
"""

from collections.abc import Callable, Iterable, Sequence
from math import copysign, nan
from typing import Any

from sql.datatypes import BYTES, DOUBLE, STRING, DataType

# Any: keys of one type can be compared with each other, whatever they are.
Key = Callable[[Any], Any]

_SURROGATES = "\ud800"
_SIGNED = bytes((n + 128) % 256 for n in range(256))


def text_key(text: str) -> str:
    """A string that is ordered as Java orders this one."""
    if text.isascii() or max(text) < _SURROGATES:
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(units[n] << 8 | units[n + 1]) for n in range(0, len(units), 2))


def bytes_key(value: bytes) -> bytes:
    """Bytes in Java's order, where bytes are signed."""
    return value.translate(_SIGNED)


def double_key(number: float) -> tuple[bool, float, float]:
    """What is ordered as Double.compareTo orders numbers."""
    return number != number, number, copysign(1.0, number)


def same(value: object) -> object:
    """A value that is its own key."""
    return value


_KEYS: dict[DataType, Key] = {STRING: text_key, BYTES: bytes_key, DOUBLE: double_key}
_KEYS_OF_VALUES: dict[type, Key] = {str: text_key, bytes: bytes_key, float: double_key}


def key_of(type_: DataType) -> Key:
    """The key to compare values of a type by."""
    return _KEYS.get(type_, same)


# Any: values of one type, which can be compared.
def key_of_values(values: Sequence[Any]) -> Key:
    """The key to compare values of one type by."""
    return _KEYS_OF_VALUES.get(type(values[0]), same) if values else same


def not_null(values: Iterable[Any]) -> list[Any]:
    """The values that are there."""
    return [each for each in values if each is not None]


def equal(left: object, right: object) -> bool:
    """Whether two values are the same one."""
    return left == right or (left != left and right != right)


def holds(values: Sequence[Any], value: object) -> bool:
    """Whether a value is among others."""
    return value in values or (value != value and any(each != each for each in values))


def one_nan(values: list[Any]) -> list[Any]:
    """The values with the same NaN everywhere, which Python then finds equal to itself."""
    first = next((each for each in values if each is not None), None)
    if type(first) is not float:
        return values
    return [nan if each != each else each for each in values]
