"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: the first and last values, in the order of the rows.

Each value has a sequence number, which determines the order when two sessions are merged. The
numbers of an aggregator start with the time of its creation, so those after a restart are larger.
"""

from collections.abc import Callable
from itertools import count
from time import time_ns
from typing import Any

from sql.datatypes import BIGINT, ArrayType, DataType, Field, StructType
from sql.errors import StatementFailed
from sql.functions.registry import Aggregator, Family, Settings

by_offset = Family("AGGREGATE")

Types = tuple[DataType, ...]
Constants = tuple[object, ...]
Clock = Callable[[], int]
# Any: {"SEQ": number, "VAL": value of the column's type}
Numbered = dict[str, Any]


def _numbered_type(type_: DataType) -> StructType:
    return StructType((Field("SEQ", BIGINT), Field("VAL", type_)))


def _number(value: Numbered) -> int:
    number: int = value["SEQ"]
    return number


class Earliest:
    """The first value; null states have none yet."""

    def __init__(self, type_: DataType, *, ignore_nulls: bool, clock: Clock = time_ns) -> None:
        """Nulls count as values unless they are ignored."""
        self.result_type = type_
        self.state_type: DataType = _numbered_type(type_)
        self._ignore_nulls = ignore_nulls
        self._numbers = count(clock())

    def initial(self) -> Numbered | None:
        return None

    def add(self, state: Numbered | None, value: Any) -> Numbered | None:
        if state is not None or (value is None and self._ignore_nulls):
            return state
        return {"SEQ": next(self._numbers), "VAL": value}

    def merge(self, left: Numbered | None, right: Numbered | None) -> Numbered | None:
        if left is None or right is None:
            return right if left is None else left
        return min(left, right, key=_number)

    def result(self, state: Numbered | None) -> Any:
        return None if state is None else state["VAL"]


class Latest(Earliest):
    """The last value."""

    def add(self, state: Numbered | None, value: Any) -> Numbered | None:
        if value is None and self._ignore_nulls:
            return state
        return {"SEQ": next(self._numbers), "VAL": value}

    def merge(self, left: Numbered | None, right: Numbered | None) -> Numbered | None:
        if left is None or right is None:
            return right if left is None else left
        return max(left, right, key=_number)


class EarliestSeveral:
    """The first values, in their order."""

    def __init__(
        self, type_: DataType, size: int, *, ignore_nulls: bool, clock: Clock = time_ns
    ) -> None:
        """Nulls count as values unless they are ignored."""
        self.result_type: DataType = ArrayType(type_)
        self.state_type: DataType = ArrayType(_numbered_type(type_))
        self._size = size
        self._ignore_nulls = ignore_nulls
        self._numbers = count(clock())

    def initial(self) -> list[Numbered]:
        return []

    def add(self, state: list[Numbered], value: Any) -> list[Numbered]:
        if len(state) < self._size and not (value is None and self._ignore_nulls):
            state.append({"SEQ": next(self._numbers), "VAL": value})
        return state

    def merge(self, left: list[Numbered], right: list[Numbered]) -> list[Numbered]:
        return sorted(left + right, key=_number)[: self._size]

    def result(self, state: list[Numbered]) -> list[Any]:
        return [each["VAL"] for each in state]


class LatestSeveral(EarliestSeveral):
    """The last values, in their order."""

    def add(self, state: list[Numbered], value: Any) -> list[Numbered]:
        """Replace the first value if the array is full."""
        if value is None and self._ignore_nulls:
            return state
        state.append({"SEQ": next(self._numbers), "VAL": value})
        if len(state) > self._size:
            del state[0]
        return state

    def merge(self, left: list[Numbered], right: list[Numbered]) -> list[Numbered]:
        return sorted(left + right, key=_number)[-self._size :]


def _size(size: object) -> int:
    if not isinstance(size, int) or size < 1:
        raise StatementFailed(f"the number of values must be 1 or greater, not {size}")
    return size


@by_offset.aggregate("EARLIEST_BY_OFFSET(value T, ignoreNulls BOOLEAN) -> T", constants=1)
@by_offset.aggregate(
    "EARLIEST_BY_OFFSET(value T) -> T",
    "The first value, or the first n, by offset. Nulls are ignored unless ignoreNulls is false.",
)
def earliest(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Earliest(types[0], ignore_nulls=constants[0] is True if constants else True)


@by_offset.aggregate(
    "EARLIEST_BY_OFFSET(value T, n INT, ignoreNulls BOOLEAN) -> ARRAY<T>", constants=2
)
@by_offset.aggregate("EARLIEST_BY_OFFSET(value T, n INT) -> ARRAY<T>", constants=1)
def earliest_several(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    ignore_nulls = constants[1] is True if len(constants) > 1 else True
    return EarliestSeveral(types[0], _size(constants[0]), ignore_nulls=ignore_nulls)


@by_offset.aggregate("LATEST_BY_OFFSET(value T, ignoreNulls BOOLEAN) -> T", constants=1)
@by_offset.aggregate(
    "LATEST_BY_OFFSET(value T) -> T",
    "The last value, or the last n, by offset. Nulls are ignored unless ignoreNulls is false.",
)
def latest(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Latest(types[0], ignore_nulls=constants[0] is True if constants else True)


@by_offset.aggregate(
    "LATEST_BY_OFFSET(value T, n INT, ignoreNulls BOOLEAN) -> ARRAY<T>", constants=2
)
@by_offset.aggregate("LATEST_BY_OFFSET(value T, n INT) -> ARRAY<T>", constants=1)
def latest_several(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    ignore_nulls = constants[1] is True if len(constants) > 1 else True
    return LatestSeveral(types[0], _size(constants[0]), ignore_nulls=ignore_nulls)
