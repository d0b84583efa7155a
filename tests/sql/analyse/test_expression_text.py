"""Expressions are shown as ksqlDB shows them, and read back as what they were."""

import pytest
from hypothesis import given

from sql.analyse.expression_text import expression_text
from sql.parse import parse_expression
from tests.sql.backends.native.random_expressions import expressions


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a+b*2", "(A + (B * 2))"),
        ("true", "true"),
        ("null", "null"),
        ("1.50", "1.50"),
        ("1e3", "1E3"),
        ("-12.5e-3", "-1.25E-2"),
        ("0e5", "0E0"),
        ("'it''s'", "'it''s'"),
        ("x.`y`", "X.`y`"),
        ("`select`", "`select`"),
        ("`SELECT`", "`SELECT`"),
        ("s->f[1]['k']", "S->F[1]['k']"),
        ("count(*)", "COUNT(*)"),
        ("f(x => x + 1)", "F(X => (X + 1))"),
        ("f((x, y) => x)", "F((X, Y) => X)"),
        ("dateadd(days, 1, d)", "DATEADD(DAYS, 1, D)"),
        ("cast(a as array<decimal(4, 2)>)", "CAST(A AS ARRAY<DECIMAL(4, 2)>)"),
        ("a || b", "(A || B)"),
        ("- -a", "- -A"),
        ("a is not null", "(A IS NOT NULL)"),
        ("a not between 1 and 2", "(NOT (A BETWEEN 1 AND 2))"),
        ("a in (1, 2)", "(A IN (1, 2))"),
        ("a like 'x' escape '!'", "(A LIKE 'x' ESCAPE '!')"),
        ("a <> 1 and not b", "((A <> 1) AND (NOT B))"),
        ("case a when 1 then 2 else 3 end", "(CASE A WHEN 1 THEN 2 ELSE 3 END)"),
        ("array[1, 2]", "ARRAY[1, 2]"),
        ("map('a' := 1)", "MAP('a':=1)"),
        ("struct(f := 1, `g` := 2)", "STRUCT(F:=1, `g`:=2)"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert expression_text(parse_expression(text)) == shown


@pytest.mark.slow
@given(expressions())
def test_texts_mean_what_was_read(text: str) -> None:
    shown = expression_text(parse_expression(text))
    assert expression_text(parse_expression(shown)) == shown
