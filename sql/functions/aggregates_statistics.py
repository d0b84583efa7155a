"""Aggregates of statistics: STDDEV_SAMPLE, STDDEV_SAMP and CORRELATION."""

from math import nan, sqrt
from typing import Any

from sql.datatypes import BIGINT, DOUBLE, INT, DataType, Field, StructType
from sql.functions.java_arithmetic import addition
from sql.functions.registry import Aggregator, Family, Settings

statistics = Family("AGGREGATE")

Types = tuple[DataType, ...]
Constants = tuple[object, ...]
State = dict[str, Any]  # Any: the fields of a state are numbers of several types


class Variance:
    """STDDEV_SAMP: despite its name the variance, computed by the method of Youngs and Cramer.

    M2 is the sum of the squared differences from the mean; each value adds the square of its
    difference from the expectation by the sum.
    """

    result_type: DataType = DOUBLE

    def __init__(self, type_: DataType) -> None:
        """Integers are summed as BIGINT."""
        sum_type = DOUBLE if type_ is DOUBLE else BIGINT
        self.state_type = StructType(
            (Field("SUM", sum_type), Field("COUNT", INT), Field("M2", DOUBLE))
        )
        self._zero = 0.0 if type_ is DOUBLE else 0
        self._plus, self._minus = addition(sum_type)

    def initial(self) -> State:
        return {"SUM": self._zero, "COUNT": 0, "M2": 0.0}

    def add(self, state: State, value: Any) -> State:
        if value is None:
            return state
        before = state["COUNT"]
        if before:
            difference = float(value * (before + 1) - (state["SUM"] + value))
            state["M2"] += difference * difference / (before * (before + 1))
        state["COUNT"] = before + 1
        state["SUM"] = self._plus(state["SUM"], value)
        return state

    def undo(self, state: State, value: Any) -> State:
        if value is None:
            return state
        left = state["COUNT"] - 1
        state["COUNT"] = left
        state["SUM"] = self._minus(state["SUM"], value)
        if left > 0:
            difference = float(value * (left + 1) - (state["SUM"] + value))
            state["M2"] -= difference * difference / (left * (left + 1))
        else:
            state["M2"] = 0.0
        return state

    def merge(self, left: State, right: State) -> State:
        lefts, rights = left["COUNT"], right["COUNT"]
        squares = left["M2"] + right["M2"]
        if lefts and rights:
            apart = left["SUM"] / lefts - right["SUM"] / rights
            squares += lefts * rights * apart * apart / (lefts + rights)
        return {
            "SUM": self._plus(left["SUM"], right["SUM"]),
            "COUNT": lefts + rights,
            "M2": squares,
        }

    def result(self, state: State) -> float:
        values: int = state["COUNT"]
        squares: float = state["M2"]
        return squares / (values - 1) if values > 1 else 0.0


class Deviation(Variance):
    """STDDEV_SAMPLE: the square root of the variance."""

    def result(self, state: State) -> float:
        # After values were removed, rounding may leave a slightly negative sum.
        return sqrt(max(super().result(state), 0.0))


@statistics.aggregate("stddev_samp(value DOUBLE) -> DOUBLE", undoable=True)
@statistics.aggregate("stddev_samp(value BIGINT) -> DOUBLE", undoable=True)
@statistics.aggregate(
    "stddev_samp(value INT) -> DOUBLE",
    "The variance of a sample; its square root is STDDEV_SAMPLE.",
    undoable=True,
)
def stddev_samp(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Variance(types[0])


@statistics.aggregate("stddev_sample(value DOUBLE) -> DOUBLE", undoable=True)
@statistics.aggregate("stddev_sample(value BIGINT) -> DOUBLE", undoable=True)
@statistics.aggregate(
    "stddev_sample(value INT) -> DOUBLE", "The standard deviation of a sample.", undoable=True
)
def stddev_sample(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Deviation(types[0])


_SUMS = ("X_SUM", "Y_SUM", "X_SQUARED_SUM", "Y_SQUARED_SUM", "XY_SUM")


class Correlation:
    """CORRELATION: Pearson's coefficient of two columns, from sums."""

    state_type: DataType = StructType(
        (*(Field(each, DOUBLE) for each in _SUMS), Field("COUNT", BIGINT))
    )
    result_type: DataType = DOUBLE

    def initial(self) -> State:
        return {**dict.fromkeys(_SUMS, 0.0), "COUNT": 0}

    def add(self, state: State, x: Any, y: Any) -> State:
        if x is not None and y is not None:
            _sum(state, float(x), float(y), 1)
        return state

    def undo(self, state: State, x: Any, y: Any) -> State:
        if x is not None and y is not None:
            _sum(state, float(x), float(y), -1)
        return state

    def merge(self, left: State, right: State) -> State:
        return {name: left[name] + right[name] for name in left}

    def result(self, state: State) -> float:
        """NaN for fewer than two rows, and if a column is constant."""
        x, y, count = state["X_SUM"], state["Y_SUM"], state["COUNT"]
        spread = (count * state["X_SQUARED_SUM"] - x * x) * (count * state["Y_SQUARED_SUM"] - y * y)
        if not spread > 0:
            return nan
        both: float = count * state["XY_SUM"] - x * y
        return both / sqrt(spread)


def _sum(state: State, x: float, y: float, sign: int) -> None:
    state["X_SUM"] += sign * x
    state["Y_SUM"] += sign * y
    state["X_SQUARED_SUM"] += sign * x * x
    state["Y_SQUARED_SUM"] += sign * y * y
    state["XY_SUM"] += sign * x * y
    state["COUNT"] += sign


@statistics.aggregate(
    "correlation(x DOUBLE, y DOUBLE) -> DOUBLE",
    "Pearson's correlation coefficient of two columns: from -1 to 1, or NaN if it is undefined.",
    undoable=True,
)
def correlation(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Correlation()
