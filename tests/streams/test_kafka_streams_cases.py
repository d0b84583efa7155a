"""The Kafka Streams conformance cases, where they lie beside the repository."""

from pathlib import Path

import pytest

from tests.kafka_streams_cases.cases import read_cases
from tests.kafka_streams_cases.on_driver import open_driver
from tests.kafka_streams_cases.report import as_text
from tests.kafka_streams_cases.run import run_case

PACK = Path(__file__).parents[3] / "shared" / "conformance" / "kafka_streams"
# How many passed when this was written; it may only grow.
PASSED = 468


@pytest.mark.slow
@pytest.mark.skipif(not PACK.is_dir(), reason="the conformance cases are not beside the repository")
def test_as_many_cases_pass_as_did() -> None:
    """Cases that show a quirk of Kafka are left out."""
    outcomes = [run_case(case, open_driver) for case in read_cases([PACK])]
    passed = sum(outcome.passed for outcome in outcomes)
    assert passed >= PASSED, as_text(outcomes)
