"""Hypothesis strategies of column types, of their values, and of rows."""

import string
from collections.abc import Sequence
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
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)

DAY_MS = 24 * 60 * 60 * 1000
# The years 1 to 9999, which every format can write.
DATES = (-719_162, 2_932_896)
TIMESTAMPS = (DATES[0] * DAY_MS, (DATES[1] + 1) * DAY_MS - 1)

PLAIN_NAMES = st.builds(
    str.__add__,
    st.sampled_from(string.ascii_uppercase),
    st.text(string.ascii_uppercase + string.digits + "_", max_size=6),
)

PRIMITIVE_VALUES: dict[Primitive, st.SearchStrategy[object]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: st.text(max_size=12),
    BYTES: st.binary(max_size=12),
    TIME: st.integers(0, DAY_MS - 1),
    DATE: st.integers(*DATES),
    TIMESTAMP: st.integers(*TIMESTAMPS),
}


@st.composite
def decimal_types(draw: st.DrawFn, precision_max: int = 40) -> DecimalType:
    """DECIMAL of any precision and scale up to a maximum."""
    precision = draw(st.integers(1, precision_max))
    return DecimalType(precision, draw(st.integers(0, precision)))


def scalar_types() -> st.SearchStrategy[DataType]:
    """Scalar types."""
    return st.one_of(st.sampled_from(Primitive), decimal_types())


def data_types(
    names: st.SearchStrategy[str] = PLAIN_NAMES,
    scalars: st.SearchStrategy[DataType] | None = None,
    map_keys: st.SearchStrategy[DataType] | None = None,
) -> st.SearchStrategy[DataType]:
    """Types of every kind; maps have STRING keys by default, because most formats require it."""
    keys = st.just(STRING) if map_keys is None else map_keys

    def compound(parts: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.lists(
            st.builds(Field, names, parts), min_size=1, max_size=3, unique_by=_without_case
        )
        return st.one_of(
            st.builds(ArrayType, parts),
            st.builds(MapType, keys, parts),
            st.builds(StructType, fields.map(tuple)),
        )

    return st.recursive(scalar_types() if scalars is None else scalars, compound, max_leaves=4)


def values_of(data_type: DataType) -> st.SearchStrategy[object]:
    """Values of a type, including null."""
    return st.none() | present_values_of(data_type)


def present_values_of(data_type: DataType) -> st.SearchStrategy[object]:
    """Values of a type without null; elements and fields may be null."""
    match data_type:
        case Primitive():
            return PRIMITIVE_VALUES[data_type]
        case DecimalType(precision, scale):
            return st.integers(-(10**precision) + 1, 10**precision - 1).map(
                lambda number: with_scale(number, scale)
            )
        case ArrayType(element):
            return st.lists(values_of(element), max_size=3)
        case MapType(key, value):
            return st.dictionaries(present_values_of(key), values_of(value), max_size=3)
        case StructType(fields):
            return st.fixed_dictionaries({each.name: values_of(each.type) for each in fields})


def with_scale(number: int, scale: int) -> Decimal:
    """The decimal with the digits of a whole number, `scale` of them after the point."""
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((int(number < 0), digits, -scale))


def columns(
    types: st.SearchStrategy[DataType] | None = None,
    names: st.SearchStrategy[str] = PLAIN_NAMES,
    *,
    count_min: int = 1,
    count_max: int = 5,
) -> st.SearchStrategy[tuple[Column, ...]]:
    """Columns with names that are unique without regard to case."""
    one = st.builds(Column, names, data_types() if types is None else types)
    return st.lists(one, min_size=count_min, max_size=count_max, unique_by=_without_case).map(tuple)


def rows_of(given: Sequence[Column]) -> st.SearchStrategy[tuple[object, ...]]:
    """Rows of these columns, with some nulls."""
    return st.tuples(*(values_of(each.type) for each in given))


def columns_and_rows(
    given: st.SearchStrategy[tuple[Column, ...]] | None = None,
) -> st.SearchStrategy[tuple[tuple[Column, ...], tuple[object, ...]]]:
    """Columns, and a row of them."""
    made = columns() if given is None else given
    return made.flatmap(lambda each: st.tuples(st.just(each), rows_of(each)))


def _without_case(named: Column | Field) -> str:
    return named.name.upper()


def exactly(value: object) -> object:
    """A form that is equal only for equal types and digits; dicts have no order."""
    match value:
        case tuple() | list():
            return type(value), [exactly(each) for each in value]
        case dict():
            return {key: exactly(each) for key, each in value.items()}
        case Decimal():
            return value.as_tuple()
        case _:
            return type(value), repr(value)
