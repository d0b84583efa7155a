"""Cases on Spark: a set that has every step of plans, and what the runner says of each case."""

import json
from copy import deepcopy
from fnmatch import fnmatchcase
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


def plans() -> list[Sink]:
    """The plans of all queries of the set."""
    engines = [executed(case, builtin_functions()) for case in CASES]
    return [query.plan for engine in engines if engine for query in engine.queries.values()]


def steps(step: PlanNode) -> list[PlanNode]:
    """A step and all before it."""
    before = [getattr(step, name) for name in ("input", "left", "right") if hasattr(step, name)]
    return [step, *(found for each in before for found in steps(each))]


def test_the_set_is_large_and_has_every_step() -> None:
    assert len(CASES) >= CASES_AT_LEAST
    found = [step for plan in plans() for step in steps(plan)]
    assert {type(step) for step in found} == set(PLAN_NODES)
    kinds = {(type(step), getattr(step, "kind", None)) for step in found}
    for join in (each for each in PLAN_NODES if each.__name__.endswith("Join")):
        assert (join, JoinKind.INNER) in kinds
        assert (join, JoinKind.LEFT) in kinds
    windows = {
        step.window.kind
        for step in found
        if isinstance(step, Aggregate) and step.window is not None
    }
    assert windows == set(WindowKind)
    assert any(step.final for step in found if isinstance(step, Aggregate))
    formats = {plan.value_format.name for plan in plans()}
    assert formats >= {"JSON", "AVRO", "PROTOBUF", "JSON_SR", "DELIMITED"}


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

    def test_the_set_passes(self) -> None:
        shared_session()
        results = list(run_cases_on_spark(CASES, jobs=2))
        assert [each.id for each in results] == [case.id for case in CASES]
        assert [each for each in results if each.status is not Status.PASSED] == []

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
