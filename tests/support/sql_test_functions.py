"""User-defined functions for test cases."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from broker.java.number_text import double_text
from sql.datatypes import BIGINT, DOUBLE, INT, DataType
from sql.errors import StatementFailed
from sql.functions.aggregates import Sum
from sql.functions.registry import Aggregator, Family, Settings
from sql.functions.user import family_of, udaf, udf, udtf

# Any: states and values have the types of the signatures.
Struct = dict[str, Any]


def _sum(
    types: tuple[DataType, ...], constants: tuple[object, ...], settings: Settings
) -> Aggregator:
    if types[0] not in (INT, BIGINT, DOUBLE):
        raise StatementFailed(f"test_udaf sums no {types[0]}")
    return _SummingFrom(types[0], settings.get("ksql.functions.test_udaf.init", 0))


class _SummingFrom(Sum):
    """Sums INT as BIGINT, with an optional initial value."""

    def __init__(self, type_: DataType, start: object) -> None:
        super().__init__(DOUBLE if type_ is DOUBLE else BIGINT)
        self._start = int(str(start)) if type_ is INT else super().initial()

    def initial(self) -> Any:
        return self._start


@udf("test_udf(number INT, text STRING) -> STRING", nulls=True)
def int_and_text(number: int, text: str) -> str:
    return "doStuffIntString"


@udf("test_udf(number BIGINT, text STRING) -> STRING", nulls=True)
def long_and_text(number: int, text: str) -> str:
    return "doStuffLongString"


@udf("test_udf(first BIGINT, second BIGINT, text STRING) -> STRING", nulls=True)
def two_longs_and_text(first: int, second: int, text: str) -> str:
    return "doStuffLongLongString"


@udf("test_udf(numbers BIGINT...) -> STRING", nulls=True)
def longs(*numbers: int) -> str:
    return "doStuffLongVarargs"


@udf("test_udf(struct STRUCT<A STRING>) -> STRING")
def field_of_struct(struct: Struct) -> object:
    return struct["A"]


@udf("test_udf() -> STRUCT<A STRING>")
def some_struct() -> Struct:
    return {"A": "foo"}


@udf("tostruct(value STRING) -> STRUCT<A STRING>", nulls=True)
def tostruct(value: str) -> Struct:
    return {"A": value}


@udf("bad_udf(number INT) -> STRING", nulls=True)
def always_bad(number: int) -> str:
    raise RuntimeError("boom!")


@udf("bad_udf(bad BOOLEAN) -> INT", nulls=True)
def bad_if_true(bad: bool) -> int:
    if bad:
        raise RuntimeError("You asked me to throw...")
    return 0


_calls = 0


def before_case() -> None:
    """Reset the function that has state."""
    global _calls
    _calls = 0


@udf("bad_udf(text STRING) -> STRING", nulls=True)
def every_other(text: str) -> str | None:
    """Return null and the argument alternately, null first."""
    global _calls
    _calls += 1
    return None if _calls % 2 else text


@udf("whencondition(ret BOOLEAN, should_be_evaluated BOOLEAN) -> BOOLEAN", nulls=True)
def when_condition(ret: bool, should_be_evaluated: bool) -> bool:
    assert should_be_evaluated, "the condition should not have been evaluated"
    return ret


@udf("whenresult(ret INT, should_be_evaluated BOOLEAN) -> INT", nulls=True)
def when_result(ret: int, should_be_evaluated: bool) -> int:
    assert should_be_evaluated, "the result should not have been evaluated"
    return ret


_TYPES = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT<A STRING>")


def java_text(value: object) -> str | None:
    """Java's String.valueOf, except that null is returned as null."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Decimal():
            return str(value)
        case dict():
            fields = ",".join(f"{name}={java_text(each)}" for name, each in value.items())
            return f"Struct{{{fields}}}"
        case _:
            return str(value)


def texts_of_all() -> list[Callable[..., object]]:
    """TEST_UDTF with seven arguments: one row per argument, as a string."""

    def signature(wrapped: str) -> str:
        names = enumerate(_TYPES)
        parameters = ", ".join(f"value{n} {wrapped.format(each)}" for n, each in names)
        return f"test_udtf({parameters}) -> STRING"

    @udtf(signature("{}"))
    def of_values(*values: object) -> list[object]:
        return list(map(java_text, values))

    @udtf(signature("ARRAY<{}>"))
    def of_arrays(*values: list[object]) -> list[object]:
        return [java_text(each[0]) for each in values]

    @udtf(signature("MAP<STRING, {}>"))
    def of_maps(*values: dict[str, object]) -> list[object]:
        return [java_text(next(iter(each.values()))) for each in values]

    return [of_values, of_arrays, of_maps]


