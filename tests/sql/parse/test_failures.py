"""Wrong texts are refused at their place, in ksqlDB's words and with a hint of ours."""

import pytest

from sql.errors import SyntaxFailed
from sql.parse import parse, parse_expression


def failure(text: str) -> SyntaxFailed:
    with pytest.raises(SyntaxFailed) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM s ORDER BY a;", "line 1:23: Syntax Error\n"),
        ("SELET * FROM s;", "line 1:1: Syntax Error\nUnknown statement 'SELET'\nDid you mean"),
        (
            "SELECT * FROM s\nGROUP BY a, (b, c);",
            "line 2:15: Syntax Error\nmissing ')' at ','",
        ),
        (
            "CREATE STREAM s (a INT (KEY)) WITH (kafka_topic='s');",
            "line 1:25: Syntax Error\nExpecting {'STRING', INTEGER_VALUE}",
        ),
        (
            "CREATE STREAM s (a INT (3) b);",
            "line 1:28: Syntax Error\nExpecting {',', ')'}",
        ),
        (
            "CREATE STREAM s (size INT);",
            'line 1:18: Syntax Error\n"size" is a reserved keyword and it can\'t be used as an '
            "identifier. You can use it as an identifier by escaping it as 'size' ",
        ),
        (
            "SELECT CAST(a AS NULL) FROM s;",
            "line 1:18: Syntax Error\nSyntax error at or near 'NULL' at line 1:18",
        ),
        ("SELECT a FROM s LIMIT many;", "line 1:23: Syntax Error\nExpecting INTEGER_VALUE"),
        (
            "SELECT 9223372036854775808 FROM s;",
            "Failed to prepare statement: line 1:9: Invalid numeric literal: 9223372036854775808",
        ),
        (
            "SELECT -9223372036854775809 FROM s;",
            "Failed to prepare statement: line 1:9: Invalid numeric literal: -9223372036854775809",
        ),
        (
            "SELECT -1e999 FROM s;",
            "Failed to prepare statement: line 1:9: Number overflows DOUBLE: -1e999",
        ),
        (
            "CREATE STREAM s (a INT PRIMARY KEY);",
            "Failed to prepare statement: Line: 1, Col: 18: Column `A` is a 'PRIMARY KEY' column: "
            "please use 'KEY' for streams.",
        ),
        (
            "CREATE TABLE t (a INT KEY);",
            "Failed to prepare statement: Line: 1, Col: 17: Column `A` is a 'KEY' column: "
            "please use 'PRIMARY KEY' for tables.",
        ),
        ("RUN SCRIPT 'a.sql';", "line 1:1: Syntax Error\nUnknown statement 'RUN'"),
        ("ASSERT VALUES s (a) VALUES (1);", "Syntax error at or near 'VALUES' at line 1:8"),
        ("SELECT a FROM s GROUP BY a AND b;", "line 1:28: Syntax Error\n"),
        ("SELECT a FROM s WHERE a IN ();", "Syntax error at or near ')' at line 1:29"),
        ("SELECT `` FROM s;", "a name cannot be empty"),
    ],
)
def test_messages_are_those_of_ksqldb(text: str, message: str) -> None:
    assert message in failure(text).message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM s ORDER BY a;", "ORDER BY is not supported"),
        ("SELECT DISTINCT a FROM s;", "GROUP BY the columns"),
        ("SELECT * FROM a UNION SELECT * FROM b;", "INSERT INTO one stream"),
        ("SELECT SUM(a) OVER (PARTITION BY b) FROM s;", "use WINDOW"),
        ("SELECT * FROM (SELECT * FROM s);", "subqueries are not supported"),
        ("SELECT limit FROM s;", "`limit`"),
        ("SHOW STREAMS", "semicolon"),
        ("SELECT 'it FROM s;", "the quote ' is never closed"),
        ("SELECT 1 /* FROM s;", "the comment has no */"),
        ("SELECT # FROM s;", '"#" has no meaning outside quotes'),
        ("SELECT \u2018it\u2019 FROM s;", "use ' for strings"),
        ("SELECT größe FROM s;", 'put a name that contains "ö" in backticks'),
        ("SELECT a FROM s GROUP BY a AND b;", "parentheses"),
        ("SELECT ${a} FROM s;", "DEFINE it first"),
    ],
)
def test_hints_say_what_to_do(text: str, hint: str) -> None:
    assert hint in failure(text).hint


def test_an_error_shows_its_line_and_a_mark_under_the_place() -> None:
    text = "SHOW STREAMS;\n\tSELECT a FROM 1;\n"
    assert failure(text).show(text) == (
        "line 2:16: Syntax Error\n"
        "Syntax error at or near '1' at line 2:16\n"
        "  at: line 2, column 16:   SELECT a FROM 1;\n"
        "                                         ^"
    )


def test_only_a_part_of_a_long_line_is_shown() -> None:
    text = f"SELECT {'a, ' * 200}, b FROM s;"
    _, line, mark, *_ = failure(text).show(text).split("\n")[1:]
    assert len(line) < 150
    assert line[mark.index("^")] == ","
    assert line.startswith("  at: line 1, column 608:  ...")


def test_an_error_without_a_place_is_shown_without_a_mark() -> None:
    assert SyntaxFailed("what?", hint="ask").show("SELECT") == "what?\n  hint: ask"


@pytest.mark.parametrize("text", ["", "  ", "-- only a remark\n", "/* and another */"])
def test_a_text_may_have_no_statements(text: str) -> None:
    assert parse(text) == []


@pytest.mark.parametrize(
    "text", ["1 +", "a b", "(1", "CASE WHEN a THEN", "a IS", "a NOT 5", "f(,)"]
)
def test_half_an_expression_is_none(text: str) -> None:
    with pytest.raises(SyntaxFailed):
        parse_expression(text)
