"""The parser takes what grammar.lark says, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from lark import Token

from sql.errors import SyntaxFailed
from sql.parse import parse
from sql.printer import print_statement
from sql.syntax.statements import Statement
from tests.support.sql_grammar import Writer, grammar
from tests.support.sql_trees import statements

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql-grammar")]


@contextmanager
def suppress_impossible() -> Iterator[None]:
    """Texts that are read to their end and say something impossible are in the language."""
    try:
        yield
    except SyntaxFailed as error:
        if not str(error).startswith("Failed to prepare statement"):
            raise


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=some.integers(0, 2**32))
def test_what_the_grammar_says_is_parsed(seed: int) -> None:
    text = Writer(Random(seed)).text()
    with suppress_impossible():
        parse(text, testing=True)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(statement=statements)
def test_what_is_parsed_is_in_the_grammar(statement: Statement) -> None:
    tree = grammar().parse(f"{print_statement(statement)};")
    assert not isinstance(tree, Token)
