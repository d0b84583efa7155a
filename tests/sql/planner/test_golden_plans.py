"""Plans against golden files: names of steps are names of stores and topics, so they are state.

REWRITE=1 rewrites the files; a change of a step's name or place is a breaking change.
"""

import json
import os
from dataclasses import replace

import pytest

from sql.errors import SqlError
from sql.functions.builtin import builtin_functions
from sql.planner import explain_text, plan_from_json, plan_to_json
from tests.sql.planner.golden import CASES, GoldenPlan, read_plans, write_plans
from tests.sql.planner.session import Session

FILES = sorted(CASES.glob("*.txt"))
ALL = [each for file in FILES for each in read_plans(file)]


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_statements_have_the_plans_of_their_golden_file(name: str) -> None:
    file = CASES / f"{name}.txt"
    expected = read_plans(file)
    found = [replace(each, plan=_explained(each)) for each in expected]
    if os.environ.get("REWRITE"):
        write_plans(file, found)
        expected = read_plans(file)
    for plan, wanted in zip(found, expected, strict=True):
        assert plan.plan == wanted.plan, plan.title


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.title)
def test_a_plan_is_the_same_after_its_way_through_json(case: GoldenPlan) -> None:
    for planned in Session().run(case.statements).plans:
        text = json.dumps(plan_to_json(planned.plan))
        assert plan_from_json(json.loads(text), builtin_functions()) == planned.plan


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"@": "Nothing"},
        {"@": "Column", "name": "A", "type": {"type": "INT"}},
        {"@": "Filter", "name": "F"},
        {"@": "Scan", "name": {"enum": "JoinKind", "value": "SIDEWAYS"}},
        {"type": "NO SUCH"},
        {"function": "NO_SUCH_FUNCTION", "takes": [], "kind": "scalar"},
    ],
)
def test_a_document_that_is_no_plan_is_refused(document: object) -> None:
    with pytest.raises(SqlError):
        plan_from_json(document, builtin_functions())


def _explained(case: GoldenPlan) -> str:
    return explain_text(Session().run(case.statements).plans[-1].plan)
