"""Table functions: they return several rows per row."""

from typing import Any

from sql.datatypes import ArrayType, DataType
from sql.functions.registry import Family

tables = Family("TABLE")

CUBE_COLUMNS_MAX = 20

# Any: the type of elements, T, depends on the call.
Elements = list[Any]


def _element(types: tuple[DataType, ...]) -> DataType:
    array = types[0]
    assert isinstance(array, ArrayType), f"{array} is not an array"
    return array.element


@tables.table(
    "explode(list ARRAY<T>) -> T",
    "Returns a row for each element of an array; none for null and empty arrays.",
)
@tables.table("explode(input ARRAY<DECIMAL>) -> DECIMAL", result_type=_element)
def explode(array: Elements) -> Elements:
    return array


@tables.table(
    "cube_explode(columns ARRAY<T>) -> ARRAY<T>",
    "Returns a row for each distinct combination of the columns with some replaced by null.",
)
def cube_explode(columns: Elements) -> list[Elements]:
    """From all nulls to the original columns; the last column changes first."""
    if len(columns) > CUBE_COLUMNS_MAX:
        raise ValueError(
            f"CUBE_EXPLODE of {len(columns)} columns would return 2^{len(columns)} rows: "
            f"at most {CUBE_COLUMNS_MAX} columns are allowed"
        )
    rows: list[Elements] = [[]]
    for value in columns:
        choices = (None,) if value is None else (None, value)
        rows = [[*row, choice] for row in rows for choice in choices]
    return rows
