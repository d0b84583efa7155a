"""Cases on Spark: a set that has every step of plans, and what the runner says of each case."""

import json
from collections.abc import Sequence, Set
from copy import deepcopy
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from sql.functions.builtin import builtin_functions
from sql.plan import Aggregate, PlanNode, Sink
from sql.syntax.queries import JoinKind, WindowKind
from sql.testing.cases import Case, CaseKind, load_cases
from sql.testing.query_cases import executed
from sql.testing.results import CaseReport, CaseResult, Status
from sql.testing.spark_cases import run_cases_on_spark
from tests.sql.test_cases import FIGURES, SHARED
from tests.sql.testing.test_running import GOOD, Data, changed
from tests.support.spark import MARKS, shared_session

OWN = Path(__file__).parents[2] / "cases" / "sql"
TRANSLATIONS = "cases"  # the folder of those that Spark can run
CASES_AT_LEAST = 60
SAMPLE_AT_MOST = 25
PLAN_NODES = get_args(PlanNode)
CHOSEN = (
    "joins/*",
    "windows/*",
    "tables/*",
    "keys/*",
    "formats/*",
    "aggregates/*",
    "rows/*",
    "groups/groups of groups",
    "table_joins/a changed customer changes all its orders",
    "table_joins/a full join of tables deletes when both are gone",
    "table_functions/rows of EXPLODE are counted by the next query",
    "key_formats/windowed keys in JSON",
    "key_formats/a key of two columns in *",
    "value_formats/nulls in *",
)
CASES = [
    case
    for case in load_cases([OWN])
    if case.kind is CaseKind.QUERY and any(fnmatchcase(case.id, each) for each in CHOSEN)
]


def plans_of(case: Case) -> list[Sink]:
    """The plans of all queries of a case."""
    engine = executed(case, builtin_functions())
    return [query.plan for query in engine.queries.values()] if engine else []


def steps(step: PlanNode) -> list[PlanNode]:
    """A step and all before it."""
    before = [getattr(step, name) for name in ("input", "left", "right") if hasattr(step, name)]
    return [step, *(found for each in before for found in steps(each))]


def features(plan: Sink) -> set[object]:
    """What of a plan a sample must have: its steps, kinds of joins and windows, its format."""
    found: set[object] = {plan.value_format.name}
    for step in steps(plan):
        found.add(type(step))
        if type(step).__name__.endswith("Join"):
            found.add((type(step), getattr(step, "kind", None)))
        if isinstance(step, Aggregate):
            found.add((Aggregate, step.window and step.window.kind, step.final))
    return found


@cache
def features_of_cases() -> dict[str, frozenset[object]]:
    """Those of the plans of each case of the set."""
    return {
        case.id: frozenset(feature for plan in plans_of(case) for feature in features(plan))
        for case in CASES
    }


def sample() -> list[Case]:
    """Few cases that have all features of the set: each next one has the most new ones.

    Of cases with as many, the one with the fewest records and queries is taken: it is the fastest.
    """
    found = features_of_cases()
    missing = set().union(*found.values())
    chosen: list[Case] = []
    while missing:
        best = max(CASES, key=lambda case: (len(found[case.id] & missing), -cost(case)))
        chosen.append(best)
        missing -= found[best.id]
    return chosen


def cost(case: Case) -> int:
    """How long a case takes on Spark, compared with others."""
    return len(case.data.get("inputs", ())) + 10 * len(plans_of(case))


def check_steps(found: Set[object]) -> None:
    """Features of a set of cases that has every step of plans."""
    assert {each for each in found if isinstance(each, type)} == set(PLAN_NODES)
    for join in (each for each in PLAN_NODES if each.__name__.endswith("Join")):
        assert (join, JoinKind.INNER) in found
        assert (join, JoinKind.LEFT) in found
    windows = {each[1:] for each in found if isinstance(each, tuple) and each[0] is Aggregate}
    assert {kind for kind, _ in windows} == {None, *WindowKind}
    assert any(final for _, final in windows)
    assert found >= {"JSON", "AVRO", "PROTOBUF", "JSON_SR", "DELIMITED"}


