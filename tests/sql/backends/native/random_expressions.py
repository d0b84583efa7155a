"""Random texts of expressions by type, and random rows for the columns of typing_scope."""

from decimal import Decimal

from hypothesis import strategies as st

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
    MapType,
    StructType,
)
from tests.sql.analyse.typing_scope import COLUMNS

CHARACTERS = "abx%_1 é\ue000😀"
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=4), st.sampled_from(["12", " 7 ", "true", "2024-01-02"])
)
EDGES = [0, 1, -1, 2, 7, 2**31 - 1, -(2**31)]
LONG_EDGES = [*EDGES, 2**63 - 1, -(2**63)]
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.5, -2.5, 1e300, float("nan"), float("inf")]),
    st.floats(-100, 100),
)
PLAIN: dict[DataType, st.SearchStrategy[object]] = {
    INT: st.one_of(st.sampled_from(EDGES), st.integers(-100, 100)),
    BIGINT: st.one_of(st.sampled_from(LONG_EDGES), st.integers(-100, 100)),
    DOUBLE: DOUBLES,
    STRING: TEXTS,
    BOOLEAN: st.booleans(),
    BYTES: st.binary(max_size=3),
    TIME: st.integers(0, 86_399_999),
    DATE: st.integers(-1000, 20_000),
    TIMESTAMP: st.integers(-(10**12), 10**13),
}


def values_of(type_: DataType) -> st.SearchStrategy[object]:
    """Values of a type, null among them."""
    found: st.SearchStrategy[object]
    match type_:
        case DecimalType(precision, scale):
            limit = 10**precision - 1
            found = st.integers(-limit, limit).map(lambda each: Decimal(each).scaleb(-scale))
        case ArrayType(element):
            found = st.lists(values_of(element), max_size=3)
        case MapType(_, value):
            found = st.dictionaries(st.sampled_from(["a", "k"]), values_of(value), max_size=2)
        case StructType(fields):
            found = st.fixed_dictionaries({each.name: values_of(each.type) for each in fields})
        case _:
            found = PLAIN[type_]
    return st.one_of(st.none(), found, found, found)


ROWS = st.tuples(*(values_of(each) for each in COLUMNS.values()))


def quoted(text: str) -> str:
    """A literal of a text."""
    return "'" + text.replace("'", "''") + "'"


def choice(*texts: str) -> st.SearchStrategy[str]:
    """One of some texts."""
    return st.sampled_from(texts)


def joined(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A template with its parts."""
    return st.tuples(*parts).map(lambda found: template.format(*found))


def whole(depth: int) -> st.SearchStrategy[str]:
    """INT or BIGINT."""
    leaf = st.one_of(choice("I", "I2", "L", "L2", "ROWTIME"), st.sampled_from(LONG_EDGES).map(str))
    if not depth:
        return leaf
    part = whole(depth - 1)
    return st.one_of(
        leaf,
        joined("({} {} {})", part, choice("+", "-", "*", "/", "%"), part),
        joined("(- {})", part),
        joined("A[{}]", part),
        joined("ST->F"),
        joined("M[{}]", text(depth - 1)),
        joined("LENGTH({})", text(depth - 1)),
        joined("FAILING(CAST({} AS INT))", part),
        joined("OR_ELSE({}, {})", part, part),
        joined("CAST({} AS {})", any_scalar(depth - 1), choice("INT", "BIGINT")),
        joined("CASE WHEN {} THEN {} ELSE {} END", condition(depth - 1), part, part),
        joined("FOLD(A, {}, (s, x) => s + x * {})", part, part),
        joined("EACH(A, x => x + {})[{}]", part, choice("1", "-1")),
        joined("ARRAY[{}, CAST({} AS INT)][2]", part, text(depth - 1)),
    )


def number(depth: int) -> st.SearchStrategy[str]:
    """A number of any type."""
    leaf = st.one_of(whole(0), choice("D", "D2", "N", "N2", "1.5", "-0.25", "1e1", "0e0", "0.0"))
    if not depth:
        return leaf
    part = number(depth - 1)
    return st.one_of(
        leaf,
        whole(depth),
        joined("({} {} {})", part, choice("+", "-", "*", "/", "%"), part),
        joined("(- {})", part),
        joined("HALF({})", part),
        joined("CAST({} AS {})", part, choice("DOUBLE", "DECIMAL(9, 3)")),
    )


def text(depth: int) -> st.SearchStrategy[str]:
    """STRING."""
    leaf = st.one_of(choice("S", "S2", "ST->`g`"), TEXTS.map(quoted))
    if not depth:
        return leaf
    part = text(depth - 1)
    return st.one_of(
        leaf,
        joined("({} {} {})", part, choice("+", "||"), part),
        joined("CAST({} AS STRING)", any_scalar(depth - 1)),
        joined("CAST({} AS STRING)", choice("A", "M", "ST", "AA", "ARRAY[N, N]", "TS", "DAY", "T")),
        joined("CASE {} WHEN {} THEN {} END", part, part, part),
    )


def condition(depth: int) -> st.SearchStrategy[str]:
    """BOOLEAN."""
    leaf = choice("B", "B2", "TRUE")
    if not depth:
        return leaf
    part, operators = condition(depth - 1), choice("=", "<>", "<", "<=", ">", ">=")
    distinct = choice("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    return st.one_of(
        leaf,
        joined("({} {} {})", number(depth - 1), st.one_of(operators, distinct), number(depth - 1)),
        joined("({} {} {})", text(depth - 1), st.one_of(operators, distinct), text(depth - 1)),
        joined("({} {} {})", choice("DAY", "TS"), operators, st.one_of(text(0), choice("DAY"))),
        joined("(Y {} Y)", operators),
        joined("({} {} {})", part, distinct, part),
        joined("(A {} EACH(A, x => x * 1))", distinct),
        joined("({} AND {} AND {})", part, part, part),
        joined("({} OR {})", part, part),
        joined("(NOT {})", part),
        joined("({} IS NULL)", any_scalar(depth - 1)),
        joined("({} IS NOT NULL)", any_scalar(depth - 1)),
        joined("({} BETWEEN {} AND {})", number(depth - 1), number(depth - 1), number(depth - 1)),
        joined("({} NOT BETWEEN {} AND {})", text(depth - 1), text(0), text(0)),
        joined("({} IN ({}, 7, NULL, {}))", whole(depth - 1), whole(depth - 1), whole(0)),
        joined("({} IN ('a', '12'))", text(depth - 1)),
        joined("({} LIKE {})", text(depth - 1), text(0)),
        joined("({} NOT LIKE {} ESCAPE 'x')", text(0), text(0)),
    )


def any_scalar(depth: int) -> st.SearchStrategy[str]:
    """A number or a text."""
    return st.one_of(number(depth), text(depth))


def expressions(depth: int = 3) -> st.SearchStrategy[str]:
    """An expression of any type."""
    return st.one_of(
        number(depth),
        text(depth),
        condition(depth),
        joined("ARRAY[{}, {}]", number(depth - 1), number(depth - 1)),
        joined("STRUCT(a := {}, b := {})", any_scalar(depth - 1), any_scalar(depth - 1)),
        joined("MAP({} := {})", text(depth - 1), whole(depth - 1)),
    )
