"""Table functions."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import StatementFailed
from tests.sql.functions.calls import call, result_type, type_, typed


@pytest.mark.parametrize(
    ("name", "argument", "rows"),
    [
        ("EXPLODE", typed("ARRAY<INT>", [1, None, 2]), [1, None, 2]),
        ("EXPLODE", typed("ARRAY<DECIMAL(3, 1)>", [Decimal("1.0")]), [Decimal("1.0")]),
        ("EXPLODE", typed("ARRAY<INT>", []), []),
        ("EXPLODE", typed("ARRAY<INT>", None), None),
        ("CUBE_EXPLODE", typed("ARRAY<INT>", []), [[]]),
        ("CUBE_EXPLODE", typed("ARRAY<INT>", [7]), [[None], [7]]),
        ("CUBE_EXPLODE", typed("ARRAY<INT>", [None, 8]), [[None, None], [None, 8]]),
        (
            "CUBE_EXPLODE",
            typed("ARRAY<STRING>", ["a", "b"]),
            [[None, None], [None, "b"], ["a", None], ["a", "b"]],
        ),
        ("CUBE_EXPLODE", typed("ARRAY<INT>", None), None),
    ],
)
def test_one_row_becomes_several(name: str, argument: object, rows: object) -> None:
    assert call(name, argument) == rows


def test_too_many_columns_are_no_cube() -> None:
    with pytest.raises(ValueError, match="at most 20 columns"):
        call("CUBE_EXPLODE", typed("ARRAY<INT>", [1] * 21))


def test_rows_have_the_type_of_the_elements() -> None:
    assert result_type("EXPLODE", "ARRAY<DECIMAL(20, 10)>") == type_("DECIMAL(20, 10)")
    assert result_type("EXPLODE", "ARRAY<MAP<STRING, INT>>") == type_("MAP<STRING, INT>")
    assert result_type("CUBE_EXPLODE", "ARRAY<DATE>") == type_("ARRAY<DATE>")


def test_only_arrays_have_elements() -> None:
    with pytest.raises(StatementFailed) as caught:
        result_type("EXPLODE", "MAP<STRING, INT>")
    assert "explode(ARRAY<DECIMAL> input)\nexplode(ARRAY<T> list)\n" in str(caught.value)


@pytest.mark.slow
@given(st.lists(st.none() | st.integers(), max_size=6))
def test_no_row_of_a_cube_is_repeated(columns: list[int | None]) -> None:
    rows = call("CUBE_EXPLODE", typed("ARRAY<BIGINT>", columns))
    assert isinstance(rows, list)
    assert len({tuple(row) for row in rows}) == len(rows)
    assert rows[-1] == columns
    assert rows[0] == [None] * len(columns)
