"""Functions that choose between values: by null, or the largest or smallest."""

from collections.abc import Callable
from functools import reduce

from sql.datatypes import DataType, DecimalType
from sql.functions.matching import wider_decimal
from sql.functions.ordering import Key, equal, key_of, not_null, same
from sql.functions.registry import Family
from sql.functions.signature_text import read_signature

nulls = Family("CONDITIONAL")
extremes = Family("MATHEMATICAL")


@nulls.scalar(
    "COALESCE(first T, others T...) -> T", "The first value that is not null.", nulls=True
)
def coalesce(*values: object) -> object:
    """Null if all are null."""
    for each in values:
        if each is not None:
            return each
    return None


@nulls.scalar(
    "IFNULL(value T, otherwise T) -> T", "The value, or another one if it is null.", nulls=True
)
def ifnull(value: object, otherwise: object) -> object:
    return otherwise if value is None else value


@nulls.scalar(
    "NULLIF(value T, other T) -> T", "The value, or null if it equals another one.", nulls=True
)
def nullif(value: object, other: object) -> object:
    """Null equals nothing."""
    return None if equal(value, other) else value


def _widest(types: tuple[DataType, ...]) -> DataType:
    """The decimal type for the values of all."""
    return reduce(wider_decimal, (each for each in types if isinstance(each, DecimalType)))


# Any: values of one type, which can be compared by its key.
def _largest(key: Key) -> Callable[..., object]:
    def greatest(*values: object) -> object:
        return max(not_null(values), key=key, default=None)

    return greatest


def _smallest(key: Key) -> Callable[..., object]:
    def least(*values: object) -> object:
        return min(not_null(values), key=key, default=None)

    return least


_TYPES = ("INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL", "BYTES", "DATE", "TIME", "TIMESTAMP")
for _type in _TYPES:
    _parameters = f"(value {_type}, values {_type}...) -> {_type}"
    _result = read_signature(f"F() -> {_type}").result
    _key = key_of(_result) if isinstance(_result, DataType) else same
    _result_type = _widest if _type == "DECIMAL" else None
    extremes.scalar(
        f"greatest{_parameters}",
        "The largest of the values that are not null.",
        nulls=True,
        result_type=_result_type,
    )(_largest(_key))
    extremes.scalar(
        f"least{_parameters}",
        "The smallest of the values that are not null.",
        nulls=True,
        result_type=_result_type,
    )(_smallest(_key))
