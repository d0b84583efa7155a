"""Aggregates that need one value: COUNT, SUM, SUM_LIST, AVG, MIN and MAX.

States are values of SQL types, so that any format can store them. `add` may modify its state, but
results are never a mutable state.
"""

from typing import Any

from sql.datatypes import BIGINT, BYTES, DOUBLE, STRING, ArrayType, DataType, Field, StructType
from sql.functions.java_arithmetic import addition, zero
from sql.functions.ordering import Key, key_of
from sql.functions.registry import Aggregator, Family, Settings

aggregates = Family("AGGREGATE")

# Any: the aggregators define the types of states and values.
Types = tuple[DataType, ...]
Constants = tuple[object, ...]


class Count:
    """COUNT(column): the number of values that are not null."""

    state_type: DataType = BIGINT
    result_type: DataType = BIGINT

    def initial(self) -> int:
        return 0

    def add(self, state: int, value: object) -> int:
        return state if value is None else state + 1

    def undo(self, state: int, value: object) -> int:
        return state if value is None else state - 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def result(self, state: int) -> int:
        return state


class CountRows(Count):
    """COUNT(): the number of rows."""

    def add(self, state: int, value: object = None) -> int:
        return state + 1

    def undo(self, state: int, value: object = None) -> int:
        return state - 1


@aggregates.aggregate(
    "COUNT(value ANY) -> BIGINT",
    "The number of values that are not null; with * or no argument, the number of rows.",
    undoable=True,
)
def count(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Count()


@aggregates.aggregate("COUNT() -> BIGINT", undoable=True)
def count_rows(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return CountRows()


class Sum:
    """SUM; 0 if there are no values."""

    def __init__(self, type_: DataType) -> None:
        self.state_type = self.result_type = type_
        self._plus, self._minus = addition(type_)
        self._zero = zero(type_)

    def initial(self) -> Any:
        return self._zero

    def add(self, state: Any, value: Any) -> Any:
        return state if value is None else self._plus(state, value)

    def undo(self, state: Any, value: Any) -> Any:
        return state if value is None else self._minus(state, value)

    def merge(self, left: Any, right: Any) -> Any:
        return self._plus(left, right)

    def result(self, state: Any) -> Any:
        return state


@aggregates.aggregate("SUM(value DECIMAL) -> DECIMAL", undoable=True)
@aggregates.aggregate("SUM(value DOUBLE) -> DOUBLE", undoable=True)
@aggregates.aggregate("SUM(value BIGINT) -> BIGINT", undoable=True)
@aggregates.aggregate(
    "SUM(value INT) -> INT", "The sum of the values that are not null.", undoable=True
)
def sum_(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Sum(types[0])


class SumList(Sum):
    """SUM_LIST: the sum of all elements of all arrays."""

    def add(self, state: Any, value: Any) -> Any:
        """Adds the elements that are not null."""
        for each in value or ():
            if each is not None:
                state = self._plus(state, each)
        return state

    def undo(self, state: Any, value: Any) -> Any:
        """Subtracts the elements that are not null."""
        for each in value or ():
            if each is not None:
                state = self._minus(state, each)
        return state


@aggregates.aggregate("sum_list(list ARRAY<DOUBLE>) -> DOUBLE", undoable=True)
@aggregates.aggregate("sum_list(list ARRAY<BIGINT>) -> BIGINT", undoable=True)
@aggregates.aggregate(
    "sum_list(list ARRAY<INT>) -> INT", "The sum of all elements of the arrays.", undoable=True
)
def sum_list(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    array = types[0]
    assert isinstance(array, ArrayType), f"{array} is not an array"
    return SumList(array.element)


class Average:
    """AVG; 0.0 if there are no values."""

    result_type: DataType = DOUBLE

    def __init__(self, type_: DataType) -> None:
        self.state_type = StructType((Field("SUM", type_), Field("COUNT", BIGINT)))
        self._plus, self._minus = addition(type_)
        self._zero = zero(type_)

    def initial(self) -> dict[str, Any]:
        return {"SUM": self._zero, "COUNT": 0}

    def add(self, state: dict[str, Any], value: Any) -> dict[str, Any]:
        if value is not None:
            state["SUM"] = self._plus(state["SUM"], value)
            state["COUNT"] += 1
        return state

    def undo(self, state: dict[str, Any], value: Any) -> dict[str, Any]:
        if value is not None:
            state["SUM"] = self._minus(state["SUM"], value)
            state["COUNT"] -= 1
        return state

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {
            "SUM": self._plus(left["SUM"], right["SUM"]),
            "COUNT": left["COUNT"] + right["COUNT"],
        }

    def result(self, state: dict[str, Any]) -> float:
        found = state["COUNT"]
        return float(state["SUM"]) / found if found else 0.0


@aggregates.aggregate("avg(value DOUBLE) -> DOUBLE", undoable=True)
@aggregates.aggregate("avg(value BIGINT) -> DOUBLE", undoable=True)
@aggregates.aggregate(
    "avg(value INT) -> DOUBLE", "The average of the values that are not null.", undoable=True
)
def avg(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Average(types[0])


class Smallest:
    """MIN; null if there are no values."""

    def __init__(self, type_: DataType) -> None:
        self.state_type = self.result_type = type_

    def initial(self) -> Any:
        return None

    def add(self, state: Any, value: Any) -> Any:
        """NaN is kept."""
        if value is None or (state is not None and (state <= value or state != state)):
            return state
        return value

    def merge(self, left: Any, right: Any) -> Any:
        return self.add(left, right)

    def result(self, state: Any) -> Any:
        return state


class Largest(Smallest):
    """MAX; null if there are no values."""

    def add(self, state: Any, value: Any) -> Any:
        """NaN is kept."""
        if value is None or (state is not None and (state >= value or state != state)):
            return state
        return value


class SmallestByKey(Smallest):
    """MIN of values that need a key for Java's order."""

    def __init__(self, type_: DataType, key: Key) -> None:
        super().__init__(type_)
        self._key = key

    def add(self, state: Any, value: Any) -> Any:
        if value is None or (state is not None and self._key(state) <= self._key(value)):
            return state
        return value


class LargestByKey(SmallestByKey):
    """MAX of values that need a key for Java's order."""

    def add(self, state: Any, value: Any) -> Any:
        if value is None or (state is not None and self._key(state) >= self._key(value)):
            return state
        return value


def smallest(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    type_ = types[0]
    return SmallestByKey(type_, key_of(type_)) if type_ in (STRING, BYTES) else Smallest(type_)


def largest(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    type_ = types[0]
    return LargestByKey(type_, key_of(type_)) if type_ in (STRING, BYTES) else Largest(type_)


_COMPARED = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
for _type in _COMPARED:
    aggregates.aggregate(f"MIN(value {_type}) -> {_type}", "The smallest value.")(smallest)
    aggregates.aggregate(f"MAX(value {_type}) -> {_type}", "The largest value.")(largest)
