"""Cases of functions in whole queries."""

from pathlib import Path

import pytest

from sql.testing.cases import Case, load_cases
from sql.testing.results import Status
from sql.testing.running import functions_with, run_case

FILES = sorted((Path(__file__).parents[2] / "cases" / "sql").glob("functions_*.json"))


@pytest.mark.parametrize("case", load_cases(FILES), ids=lambda case: case.id)
def test_a_query_gives_what_the_case_says(case: Case) -> None:
    result = run_case(case, functions_with(None))
    assert result.status is Status.PASSED, result
