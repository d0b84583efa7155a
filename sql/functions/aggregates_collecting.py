"""Aggregates that collect: COLLECT_LIST, COLLECT_SET, HISTOGRAM, ATTR, TOPK and TOPKDISTINCT."""

from typing import Any

from sql.datatypes import BIGINT, INT, STRING, ArrayType, DataType, Field, MapType, StructType
from sql.errors import StatementFailed
from sql.functions.ordering import equal, holds, key_of
from sql.functions.registry import Aggregator, Family, Settings

collecting = Family("AGGREGATE")

HISTOGRAM_KEYS_MAX = 1000
_NO_LIMIT = 2**31 - 1

Types = tuple[DataType, ...]
Constants = tuple[object, ...]
# Any: values of the column's type.
Values = list[Any]


def limit_of(function: str, settings: Settings) -> int:
    """The maximum number of values that a function collects; a negative limit means none."""
    name = f"ksql.functions.{function.lower()}.limit"
    given = settings.get(name)
    if given is None:
        return _NO_LIMIT
    try:
        limit = int(str(given))
    except ValueError:
        raise StatementFailed(f'{name} is "{given}", which is not an integer') from None
    return limit if limit >= 0 else _NO_LIMIT


class CollectList:
    """COLLECT_LIST: all values including nulls, up to a limit."""

    def __init__(self, type_: DataType, limit: int) -> None:
        self.state_type: DataType = ArrayType(type_)
        self.result_type: DataType = self.state_type
        self._limit = limit

    def initial(self) -> Values:
        return []

    def add(self, state: Values, value: Any) -> Values:
        if len(state) < self._limit:
            state.append(value)
        return state

    def undo(self, state: Values, value: Any) -> Values:
        """Remove the last equal value; one beyond the limit is not in the list."""
        for index in range(len(state) - 1, -1, -1):
            if equal(state[index], value):
                del state[index]
                break
        return state

    def merge(self, left: Values, right: Values) -> Values:
        """The left values, then the right ones, up to the limit."""
        return (left + right)[: self._limit]

    def result(self, state: Values) -> Values:
        return state.copy()


