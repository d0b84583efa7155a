"""Order and equality of values as in Java, where Python differs.

Strings are compared by UTF-16 units, bytes as signed numbers; NaN is the largest double and equals
itself, and -0.0 is less than 0.0. Other values are their own sort keys.
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
    """A string with Java's order in Python."""
    if text.isascii() or max(text) < _SURROGATES:
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(units[n] << 8 | units[n + 1]) for n in range(0, len(units), 2))


def bytes_key(value: bytes) -> bytes:
    """Bytes with Java's order, where bytes are signed."""
    return value.translate(_SIGNED)


def double_key(number: float) -> tuple[bool, float, float]:
    """A sort key with the order of Double.compareTo."""
    return number != number, number, copysign(1.0, number)


def same(value: object) -> object:
    """The value itself as its sort key."""
    return value


_KEYS: dict[DataType, Key] = {STRING: text_key, BYTES: bytes_key, DOUBLE: double_key}
_KEYS_OF_VALUES: dict[type, Key] = {str: text_key, bytes: bytes_key, float: double_key}


def key_of(type_: DataType) -> Key:
    """The sort key function of a type."""
    return _KEYS.get(type_, same)


# Any: values of one type, which can be compared.
def key_of_values(values: Sequence[Any]) -> Key:
    """The sort key function of values of one type."""
    return _KEYS_OF_VALUES.get(type(values[0]), same) if values else same


def not_null(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def equal(left: object, right: object) -> bool:
    """Whether two values are equal in Java."""
    return left == right or (left != left and right != right)


def holds(values: Sequence[Any], value: object) -> bool:
    """Whether the values contain a value."""
    return value in values or (value != value and any(each != each for each in values))


def one_nan(values: list[Any]) -> list[Any]:
    """The values with the same NaN object, which Python finds equal to itself."""
    first = next((each for each in values if each is not None), None)
    if type(first) is not float:
        return values
    return [nan if each != each else each for each in values]
