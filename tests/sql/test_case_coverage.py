"""What the cases in tests/cases/sql use: every function, statement, expression and property."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from sql.formats import FORMATS
from sql.functions.builtin import builtin_functions
from sql.parse import parse
from sql.properties import OF_INSERTS, OF_SOURCES
from sql.syntax import expressions as ex
from sql.syntax import queries as qu
from sql.syntax import statements as st
from sql.testing.cases import Case, CaseKind, load_cases

CASES = load_cases([Path(__file__).parents[1] / "cases" / "sql"])
CASES_AT_LEAST = 300
MISTAKES_AT_LEAST = 60

# Statements that a case can hold; others need a server, and answer instead of changing anything.
STATEMENTS = (
    st.CreateSource,
    st.CreateAsSelect,
    st.InsertSelect,
    st.InsertValues,
    st.AlterSource,
    st.DropSource,
    st.CreateType,
    st.DropType,
    st.ControlQuery,
    st.SetProperty,
    st.UnsetProperty,
    st.AssertTopic,
    st.AssertSchema,
    st.AssertValues,
    st.AssertTombstone,
    st.AssertSource,
    st.RunScript,
)


def is_mistake(case: Case) -> bool:
    """Whether a statement of the case must fail."""
    return case.data.get("expected_error") is not None


def statements(case: Case) -> list[st.Statement]:
    """All statements of a case."""
    text = case.data["sql"] if case.kind is CaseKind.SCRIPT else "\n".join(case.data["statements"])
    return [each.statement for each in parse(text, testing=True)]


def parts(value: object) -> Iterator[object]:
    """A part of a tree and everything in it."""
    yield value
    if isinstance(value, tuple):
        below: Iterator[object] = iter(value)
    elif is_dataclass(value):
        below = (getattr(value, field.name) for field in fields(value))
    else:
        return
    yield from chain.from_iterable(map(parts, below))


@cache
def working_statements() -> list[st.Statement]:
    """Those that must not fail: a function that is called in a mistake alone is not tested."""
    return [each for case in CASES if not is_mistake(case) for each in statements(case)]


@cache
def working_parts() -> list[object]:
    """Everything in the statements that must not fail."""
    return list(chain.from_iterable(map(parts, working_statements())))


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= CASES_AT_LEAST


def test_there_are_enough_cases_of_mistakes() -> None:
    assert sum(map(is_mistake, CASES)) >= MISTAKES_AT_LEAST


def test_an_id_begins_with_the_name_of_its_file() -> None:
    folder = Path(__file__).parents[1] / "cases" / "sql"
    for file in folder.glob("*.json"):
        wrong = [case.id for case in load_cases([file]) if not case.id.startswith(f"{file.stem}/")]
        assert wrong == []


def test_every_statement_that_a_case_can_hold_is_there() -> None:
    found = {type(each) for each in working_statements()}
    assert [each.__name__ for each in STATEMENTS if each not in found] == []


def test_every_function_is_called() -> None:
    called = {each.function for each in working_parts() if isinstance(each, ex.Call)}
    assert sorted(each.name for each in builtin_functions() if each.name not in called) == []


def test_every_kind_of_expression_is_there() -> None:
    found = {type(each) for each in working_parts()}
    assert [each.__name__ for each in get_args(ex.Expression) if each not in found] == []


@pytest.mark.parametrize("kinds", [qu.WindowKind, qu.JoinKind, qu.EmitClause, st.ColumnRole])
def test_every_kind_of_window_join_and_column_is_there(kinds: type[Enum]) -> None:
    found = {each for each in working_parts() if isinstance(each, kinds)}
    assert [each for each in kinds if each not in found] == []


def test_every_property_of_sources_and_sinks_is_given() -> None:
    assert sorted((OF_SOURCES | OF_INSERTS) - set(given_properties())) == []


@pytest.mark.parametrize(
    ("name", "formats"),
    [("KEY_FORMAT", set(FORMATS)), ("VALUE_FORMAT", set(FORMATS) - {"NONE"})],
)
def test_every_format_is_used(name: str, formats: set[str]) -> None:
    given = given_properties()
    assert formats - given[name] == set()


def given_properties() -> dict[str, set[str]]:
    """The values that each property has in any WITH clause."""
    found: dict[str, set[str]] = {}
    for each in working_statements():
        if isinstance(each, st.CreateSource | st.CreateAsSelect | st.InsertSelect):
            for name, value in each.properties:
                text = str(getattr(value, "value", value)).upper()
                found.setdefault(name.upper(), set()).add(text)
    return found