@collecting.aggregate(
    "collect_list(value T) -> ARRAY<T>",
    "All values, including nulls. ksql.functions.collect_list.limit limits their number.",
    undoable=True,
)
def collect_list(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return CollectList(types[0], limit_of("collect_list", settings))


class CollectSet:
    """COLLECT_SET: each distinct value including null, up to a limit."""

    def __init__(self, type_: DataType, limit: int) -> None:
        self.state_type: DataType = ArrayType(type_)
        self.result_type: DataType = self.state_type
        self._limit = limit

    def initial(self) -> Values:
        return []

    def add(self, state: Values, value: Any) -> Values:
        """Append the value if it is new and there is room."""
        if len(state) < self._limit and not holds(state, value):
            state.append(value)
        return state

    def merge(self, left: Values, right: Values) -> Values:
        """The left values, then new ones of the right."""
        merged = left.copy()
        for each in right:
            self.add(merged, each)
        return merged

    def result(self, state: Values) -> Values:
        return state.copy()


@collecting.aggregate(
    "collect_set(value T) -> ARRAY<T>",
    "Each distinct value once. ksql.functions.collect_set.limit limits their number.",
)
def collect_set(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return CollectSet(types[0], limit_of("collect_set", settings))


class Histogram:
    """HISTOGRAM: how often each string occurs; strings beyond the limit are not counted."""

    state_type: DataType = MapType(STRING, BIGINT)
    result_type: DataType = state_type

    def initial(self) -> dict[str, int]:
        return {}

    def add(self, state: dict[str, int], value: str | None) -> dict[str, int]:
        """Count a string that is not null."""
        if value is not None and (value in state or len(state) < HISTOGRAM_KEYS_MAX):
            state[value] = state.get(value, 0) + 1
        return state

    def undo(self, state: dict[str, int], value: str | None) -> dict[str, int]:
        """Remove a string, if it was counted."""
        if value in state:
            state[value] -= 1
            if state[value] < 1:
                del state[value]
        return state

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        merged = left.copy()
        for value, occurrences in right.items():
            if value in merged or len(merged) < HISTOGRAM_KEYS_MAX:
                merged[value] = merged.get(value, 0) + occurrences
        return merged

    def result(self, state: dict[str, int]) -> dict[str, int]:
        return state.copy()


@collecting.aggregate(
    "histogram(value STRING) -> MAP<STRING, BIGINT>",
    f"How often each string occurs, for the first {HISTOGRAM_KEYS_MAX} distinct strings.",
    undoable=True,
)
def histogram(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return Histogram()


class OnlyValue:
    """ATTR: the common value of all rows, or null if they differ.

    Usually there is one value, so the state is a list of the distinct values with their counts.
    """

    def __init__(self, type_: DataType) -> None:
        self.result_type = type_
        self.state_type = ArrayType(StructType((Field("VALUE", type_), Field("COUNT", INT))))

    def initial(self) -> Values:
        return []

    def add(self, state: Values, value: Any) -> Values:
        return self._change(state, value, 1)

    def undo(self, state: Values, value: Any) -> Values:
        return self._change(state, value, -1)

    def merge(self, left: Values, right: Values) -> Values:
        merged = [each.copy() for each in left]
        for each in right:
            self._change(merged, each["VALUE"], each["COUNT"])
        return merged

    def result(self, state: Values) -> Any:
        """Null unless there is exactly one value."""
        return state[0]["VALUE"] if len(state) == 1 else None

    def _change(self, state: Values, value: Any, difference: int) -> Values:
        for index, each in enumerate(state):
            if equal(each["VALUE"], value):
                each["COUNT"] += difference
                if each["COUNT"] < 1:
                    del state[index]
                return state
        if difference > 0:
            state.append({"VALUE": value, "COUNT": difference})
        return state


@collecting.aggregate(
    "ATTR(value T) -> T", "The value that all rows have in common, or null.", undoable=True
)
def attr(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return OnlyValue(types[0])


def _size(function: str, constants: Constants) -> int:
    size = constants[-1]
    if not isinstance(size, int) or size < 1:
        raise StatementFailed(
            f"the number of values for {function} must be 1 or greater, not {size}"
        )
    return size


class Top:
    """TOPK: the largest values in descending order."""

    def __init__(self, type_: DataType, size: int) -> None:
        self.state_type: DataType = ArrayType(type_)
        self.result_type: DataType = self.state_type
        self._size = size
        self._key = key_of(type_)

    def initial(self) -> Values:
        return []

    def add(self, state: Values, value: Any) -> Values:
        """Insert a value that is not null and large enough."""
        if value is None:
            return state
        if len(state) < self._size:
            state.append(value)
        elif self._key(value) > self._key(state[-1]):
            state[-1] = value
        else:
            return state
        state.sort(key=self._key, reverse=True)
        return state

    def merge(self, left: Values, right: Values) -> Values:
        return sorted(left + right, key=self._key, reverse=True)[: self._size]

    def result(self, state: Values) -> Values:
        return state.copy()


class TopRows(Top):
    """TOPK with more columns: the rows with the largest values, as structs."""

    def __init__(self, types: Types, size: int) -> None:
        """The first column is compared."""
        names = ("sort_col", *(f"col{n}" for n in range(len(types) - 1)))
        fields = tuple(map(Field, names, types))
        super().__init__(StructType(fields), size)
        self._names = names
        compared = key_of(types[0])
        self._key = lambda row: compared(row["sort_col"])

    def add(self, state: Values, *values: Any) -> Values:
        """Insert a row whose compared value is not null and large enough."""
        if values[0] is None:
            return state
        return super().add(state, dict(zip(self._names, values, strict=True)))


def topk(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    size = _size("TOPK", constants)
    columns = types[: len(types) - 1]
    return Top(columns[0], size) if len(columns) == 1 else TopRows(columns, size)


class TopDistinct(Top):
    """TOPKDISTINCT: the largest distinct values in descending order."""

    def add(self, state: Values, value: Any) -> Values:
        return state if holds(state, value) else super().add(state, value)

    def merge(self, left: Values, right: Values) -> Values:
        return super().merge(left, [each for each in right if not holds(left, each)])


def topkdistinct(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    return TopDistinct(types[0], _size("TOPKDISTINCT", constants))


for _type in ("INT", "BIGINT", "DOUBLE", "STRING"):
    collecting.aggregate(
        f"TOPK(value {_type}, k INT) -> ARRAY<{_type}>",
        "The k largest values; with more columns, structs of the value (sort_col) and them.",
        constants=1,
    )(topk)
    collecting.aggregate(f"TOPK(value {_type}, others ANY..., k INT) -> ARRAY<ANY>", constants=1)(
        topk
    )
_COMPARED = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
for _type in _COMPARED:
    collecting.aggregate(
        f"TOPKDISTINCT(value {_type}, k INT) -> ARRAY<{_type}>",
        "The k largest distinct values.",
        constants=1,
    )(topkdistinct)
