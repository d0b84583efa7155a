"""Columns of all types, and functions, for tests of typed expressions."""

from collections.abc import Mapping
from decimal import Decimal

from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.scope import Columns, ScopeColumn
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.expressions import ColumnValue, TypedExpression
from sql.functions.registry import Aggregator, Family, FunctionRegistry
from sql.parse import parse_expression

COLUMNS: dict[str, DataType] = {
    "I": INT,
    "L": BIGINT,
    "D": DOUBLE,
    "N": DecimalType(4, 2),
    "S": STRING,
    "B": BOOLEAN,
    "Y": BYTES,
    "T": TIME,
    "DAY": DATE,
    "TS": TIMESTAMP,
    "A": ArrayType(INT),
    "AA": ArrayType(ArrayType(BIGINT)),
    "M": MapType(STRING, BIGINT),
    "ST": StructType((Field("F", INT), Field("g", STRING))),
    "I2": INT,
    "L2": BIGINT,
    "D2": DOUBLE,
    "N2": DecimalType(5, 1),
    "S2": STRING,
    "B2": BOOLEAN,
    "ROWTIME": BIGINT,
}
INDEXES = {name: index for index, name in enumerate(COLUMNS)}

family = Family("TEST")


@family.scalar("LENGTH(text STRING) -> INT")
def length(text: str) -> int:
    return len(text)


@family.scalar("CONCAT(strings STRING...) -> STRING", nulls=True)
def concat(*texts: str | None) -> str:
    return "".join(each for each in texts if each is not None)


@family.scalar("OR_ELSE(value T, other T) -> T", nulls=True)
def or_else(value: object, other: object) -> object:
    return other if value is None else value


@family.scalar("HALF(number DOUBLE) -> DOUBLE")
def half(number: float) -> float:
    return number / 2


@family.scalar("SAME(number DECIMAL) -> DECIMAL")
def same(number: Decimal) -> Decimal:
    return number


@family.scalar("FAILING(number INT) -> INT")
def failing(number: int) -> int:
    raise ValueError(f"no {number}")


@family.scalar("UNIT(unit INTERVALUNIT, count INT) -> STRING")
def unit(name: str, count: int) -> str:
    return f"{count} {name}"


@family.scalar("EACH(array ARRAY<T>, change LAMBDA<T, R>) -> ARRAY<R>")
def each_of(array: list[object], change: object) -> list[object]:
    assert callable(change)
    return [change(each) for each in array]


@family.scalar("FOLD(array ARRAY<T>, start S, step LAMBDA<S, T, S>) -> S")
def fold(array: list[object], start: object, step: object) -> object:
    assert callable(step)
    for each in array:
        start = step(start, each)
    return start


@family.aggregate("TOTAL(number INT) -> INT")
def total(
    types: tuple[DataType, ...], constants: tuple[object, ...], settings: Mapping[str, object]
) -> Aggregator:
    raise AssertionError("never made")


FUNCTIONS = FunctionRegistry([family])


def analyser() -> ExpressionAnalyser:
    """Knows all columns above as those of X, and the type PLACE."""
    columns = [
        ScopeColumn("X", name, ColumnValue(INDEXES[name], name, type_))
        for name, type_ in COLUMNS.items()
    ]
    return ExpressionAnalyser(Columns(columns), FUNCTIONS, {"PLACE": ArrayType(DOUBLE)})


def typed(text: str) -> TypedExpression:
    """An expression of a text."""
    return analyser().typed(parse_expression(text))
