"""Every statement has help, and every example can be read."""

from typing import get_args

import pytest

from sql.parse import parse_statement
from sql.syntax import statements as st
from sql.syntax.statement_help import HELP, StatementHelp, help_about


@pytest.mark.parametrize("help_", HELP, ids=[each.name for each in HELP])
def test_an_example_is_a_statement_of_its_kind(help_: StatementHelp) -> None:
    assert type(parse_statement(help_.example, testing=True)) is help_.kind
    assert help_.example.endswith(";")
    assert help_.about.endswith(".")
    assert max(map(len, [*help_.form.split("\n"), *help_.example.split("\n")])) <= 100


def test_every_kind_of_statement_has_help() -> None:
    assert {each.kind for each in HELP} == {*get_args(st.Statement)}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("drop type", ["DROP TYPE"]),
        ("Drop  Table;", ["DROP STREAM, DROP TABLE"]),
        ("pause", ["TERMINATE, PAUSE, RESUME"]),
        ("insert", ["INSERT INTO SELECT", "INSERT INTO VALUES"]),
        ("create stream", ["CREATE STREAM", "CREATE STREAM AS SELECT"]),
        ("terminte", ["TERMINATE, PAUSE, RESUME"]),
        ("nothing like it", []),
    ],
)
def test_help_is_found_by_its_first_words(words: str, names: list[str]) -> None:
    assert [each.name for each in help_about(words)] == names


def test_no_words_mean_all_help() -> None:
    assert help_about("") == list(HELP)
