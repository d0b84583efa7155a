"""Whatever a text is, it is read or refused with SyntaxFailed; what is read can be printed."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from sql.errors import SyntaxFailed
from sql.parse import parse, parse_expression, parse_statement, parse_type
from sql.parse.tokens import tokens_of
from sql.printer import print_statement
from sql.syntax import statements as st
from sql.syntax.keywords import RESERVED, STATEMENT_WORDS
from sql.variables import split_statements, substitute
from tests.support import sql_trees

SYMBOLS = (
    *("(", ")", "[", "]", "<", ">", "<>", "<=", ">=", "!=", "=", "||", ":=", "->", "=>", "+", "-"),
    *("*", "/", "%", ",", ".", ";", "'", "`", '"', "$", "${v}", "--", "/*", "*/", "\\", "#", "é"),
)
OTHERS = (
    *("a", "B_2", "5", "1.5", "1e3", "1e", "2x", "'text'", "`name`", "KEY", "EMIT", "CHANGES"),
    *("FINAL", "IF", "MAP", "ARRAY", "STRUCT"),
)
TOKENS = (*SYMBOLS, *OTHERS, *STATEMENT_WORDS, *sorted(RESERVED))


def read_or_refused(text: str) -> None:
    for read in (parse_expression, parse_type, split_statements, tokens_of):
        try:
            read(text)
        except SyntaxFailed as error:
            error.show(text)
    try:
        substitute(text, {"V": "1"})
        found = parse(text, testing=True)
    except SyntaxFailed as error:
        error.show(text)
        return
    for each in found:
        assert each.text in text
        assert parse_statement(print_statement(each.statement), testing=True) == each.statement


@pytest.mark.slow
@given(some.text())
@example("${v}")
@example("SELECT \x00")
@example("SELECT a FROM `\ud800`;")
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refused(text)


@pytest.mark.slow
@given(some.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_or_refused(data.decode("latin-1"))


@pytest.mark.slow
@given(some.lists(some.sampled_from(TOKENS), max_size=30), some.sampled_from(("", " ", "\n")))
def test_any_words_and_signs_are_read_or_refused(tokens: list[str], between: str) -> None:
    read_or_refused(between.join(tokens))


@pytest.mark.slow
@given(sql_trees.statements, some.randoms(use_true_random=False))
def test_statements_with_mistakes_are_read_or_refused(
    statement: st.Statement, chance: random.Random
) -> None:
    tokens = tokens_of(f"{print_statement(statement)};").raw[:-1]
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(tokens) + 1)
        match chance.randrange(4):
            case 0:
                tokens[place : place + 1] = []
            case 1:
                tokens.insert(place, chance.choice(TOKENS))
            case 2:
                tokens[place : place + 1] = tokens[place : place + 1] * 2
            case _:
                tokens[place : place + 2] = reversed(tokens[place : place + 2])
    read_or_refused(" ".join(tokens))


@pytest.mark.slow
@given(sql_trees.statements, some.integers(0, 500))
def test_half_a_statement_is_read_or_refused(statement: st.Statement, length: int) -> None:
    read_or_refused(print_statement(statement)[:length])
    read_or_refused(print_statement(statement)[:length] + ";")
