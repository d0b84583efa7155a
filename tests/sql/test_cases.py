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
# How many pass, and the ids of the others.
FIGURES = Path(__file__).with_name("conformance_figures.json")
FAILURES = Path(__file__).with_name("conformance_failures.json")
FOUND: dict[str, int] = dict(sorted(json.loads(FIGURES.read_text()).items()))
REST = "rest_cases/"  # each with a server of its own
SAMPLE = 6


@pytest.mark.parametrize("case", OWN_CASES, ids=[each.id for each in OWN_CASES])
def test_the_case_passes(case: Case) -> None:
    result = run_case(case, functions_with(None))
    assert (result.status, result.reason) == (Status.PASSED, "")


def test_ids_of_cases_are_unique() -> None:
    ids = [each.id for each in OWN_CASES]
    assert len(set(ids)) == len(ids)


def check_shared_cases(place: str, *, every: int = 1) -> None:
    """The cases that fail are those that are known; `every` one of them is run.

    `place` is a folder of cases, or a file of those that take long.
    """
    if not (SHARED / place).exists():
        pytest.skip("the shared cases are not beside the repository")
    cases = load_cases([SHARED / place], scripts=[OWN])
    known = json.loads(FAILURES.read_text())[place]
    assert len(cases) - len(known) == FOUND[place], "the figures fit the failures"
    chosen = cases[::every]
    report = CaseReport(tuple(run_cases(chosen, functions="tests.support.sql_test_functions")))
    failed = [each for each in report.results if each.status is not Status.PASSED]
    expected = sorted({case.id for case in chosen} & {*known})
    assert sorted(each.id for each in failed) == expected, failed


@pytest.mark.slow
@pytest.mark.spread
@pytest.mark.timeout(900)
@pytest.mark.parametrize("place", [each for each in FOUND if not each.startswith(REST)])
def test_all_shared_cases_but_those_that_are_known_pass(place: str) -> None:
    check_shared_cases(place)


@pytest.mark.slow
@pytest.mark.spread
@pytest.mark.parametrize("place", [each for each in FOUND if each.startswith(REST)])
def test_a_sample_of_the_shared_rest_cases_passes(place: str) -> None:
    check_shared_cases(place, every=SAMPLE)


@pytest.mark.long
@pytest.mark.spread
@pytest.mark.timeout(900)
@pytest.mark.parametrize("place", [each for each in FOUND if each.startswith(REST)])
def test_all_shared_rest_cases_but_those_that_are_known_pass(place: str) -> None:
    check_shared_cases(place)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not beside the repository")
def test_all_shared_cases_have_a_figure() -> None:
    found = {"cases", "sql_cases"}
    found |= {f"rest_cases/{each.name}" for each in (SHARED / "rest_cases").glob("*.json")}
    assert set(FOUND) == found
