"""Tables of rows: widths, wrapping and cutting."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich.cells import cell_len

from sql.shell.row_table import RowTable, cell_text, fitted_widths, row_json, shared_widths
from sql.shell.screen import DisplaySettings

WRAPPED = """\
+----+------+
|ID  |TOTAL |
+----+------+
|a   |1     |
|long|23    |
| tex|      |
|t   |      |"""
CUT = """\
+----+------+
|ID  |TOTAL |
+----+------+
|a   |1     |
|l...|23    |"""


@pytest.mark.parametrize(("wrap", "wanted"), [(True, WRAPPED), (False, CUT)])
def test_a_long_text_takes_several_lines_or_is_cut(wrap: bool, wanted: str) -> None:
    table = RowTable([4, 6], wrap=wrap)
    lines = [
        *table.header(["ID", "TOTAL"]),
        *table.row(["a", "1"]),
        *table.row(["long text", "23"]),
    ]
    assert "\n".join(lines) == wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("a 'text'", "a 'text'"),
        (Decimal("12.50"), "12.50"),
        (1.5, "1.5"),
        ([1, "x", None], '[1,"x",null]'),
        ({"B": 1, "A": {"C": Decimal("1.0")}}, '{"B":1,"A":{"C":1.0}}'),
    ],
)
def test_cells_show_strings_as_they_are_and_the_rest_as_json(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_a_row_is_an_object_by_the_names_of_columns() -> None:
    assert row_json(["ID", "TOTAL"], ["a", Decimal("1.50")]) == '{"ID":"a","TOTAL":1.50}'


def test_columns_of_a_push_query_share_the_screen() -> None:
    assert shared_widths(3, 61, DisplaySettings()) == [19, 19, 19]
    assert shared_widths(30, 61, DisplaySettings()) == [6] * 30
    assert shared_widths(2, 61, DisplaySettings(column_width=9)) == [9, 9]


def test_the_widest_columns_give_way_first() -> None:
    rows = [["ID", "TOTAL", "TEXT"], ["a", "100", "x" * 90]]
    assert fitted_widths(rows, 61, DisplaySettings()) == [2, 5, 50]
    assert fitted_widths(rows, 200, DisplaySettings()) == [2, 5, 90]
    assert fitted_widths(rows, 61, DisplaySettings(column_width=7)) == [7, 7, 7]
    assert fitted_widths([["x" * 50, "y" * 50, "id"]], 61, DisplaySettings()) == [27, 27, 2]


@pytest.mark.slow
@given(
    some.integers(1, 4).flatmap(
        lambda count: some.lists(
            some.lists(some.text(max_size=40), min_size=count, max_size=count), min_size=1
        )
    ),
    some.integers(40, 100),
    some.booleans(),
)
def test_every_line_is_as_wide_as_the_rule_and_fits(
    rows: list[list[str]], width: int, wrap: bool
) -> None:
    table = RowTable(fitted_widths(rows, width, DisplaySettings()), wrap=wrap)
    wide = cell_len(table.rule())
    assert wide <= width
    for row in rows:
        for line in table.row(row):
            assert cell_len(line) == wide
            assert line.isprintable()


def test_a_table_in_a_pipe_has_values_in_one_line_however_long() -> None:
    table = RowTable([4, 4], wrap=True, is_bounded=False)
    assert [*table.row(["a" * 10, "b"])] == ["|aaaaaaaaaa|b   |"]
    assert [*table.row(["a\nbb", "c"])] == ["|a   |c   |", "|bb  |    |"]
