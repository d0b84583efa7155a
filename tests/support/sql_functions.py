"""Functions that only cases call: they show how overloads are chosen and what errors become."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from broker.schema.java_numbers import double_text
from sql.datatypes import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    StructType,
)
from sql.errors import StatementFailed
from sql.functions.registry import Aggregator, Family, Settings

scalars = Family("TEST SCALARS")
tables = Family("TEST TABLES")
aggregates = Family("TEST AGGREGATES")

A_STRUCT = StructType((Field("A", STRING),))
SEVEN = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT<A STRING>")
Types = tuple[DataType, ...]
Constants = tuple[object, ...]

_calls = 0


def before_case() -> None:
    """Functions with a memory forget."""
    global _calls
    _calls = 0


# ---- scalars


@scalars.scalar("test_udf(number INT, text STRING) -> STRING", nulls=True)
def int_and_text(number: int, text: str) -> str:
    """Says which overload it is."""
    return "doStuffIntString"


@scalars.scalar("test_udf(number BIGINT, text STRING) -> STRING", nulls=True)
def long_and_text(number: int, text: str) -> str:
    """Says which overload it is."""
    return "doStuffLongString"


@scalars.scalar("test_udf(first BIGINT, second BIGINT, text STRING) -> STRING", nulls=True)
def two_longs_and_text(first: int, second: int, text: str) -> str:
    """Says which overload it is."""
    return "doStuffLongLongString"


@scalars.scalar("test_udf(numbers BIGINT...) -> STRING", nulls=True)
def longs(*numbers: int) -> str:
    """Says which overload it is."""
    return "doStuffLongVarargs"


@scalars.scalar("test_udf(struct STRUCT<A STRING>) -> STRING")
def field_of_struct(struct: dict[str, str]) -> str:
    """The field A."""
    return struct["A"]


@scalars.scalar("test_udf() -> STRUCT<A STRING>")
def made_struct() -> dict[str, str]:
    """A struct."""
    return {"A": "foo"}


@scalars.scalar("ToStruct(text STRING) -> STRUCT<A STRING>")
def to_struct(text: str) -> dict[str, str]:
    """A struct around a text."""
    return {"A": text}


@scalars.scalar("bad_udf(number INT) -> STRING")
def always_raises(number: int) -> str:
    """Raises."""
    raise ValueError("boom!")


@scalars.scalar("bad_udf(flag BOOLEAN) -> INT")
def raises_if(flag: bool) -> int:
    """Raises if it is told to."""
    if flag:
        raise ValueError("You asked me to throw...")
    return 0


@scalars.scalar("bad_udf(text STRING) -> STRING", volatile=True)
def every_other(text: str) -> str | None:
    """Null at the first call and every other one after it."""
    global _calls
    _calls += 1
    return None if _calls % 2 else text


@scalars.scalar("WhenCondition(result BOOLEAN, evaluated BOOLEAN) -> BOOLEAN")
def when_condition(result: bool, evaluated: bool) -> bool:
    """Raises if it should not have been evaluated."""
    if not evaluated:
        raise ValueError("When condition in case is not running lazily!")
    return result


@scalars.scalar("WhenResult(result INT, evaluated BOOLEAN) -> INT")
def when_result(result: int, evaluated: bool) -> int:
    """Raises if it should not have been evaluated."""
    if not evaluated:
        raise ValueError("Then expression in case is not running lazily!")
    return result


# ---- table functions


def java_text(value: object) -> str:
    """A value as Java prints it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return double_text(value)
        case dict():
            return "Struct{" + ",".join(f"{k}={java_text(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


def _parameters(pattern: str) -> str:
    return ", ".join(f"v{n} {pattern.format(each)}" for n, each in enumerate(SEVEN))


@tables.table(f"test_udtf({_parameters('{}')}) -> STRING")
def each_value(*values: object) -> list[str]:
    """Each argument as text."""
    return [java_text(each) for each in values]


@tables.table(f"test_udtf({_parameters('ARRAY<{}>')}) -> STRING")
def each_first_element(*values: list[object]) -> list[str]:
    """The first element of each argument as text."""
    return [java_text(each[0]) for each in values]


@tables.table(f"test_udtf({_parameters('MAP<STRING, {}>')}) -> STRING")
def each_first_entry(*values: dict[str, object]) -> list[str]:
    """The first value of each argument as text."""
    return [java_text(next(iter(each.values()))) for each in values]


def _same(value: object) -> list[object]:
    return [value]


for _name in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "STRUCT<A STRING>"):
    tables.table(f"test_udtf(value {_name}) -> {_name}")(_same)


@tables.table("test_udtf(value DECIMAL) -> DECIMAL", result_type=lambda types: DecimalType(30, 10))
def same_decimal(value: Decimal) -> list[Decimal]:
    """The argument."""
    return [value]


@tables.table("throwing_udtf(flag BOOLEAN) -> BOOLEAN")
def raising_rows(flag: bool) -> list[bool]:
    """Raises if it is told to."""
    if flag:
        raise ValueError("You asked me to throw...")
    return [flag]


