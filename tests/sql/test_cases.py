"""All cases in tests/cases/sql, each on the native engine."""

import json
from pathlib import Path

import pytest

from sql.testing.cases import Case, load_cases
from sql.testing.results import CaseReport, Status
from sql.testing.running import functions_with, run_case, run_cases

ROOT = Path(__file__).parents[2]
OWN = ROOT / "tests" / "cases" / "sql"
OWN_CASES = load_cases([OWN])
# Cases that are not ours: they may stand beside the repository.
SHARED = ROOT.parent / "shared" / "conformance" / "ksqldb"
FIGURES = Path(__file__).with_name("conformance_figures.json")


@pytest.mark.parametrize("case", OWN_CASES, ids=[each.id for each in OWN_CASES])
def test_the_case_passes(case: Case) -> None:
    result = run_case(case, functions_with(None))
    assert (result.status, result.reason) == (Status.PASSED, "")


def test_ids_of_cases_are_unique() -> None:
    ids = [each.id for each in OWN_CASES]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("place", sorted(json.loads(FIGURES.read_text())))
def test_as_many_shared_cases_pass_as_before(place: str) -> None:
    """`place` is a folder of cases, or a file of those that take long."""
    if not (SHARED / place).exists():
        pytest.skip("the shared cases are not beside the repository")
    wanted = json.loads(FIGURES.read_text())[place]
    cases = load_cases([SHARED / place], scripts=[OWN])
    report = CaseReport(tuple(run_cases(cases, functions="tests.support.sql_test_functions")))
    failed = [each.id for each in report.results if each.status is Status.FAILED]
    assert report.count(Status.PASSED) >= wanted, f"these fail: {failed}"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not beside the repository")
def test_all_shared_cases_have_a_figure() -> None:
    found = {"cases", "sql_cases"}
    found |= {f"rest_cases/{each.name}" for each in (SHARED / "rest_cases").glob("*.json")}
    assert set(json.loads(FIGURES.read_text())) == found
