"""Plans as JSON: every plan is the same after its way there and back, and the form stays for good.

tests/cases/command_log/nodes has one document for each step of plans and each kind of expression. A
document that is there is never written again: command logs have others like it. REWRITE=1 only adds
those that are missing.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_args

import pytest

from sql.errors import SqlError
from sql.expressions import TypedExpression
from sql.functions.builtin import builtin_functions
from sql.plan import PlanNode
from sql.planner import plan_from_json, plan_to_json
from sql.planner.plan_json import from_json, to_json
from sql.rewrite import RULES, rewritten
from sql.testing.cases import CaseKind, load_cases
from sql.testing.query_cases import executed
from tests.sql.engine.test_logged_plans import STATEMENTS
from tests.sql.planner.session import Session
from tests.sql.test_cases import OWN

NODES = Path(__file__).parents[2] / "cases" / "command_log" / "nodes"
MORE = """
    CREATE STREAM kinds AS SELECT id, -a AS negative, NOT (a IS NULL OR a > 1) AS opposite,
        ARRAY[a, 2] AS made, MAP('x' := p, 'y' := p)['x'] AS entry, STRUCT(f := a) AS struct,
        l[-1] AS element, CAST(a AS STRING) AS text FROM s;
"""
# Statements of an engine; a Session only plans.
QUERIES = STATEMENTS.partition("ALTER STREAM")[0] + MORE
NAMES = sorted(each.__name__ for each in (*get_args(PlanNode), *get_args(TypedExpression)))


def parts(value: object) -> Iterator[object]:
    """A value, and all steps and expressions in it."""
    if isinstance(value, tuple):
        for each in value:
            yield from parts(each)
    elif is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, PlanNode | TypedExpression):
            yield value
        for field in fields(value):
            yield from parts(getattr(value, field.name))


def examples() -> dict[str, object]:
    """The first of each kind of step and expression, and a table that keeps some columns."""
    found: dict[str, object] = {}
    plans = [each.plan for each in Session().run(QUERIES).plans]
    for part in parts(tuple(plans)):
        found.setdefault(type(part).__name__, part)
    pruned = [rewritten(each) for each in Session().run(QUERIES).plans]
    for part in parts(tuple(each.plan for each in pruned)):
        if getattr(part, "kept", None) is not None:
            found.setdefault("Scan with kept columns", part)
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", [*NAMES, "Scan with kept columns"])
def test_the_logged_form_of_each_step_and_expression_stays(name: str) -> None:
    file = NODES / f"{name.replace(' ', '_')}.json"
    if os.environ.get("REWRITE") and not file.exists():
        file.write_text(json.dumps(to_json(EXAMPLES[name]), indent=1) + "\n")
    document = json.loads(file.read_text())
    assert to_json(EXAMPLES[name]) == document
    assert from_json(document, builtin_functions()) == EXAMPLES[name]


def test_there_is_a_document_for_each_step_and_expression() -> None:
    wanted = {*NAMES, "Scan_with_kept_columns"}
    assert {each.stem for each in NODES.glob("*.json")} == wanted


@pytest.mark.slow
@pytest.mark.spread
def test_all_plans_of_cases_are_the_same_after_their_way_through_json() -> None:
    known, count = builtin_functions(), 0
    for case in load_cases([OWN]):
        if case.kind is not CaseKind.QUERY:
            continue
        for rules in ((), RULES):
            engine = executed(case, known, rules)
            for query in () if engine is None else engine.queries.values():
                text = json.dumps(plan_to_json(query.plan))
                read = plan_from_json(json.loads(text), known)
                assert read == query.plan, case.id
                assert json.dumps(plan_to_json(read)) == text, case.id
                count += 1
    assert count > 900


@pytest.mark.parametrize(
    ("before", "after", "unknown"),
    [
        ('"@": "Filter"', '"@": "Sieve"', '"Sieve"'),
        ('"@": "ColumnValue"', '"@": "RowValue"', '"RowValue"'),
        ('"condition"', '"predicate"', '"predicate" of "Filter"'),
    ],
)
def test_a_plan_of_a_newer_version_is_refused_by_the_name_of_what_is_unknown(
    before: str, after: str, unknown: str
) -> None:
    text = json.dumps(to_json(EXAMPLES["Filter"]))
    assert before in text
    with pytest.raises(SqlError, match=f"this version does not support {unknown}") as refused:
        plan_from_json(json.loads(text.replace(before, after)), builtin_functions())
    assert refused.value.hint is not None
