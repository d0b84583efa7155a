"""Whatever expression can be read is refused with an error of SQL, or has values of its type."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.scope import Columns, ScopeColumn
from sql.backends.native.expressions import compile_row_function
from sql.datatypes import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.errors import SqlError
from sql.expressions import ColumnValue
from sql.functions.builtin import builtin_functions
from sql.syntax import expressions as ex
from tests.sql.analyse.typing_scope import COLUMNS, INDEXES
from tests.sql.backends.native.random_expressions import ROWS
from tests.support import sql_trees

FUNCTIONS = builtin_functions()
SCALARS = sorted(each.name for each in FUNCTIONS)
PYTHON_TYPES: dict[DataType, type] = {BOOLEAN: bool, DOUBLE: float, STRING: str, BYTES: bytes}

columns = st.sampled_from(sorted(COLUMNS)).map(ex.Name)


def larger(inner: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
    """All that syntax can be made of, and calls of functions that exist."""
    arguments = st.lists(inner, max_size=3).map(tuple)
    return sql_trees._larger(inner) | st.builds(ex.Call, st.sampled_from(SCALARS), arguments)


EXPRESSIONS = st.recursive(columns | sql_trees.literals, larger, max_leaves=6)


def check(value: object, type_: DataType) -> None:
    """The value is None or one of the type."""
    if value is None:
        return
    match type_:
        case DecimalType(scale=scale):
            assert isinstance(value, Decimal)
            assert value.as_tuple().exponent == -scale
        case ArrayType(element):
            assert isinstance(value, list)
            for each in value:
                check(each, element)
        case MapType(key_type, value_type):
            assert isinstance(value, dict)
            for key, each in value.items():
                check(key, key_type)
                check(each, value_type)
        case StructType(fields):
            assert isinstance(value, dict)
            assert value.keys() == {each.name for each in fields}
            for field in fields:
                check(value[field.name], field.type)
        case _:
            assert type(value) is PYTHON_TYPES.get(type_, int)


@pytest.mark.slow
@given(EXPRESSIONS, ROWS)
def test_values_have_the_types_of_their_expressions(
    expression: ex.Expression, row: tuple[object, ...]
) -> None:
    scope = Columns(
        ScopeColumn("X", name, ColumnValue(INDEXES[name], name, type_))
        for name, type_ in COLUMNS.items()
    )
    try:
        typed = ExpressionAnalyser(scope, FUNCTIONS).select_item(expression)
        compute = compile_row_function([typed], lambda error, row: None)
    except SqlError:
        return
    (value,) = compute(row)
    assert typed.type is not None
    check(value, typed.type)