@pytest.mark.slow
def test_the_set_is_large_and_has_every_step() -> None:
    assert len(CASES) >= CASES_AT_LEAST
    check_steps(set().union(*features_of_cases().values()))


@pytest.mark.slow
def test_the_sample_is_small_and_has_all_that_the_set_has() -> None:
    found = features_of_cases()
    assert len(sample()) <= SAMPLE_AT_MOST
    assert set().union(*(found[case.id] for case in sample())) == set().union(*found.values())


class TestOnSpark:
    """One worker of pytest runs all of them."""

    pytestmark = MARKS

    @pytest.mark.long
    def test_all_of_ksqldb_s_cases_pass_that_the_native_engine_passes(self) -> None:
        if not SHARED.is_dir():
            pytest.skip("the shared cases are not beside the repository")
        shared_session()
        cases = load_cases([SHARED / TRANSLATIONS])
        functions = "tests.support.sql_test_functions"
        report = CaseReport(tuple(run_cases_on_spark(cases, functions=functions)))
        failed = [each.id for each in report.results if each.status is Status.FAILED]
        wanted = json.loads(FIGURES.read_text())[TRANSLATIONS]
        assert report.count(Status.PASSED) >= wanted, f"these fail: {failed}"

    def test_a_sample_with_every_step_passes(self) -> None:
        check_on_spark(sample())

    @pytest.mark.long
    def test_the_set_passes(self) -> None:
        check_on_spark(CASES)

    def test_a_case_with_a_wrong_result_is_alone(self) -> None:
        shared_session()
        found = run(good=GOOD, wrong=changed(outputs=GOOD["outputs"][:1]))
        assert found["good"] == CaseResult("good", Status.PASSED)
        assert "has 2 records, expected 1" in found["wrong"].reason

    @pytest.mark.long
    def test_a_case_that_fails_is_alone(self) -> None:
        shared_session()
        found = run(
            good=GOOD,
            wrong=changed(outputs=GOOD["outputs"][:1]),
            raising=without_time(),
            expected=without_time(expected_error={"message": "", "phase": "processing"}),
            missing=changed(expected_error={"message": "", "phase": "processing"}),
            refused=changed(statements=["CREATE STREAM s AS SELECT FROM t;"]),
        )
        assert found["good"] == CaseResult("good", Status.PASSED)
        assert "has 2 records, expected 1" in found["wrong"].reason
        assert found["raising"].status is Status.FAILED
        assert "timestamp" in found["raising"].reason.lower()
        assert found["expected"] == CaseResult("expected", Status.PASSED)
        assert "no record fails" in found["missing"].reason
        assert found["refused"].status is Status.FAILED

    def test_scripts_and_requests_are_not_for_spark(self) -> None:
        shared_session()
        cases = [
            Case("script", CaseKind.SCRIPT, {"id": "script", "sql": "SHOW STREAMS;"}),
            Case("request", CaseKind.REST, {"id": "request", "responses": []}),
        ]
        found = list(run_cases_on_spark(cases, jobs=2))
        assert [each.status for each in found] == [Status.UNSUPPORTED, Status.UNSUPPORTED]
        assert [each.reason.split()[0] for each in found] == ["scripts", "requests"]


def check_on_spark(cases: Sequence[Case]) -> None:
    """All cases pass."""
    shared_session()
    results = list(run_cases_on_spark(cases, jobs=2))
    assert [each.id for each in results] == [case.id for case in cases]
    assert [each for each in results if each.status is not Status.PASSED] == []


def run(**cases: Data) -> dict[str, CaseResult]:
    """The results of cases by their names."""
    made = [Case(name, CaseKind.QUERY, data) for name, data in cases.items()]
    return {each.id: each for each in run_cases_on_spark(made, jobs=2)}


def without_time(**parts: object) -> Data:
    """A case whose record has no time, which stops its query."""
    create = (
        "CREATE STREAM s (k INT KEY, a BIGINT) "
        "WITH (kafka_topic='s', value_format='JSON', timestamp='a');"
    )
    return changed(
        statements=[create, deepcopy(GOOD["statements"][1])],
        inputs=[{"topic": "s", "key": 1, "value": {"a": None}}],
        properties={"ksql.timestamp.throw.on.invalid": "true"},
        **parts,
    )
