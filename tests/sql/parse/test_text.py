"""Statements are read from texts, and wrong texts are refused at the right place."""

import pytest

from sql.errors import SyntaxFailed
from sql.parse import parse, parse_expression, parse_statement
from sql.syntax import expressions as ex
from sql.syntax.queries import EmitClause, SelectAll
from sql.syntax.statements import CreateAsSelect, CreateSource, Print, Show, SourceKind


def test_a_text_has_many_statements_and_each_keeps_its_own_text() -> None:
    first, second = parse("SHOW STREAMS EXTENDED; -- all of them\nPRINT 'orders' LIMIT 3;")
    assert isinstance(first.statement, Show)
    assert first.statement.extended
    assert second.statement == Print("orders", limit=3)
    assert (first.text, second.text) == ("SHOW STREAMS EXTENDED", "PRINT 'orders' LIMIT 3")


def test_names_are_upper_case_unless_they_are_quoted() -> None:
    created = parse_statement("create stream s (a int key, `b` string) with (kafka_topic='t')")
    assert isinstance(created, CreateSource)
    assert [each.name for each in created.columns] == ["A", "b"]
    assert created.properties == (("KAFKA_TOPIC", ex.StringLiteral("t")),)


def test_a_query_has_its_parts() -> None:
    created = parse_statement("CREATE TABLE t AS SELECT * FROM s GROUP BY (a, b) EMIT FINAL;")
    assert isinstance(created, CreateAsSelect)
    query = created.query
    assert (created.kind, query.items, query.emit) == (
        SourceKind.TABLE,
        (SelectAll(),),
        EmitClause.FINAL,
    )
    assert query.group_by == (ex.Name("A"), ex.Name("B"))


def test_operators_bind_as_in_arithmetic() -> None:
    one, two, three = (ex.IntegerLiteral(each) for each in (1, 2, 3))
    product = ex.Arithmetic("*", two, three)
    assert parse_expression("1 + 2 * 3") == ex.Arithmetic("+", one, product)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("SELET * FROM s;", 1, 1, "Did you mean 'SELECT'?"),
        ("SELECT *\nFROM;", 2, 5, "at or near ';'"),
        ("SHOW STREAMS", 1, 13, "<EOF>"),
        ("SELECT FROM s;", 1, 8, "at or near 'FROM'"),
    ],
)
def test_a_wrong_text_is_refused_at_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(SyntaxFailed) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert says in str(caught.value)
