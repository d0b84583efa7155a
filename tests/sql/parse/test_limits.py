"""However absurd a text is, it ends soon: with a tree that can be walked, or with SyntaxFailed."""

import pytest

from sql.errors import SyntaxFailed
from sql.parse import parse, parse_expression, parse_statement, parse_type
from sql.parse.reader import DEPTH_MAX, NESTED_MAX
from sql.syntax import expressions as ex

MANY = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * MANY,
        "(" * MANY + "1" + ")" * MANY,
        "a" + "[1" * MANY + "]" * MANY,
        "f(" * MANY + ")" * MANY,
        "NOT " * MANY + "a",
        "- " * MANY + "a",
        "+" * MANY + "1",
        "CASE WHEN " * MANY,
        "CASE a WHEN 1 THEN " * MANY + "2" + " END" * MANY,
        "CAST(" * MANY + "1",
        "ARRAY[" * MANY,
        "MAP(1 := " * MANY,
        "STRUCT(a := " * MANY,
        "x => " * MANY + "x",
        "f(x => " * MANY + "x",
        "a" + "->b" * MANY,
        "a" + "[1]" * MANY,
        "a" + " + a" * MANY,
        "a" + " - 1 * a" * MANY,
        "a IN (" * MANY,
        "a BETWEEN " * MANY,
        "CAST(a AS " + "ARRAY<" * MANY + "INT" + ">" * MANY + ")",
    ],
    ids=lambda text: text[:20],
)
def test_deep_trees_are_refused(text: str) -> None:
    with pytest.raises(SyntaxFailed):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("(" * NESTED_MAX + "1" + ")" * NESTED_MAX, True),
        ("(" * (NESTED_MAX + 1) + "1" + ")" * (NESTED_MAX + 1), False),
        ("a" + " + a" * (DEPTH_MAX - 1), True),
        ("a" + " + a" * DEPTH_MAX, False),
        ("NOT " * (DEPTH_MAX - 1) + "a", True),
        ("NOT " * DEPTH_MAX + "a", False),
        # A tree is deep too when no part of the text is.
        ("(((a" + " + a)" * 3 + "->b" * (DEPTH_MAX - 4), True),
        ("(((a" + " + a)" * 3 + "->b" * (DEPTH_MAX - 3), False),
    ],
)
def test_the_limits_are_exact(text: str, accepted: bool) -> None:
    if accepted:
        assert parse_expression(text) == parse_expression(text)
        return
    with pytest.raises(SyntaxFailed, match="nested too deeply") as caught:
        parse_expression(text)
    assert "at most" in caught.value.hint


@pytest.mark.parametrize("operator", ["AND", "OR", "||"])
def test_long_chains_become_trees_that_are_not_deep(operator: str) -> None:
    names = [f"A{each}" for each in range(5_000)]
    found = parse_expression(f" {operator} ".join(names))
    assert repr(found).count("Name(") == 5_000
    assert _height(found) < 40
    assert [each.name for each in _leaves(found)] == names


def _height(node: ex.Expression) -> int:
    if isinstance(node, ex.Logical | ex.Concatenation):
        return 1 + max(_height(node.left), _height(node.right))
    return 1


def _leaves(node: ex.Expression) -> list[ex.Name]:
    if isinstance(node, ex.Logical | ex.Concatenation):
        return _leaves(node.left) + _leaves(node.right)
    assert isinstance(node, ex.Name)
    return [node]


def test_long_lists_are_read() -> None:
    found = parse_expression(f"a IN ({', '.join(['1'] * 20_000)})")
    assert isinstance(found, ex.In)
    assert len(found.choices) == 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "'" + "''" * 500_000,
        "/*" * 500_000,
        "/* " * 500_000,
        "SELECT '" + "x" * 1_000_000,
        "-" * 1_000_000,
        " " * 1_000_000 + "x",
        "a;" * 250_001,
        "x" * 10_000_001,
        "${" * 500_000,
        "SELECT " + "1" * 1_000_000 + " FROM s;",
        "SELECT " + "1" * 1_000_000 + ".5 FROM s;",
        "SELECT " + "1" * 1_000_000 + "e5 FROM s;",
        "`" * 999_999,
        "SELECT '" + "''" * 2_000_000 + "' FROM s",
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000 + " FROM s;",
        "CREATE STREAM s (" + ", ".join(["c INT"] * 1_000_000) + ");",
        "CREATE STREAM s (c " + "STRUCT<a " * 100_000 + "INT" + ">" * 100_000 + ");",
        "SELECT * FROM s WHERE a IN (" + "1, " * 1_000_000 + "1);",
        "SELECT * FROM s WHERE " + "a = 1 OR " * 100_000 + "b;",
        "SELECT * FROM s " + "JOIN t ON a = b " * 100_000 + ";",
        "SELECT CASE " + "WHEN a THEN b " * 100_000 + "END FROM s;",
        "INSERT INTO s VALUES (" + "1, " * 1_000_000 + "1);",
        "EXPLAIN " * 100_000 + "SHOW STREAMS;",
        "SELECT " + "a" * 1_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_statements_end_soon(text: str) -> None:
    said = ""
    try:
        assert parse(text) == []
    except SyntaxFailed as error:
        said = error.show(text)
    assert len(said) < 2_000


def test_what_is_called_from_deep_inside_is_refused_and_not_broken() -> None:
    def inside(depth: int) -> object:
        if depth:
            return inside(depth - 1)
        return parse_expression("(" * 90 + "1" + ")" * 90)

    with pytest.raises(SyntaxFailed, match="nested too deeply"):
        inside(750)


def test_types_and_explained_statements_are_bounded_too() -> None:
    with pytest.raises(SyntaxFailed, match="nested too deeply"):
        parse_type("ARRAY<" * MANY + "INT" + ">" * MANY)
    with pytest.raises(SyntaxFailed, match="nested too deeply"):
        parse_statement("EXPLAIN " * MANY + "SHOW STREAMS")
