"""Functions that choose between values."""

from decimal import Decimal
from math import nan

import pytest

from sql.errors import StatementFailed
from tests.sql.functions.calls import call, result_type, same, type_, typed

D = Decimal


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("COALESCE", [None, None, 3, 4], 3),
        ("COALESCE", ["a"], "a"),
        ("COALESCE", [typed("ARRAY<INT>", None), typed("ARRAY<INT>", [1])], [1]),
        ("COALESCE", [typed("INT", None)], None),
        ("COALESCE", [False, True], False),
        ("IFNULL", [typed("STRING", None), "x"], "x"),
        ("IFNULL", ["", "x"], ""),
        ("IFNULL", [typed("INT", None), None], None),
        ("NULLIF", [3, 3], None),
        ("NULLIF", [3, 4], 3),
        ("NULLIF", [3, None], 3),
        ("NULLIF", [typed("INT", None), 3], None),
        ("GREATEST", [1, None, 5, 3], 5),
        ("GREATEST", [2**40, 2**41], 2**41),
        ("GREATEST", [1.5, nan, 2.5], nan),
        ("GREATEST", [0.0, -0.0], 0.0),
        ("GREATEST", ["a", "B", "ab"], "ab"),
        ("GREATEST", ["\uffff", "\U00010000"], "\uffff"),
        ("GREATEST", [b"\x01", b"\x80"], b"\x01"),
        ("GREATEST", [D("1.5"), D("2.25")], D("2.25")),
        ("GREATEST", [typed("DATE", 5), typed("DATE", 7)], 7),
        ("GREATEST", [typed("INT", None), None], None),
        ("LEAST", [3, None, 1], 1),
        ("LEAST", [1.5, nan, 2.5], 1.5),
        ("LEAST", ["b", "a", None], "a"),
        ("LEAST", [b"\x01", b"\x80"], b"\x80"),
        ("LEAST", [typed("TIME", 5), typed("TIME", 7)], 5),
        ("LEAST", [typed("TIMESTAMP", 5), typed("TIMESTAMP", -7)], -7),
    ],
)
def test_a_value_is_chosen(name: str, arguments: list[object], result: object) -> None:
    found = call(name, *arguments)
    assert same(found, result), found


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("COALESCE", ["INT", "BIGINT"], "BIGINT"),
        ("IFNULL", ["MAP<STRING, INT>", "MAP<STRING, INT>"], "MAP<STRING, INT>"),
        ("GREATEST", ["DECIMAL(9, 2)", "DECIMAL(7, 6)"], "DECIMAL(13, 6)"),
        ("LEAST", ["INT", "BIGINT", "DECIMAL(5, 1)", "DOUBLE"], "DOUBLE"),
        ("LEAST", ["DATE", "STRING"], "DATE"),
    ],
)
def test_the_result_has_a_type_that_holds_all(name: str, types: list[str], result: str) -> None:
    assert result_type(name, *types) == type_(result)


@pytest.mark.parametrize(
    ("types", "why"),
    [
        (["INT", "BIGINT"], "'greatest' cannot be resolved due to ambiguous method parameters"),
        ([], "'greatest' does not accept parameters \\(\\)\\."),
        (["STRING", "INT"], "'greatest' does not accept parameters \\(STRING, INTEGER\\)\\."),
        (["BOOLEAN"], "'greatest' does not accept parameters"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(types: list[str], why: str) -> None:
    with pytest.raises(StatementFailed, match=why):
        result_type("GREATEST", *types)
