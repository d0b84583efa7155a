"""Every transform and predicate does what Kafka's does: the cases hold Kafka's own results."""

import pytest

from tests.connect.transforms.cases import Case, agrees, answer, read_cases


@pytest.mark.parametrize("case", read_cases(), ids=str)
def test_a_transform_does_what_kafkas_does(case: Case) -> None:
    found = answer(case)
    assert agrees(found, case.expected_here), (found, case.expected_here)