def same_rows() -> list[Callable[..., object]]:
    """TEST_UDTF with one argument, which is the only row."""

    def declared(type_: str) -> Callable[..., object]:
        result = "DECIMAL(30, 10)" if type_ == "DECIMAL" else type_

        @udtf(f"test_udtf(value {type_}) -> {result}")
        def same(value: object) -> list[object]:
            return [value]

        return same

    return [declared(each) for each in _TYPES]


@udtf("throwing_udtf(should_throw BOOLEAN) -> BOOLEAN")
def throwing_udtf(should_throw: bool) -> list[bool]:
    if should_throw:
        raise RuntimeError("You asked me to throw...")
    return [should_throw]


class _LongState:
    """Aggregates with sums of numbers and lengths as their states."""

    def __init__(self, start: int = 0, *texts: str) -> None:
        self.start = start + sum(map(len, texts))

    def initial(self) -> int:
        return self.start

    def add(self, state: int, *values: int | str | None) -> int:
        return state + sum(len(each) if isinstance(each, str) else each or 0 for each in values)

    def merge(self, left: int, right: int) -> int:
        return left + right


@udaf("test_udaf(text STRING, init STRING) -> BIGINT", state="BIGINT", constants=1)
class TextLengths(_LongState):
    def __init__(self, init: str) -> None:
        super().__init__(len(init))


@udaf(
    "test_udaf(struct STRUCT<A INT, B INT>) -> STRUCT<A INT, B INT>", state="STRUCT<A INT, B INT>"
)
class StructSums:
    def initial(self) -> Struct:
        return {"A": 0, "B": 0}

    def add(self, state: Struct, struct: Struct) -> Struct:
        return self.merge(state, struct)

    def merge(self, left: Struct, right: Struct) -> Struct:
        return {name: left[name] + right[name] for name in left}


@udaf("VAR_ARG(number BIGINT, texts STRING...) -> BIGINT", state="BIGINT")
class VarArg(_LongState):
    pass


@udaf(
    "MID_VAR_ARG(number BIGINT, texts STRING..., a INT, b INT) -> BIGINT",
    state="BIGINT",
    constants=2,
)
class MidVarArg(_LongState):
    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.more = a + b

    def result(self, state: int) -> int:
        return state + self.more


@udaf(
    "MULTI_ARG(number BIGINT, text STRING, init INT, texts STRING...) -> BIGINT",
    state="BIGINT",
    constants=2,
)
class MultiArg(_LongState):
    pass


@udaf(
    "FOUR_ARG(number BIGINT, a STRING, b STRING, c STRING, init INT, texts STRING...) -> BIGINT",
    state="BIGINT",
    constants=2,
)
class FourArg(_LongState):
    pass


@udaf(
    "FIVE_ARG(number BIGINT, a STRING, b STRING, c STRING, d INT, init INT, texts STRING...)"
    " -> BIGINT",
    state="BIGINT",
    constants=2,
)
class FiveArg(_LongState):
    pass


class _FirstArguments:
    """Collects the first argument of rows without nulls."""

    def initial(self) -> list[object]:
        return []

    def add(self, state: list[object], *values: object) -> list[object]:
        return state if None in values else [*state, values[0]]

    def merge(self, left: list[object], right: list[object]) -> list[object]:
        return left + right


@udaf("OBJ_COL_ARG(number INT, others ANY...) -> ARRAY<INT>", state="ARRAY<INT>")
class ObjColArg(_FirstArguments):
    pass


@udaf("GENERIC_VAR_ARG(first A, second B, others C...) -> ARRAY<A>", state="ARRAY<A>")
class GenericVarArg(_FirstArguments):
    pass


def _all() -> Family:
    family = family_of(
        *(int_and_text, long_and_text, two_longs_and_text, longs, field_of_struct, some_struct),
        *(tostruct, always_bad, bad_if_true, every_other),
        *(when_condition, when_result, *texts_of_all(), *same_rows(), throwing_udtf),
        *(TextLengths, StructSums, VarArg, MidVarArg, MultiArg, FourArg, FiveArg),
        *(ObjColArg, GenericVarArg),
    )
    for signature in ("test_udaf(value BIGINT) -> BIGINT", "test_udaf(value INT) -> BIGINT"):
        family.aggregate(signature, undoable=True)(_sum)
    family.aggregate("test_udaf(value DOUBLE) -> DOUBLE")(_sum)
    family.aggregate("test_udaf(value T) -> T")(_sum)
    return family


CASE_FUNCTIONS = _all()