# ---- aggregates


# Any: states and values have the types that the signatures name.
class Folding:
    """An aggregator of functions."""

    def __init__(
        self,
        state_type: DataType,
        initial: Callable[[], Any],
        add: Callable[..., Any],
        merge: Callable[[Any, Any], Any] = lambda left, right: left + right,
        result: Callable[[Any], Any] = lambda state: state,
    ) -> None:
        """States are results, unless `result` makes something else of them."""
        self.state_type = self.result_type = state_type
        self.initial, self.add, self.merge, self.result = initial, add, merge, result


class Summing(Folding):
    """A sum that rows can be taken back from."""

    def undo(self, state: Any, value: Any) -> Any:
        """Without the value."""
        return state - (value or 0)


def _plus(state: Any, value: Any) -> Any:
    return state + (value or 0)


def _length(text: object) -> int:
    return 0 if text is None else len(str(text))


@aggregates.aggregate("TEST_UDAF(value BIGINT) -> BIGINT", undoable=True)
@aggregates.aggregate("TEST_UDAF(value INT) -> BIGINT", undoable=True)
def sum_of_whole_numbers(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """A sum; of INTs from where the settings say."""
    start = settings.get("ksql.functions.test_udaf.init", 0) if types[0] is INT else 0
    return Summing(BIGINT, lambda: int(str(start)), _plus)


@aggregates.aggregate("TEST_UDAF(value DOUBLE) -> DOUBLE")
def sum_of_doubles(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """A sum."""
    return Folding(DOUBLE, lambda: 0.0, _plus)


@aggregates.aggregate("TEST_UDAF(value T) -> T")
def sum_of_others(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """A sum of any number; nothing else."""
    if not isinstance(types[0], DecimalType):
        raise StatementFailed(f"Function 'test_udaf' does not accept parameters ({types[0]}).")
    return Folding(types[0], lambda: Decimal(0), _plus)


@aggregates.aggregate("TEST_UDAF(value STRING, init STRING) -> BIGINT", constants=1)
def sum_of_lengths(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """The lengths of all texts, and of the first."""
    start = _length(constants[0])
    return Folding(BIGINT, lambda: start, lambda state, text: state + _length(text))


@aggregates.aggregate("TEST_UDAF(value STRUCT<A INT, B INT>) -> STRUCT<A INT, B INT>")
def sum_of_structs(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """Sums by field."""

    def add(state: dict[str, int], value: dict[str, int]) -> dict[str, int]:
        return {name: state[name] + value[name] for name in ("A", "B")}

    return Folding(types[0], lambda: {"A": 0, "B": 0}, add, add)


def _number_and_texts(state: int, number: int | None, *others: object) -> int:
    more = sum(each if isinstance(each, int) else _length(each) for each in others)
    return state + (number or 0) + more


@aggregates.aggregate("VAR_ARG(number BIGINT, texts STRING...) -> BIGINT")
def var_arg(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """The number and the lengths of all texts."""
    return Folding(BIGINT, lambda: 0, _number_and_texts)


@aggregates.aggregate(
    "MID_VAR_ARG(number BIGINT, texts STRING..., first INT, second INT) -> BIGINT", constants=2
)
def mid_var_arg(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """The same; the result has two constants more."""
    more = sum(int(str(each)) for each in constants)
    return Folding(BIGINT, lambda: 0, _number_and_texts, result=lambda state: state + more)


@aggregates.aggregate(
    "MULTI_ARG(number BIGINT, text STRING, init INT, more STRING...) -> BIGINT", constants=2
)
@aggregates.aggregate(
    "FOUR_ARG(number BIGINT, a STRING, b STRING, c STRING, init INT, more STRING...) -> BIGINT",
    constants=2,
)
@aggregates.aggregate(
    "FIVE_ARG(number BIGINT, a STRING, b STRING, c STRING, d INT, init INT, more STRING...)"
    " -> BIGINT",
    constants=2,
)
def started(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """Numbers and lengths of texts, from a number and lengths of texts on."""
    start = int(str(constants[0])) + sum(map(_length, constants[1:]))
    return Folding(BIGINT, lambda: start, _number_and_texts)


def _listing(element: DataType) -> Aggregator:
    def add(state: list[object], first: object, *others: object) -> list[object]:
        return state if first is None or None in others else [*state, first]

    return Folding(ArrayType(element), list, add)


@aggregates.aggregate("OBJ_COL_ARG(number INT, others ANY...) -> ARRAY<INT>")
def obj_col_arg(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """The numbers of rows without nulls."""
    return _listing(INT)


@aggregates.aggregate("GENERIC_VAR_ARG(first A, second B, others C...) -> ARRAY<A>")
def generic_var_arg(types: Types, constants: Constants, settings: Settings) -> Aggregator:
    """The first values of rows without nulls."""
    return _listing(types[0])
