"""The contract of the REST API: what a real Kafka Connect answers, our worker answers too."""

import pytest

from broker.rest import own_version
from tests.connect.rest.conftest import Served
from tests.connect.rest.contract_table import HttpRequest, Json, check_case, table

pytestmark = pytest.mark.slow

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path, cases in table()
    for case in cases
]


@pytest.mark.parametrize("case", CASES)
def test_requests_are_answered_as_kafka_connect_does(case: Json, served: Served) -> None:
    asked = HttpRequest(served.client, own_version(), served.folder / "files", is_ours=True)
    asked.prepare()
    check_case(case, asked)
