"""Texts split into statements, and variables in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.engine.substitution import split_statements, substituted
from sql.errors import StatementFailed


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        ("  -- nothing\n", []),
        ("SHOW STREAMS;", ["SHOW STREAMS;"]),
        ("A; B;", ["A;", "B;"]),
        ("A ';'; B", ["A ';';", "B"]),
        ("A `;` \";\" 'it''s;'; B;", ["A `;` \";\" 'it''s;';", "B;"]),
        ("A -- ;\n; /* ; */ B;", ["A -- ;\n;", "/* ; */ B;"]),
        ("A 1 - 2 / 3;", ["A 1 - 2 / 3;"]),
        ("A 'open;", ["A 'open;"]),
    ],
)
def test_a_text_is_split_at_semicolons_outside_quotes_and_comments(
    text: str, statements: list[str]
) -> None:
    assert list(split_statements(text)) == statements


VARIABLES = {"NAME": "orders", "TEXT": "it's", "NUMBER": "5", "BAD": "a; DROP STREAM b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP STREAM ${name};", "DROP STREAM orders;"),
        ("X '${TEXT}';", "X 'it''s';"),
        ("LIMIT ${ number };", "LIMIT 5;"),
        ("X '$${name}' ${other};", "X '${name}' ${other};"),
        ("X '${bad}';", "X 'a; DROP STREAM b';"),
        ("X -- ${name}\n;", "X -- ${name}\n;"),
    ],
)
def test_variables_are_replaced_by_their_values(text: str, expected: str) -> None:
    assert substituted(text, VARIABLES) == expected


def test_a_variable_outside_quotes_cannot_bring_a_statement_of_its_own() -> None:
    with pytest.raises(StatementFailed, match="Illegal argument"):
        substituted("DROP STREAM ${bad};", VARIABLES)


@given(st.text(alphabet="ab'`\";-/*\n ${}", max_size=60))
def test_no_sign_of_a_text_is_lost_by_splitting_it(text: str) -> None:
    statements = list(split_statements(text))
    assert all(each in text for each in statements)
    assert list(split_statements("\n".join(statements[:-1]))) == statements[:-1]
