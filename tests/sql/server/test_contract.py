"""The server's contract: requests, and what they are answered with, as data."""

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.sql.server.conftest import Served

pytestmark = pytest.mark.slow

ANYTHING = "*"
CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted(Path(__file__).with_name("contract").glob("*.json"))
    for case in orjson.loads(path.read_bytes())
]


# Any: whatever JSON may hold.
@pytest.mark.parametrize("case", CASES)
def test_requests_are_answered_as_agreed(case: dict[str, Any], served: Served) -> None:
    for step in case["steps"]:
        response = send(served.client, step["request"])
        assert response.status_code == step["status"], response.text
        if "answer" in step:
            check(step["answer"], response)


def send(client: httpx.Client, request: dict[str, Any]) -> httpx.Response:
    content = request.get("text", "").encode()
    if "body" in request:
        content = orjson.dumps(request["body"])
    if "lines" in request:
        content = b"\n".join(orjson.dumps(each) for each in request["lines"])
    return client.request(
        request["method"], request["path"], content=content, headers=request.get("headers")
    )


def check(wanted: Any, response: httpx.Response) -> None:
    if isinstance(wanted, dict) and "contains" in wanted:
        assert wanted["contains"] in response.text
    elif isinstance(wanted, dict) and "lines" in wanted:
        found = [orjson.loads(line) for line in response.text.splitlines()]
        assert fits(found, wanted["lines"]), found
    else:
        found = response.json()
        assert fits(found, wanted), found


def fits(found: Any, wanted: Any) -> bool:
    """Objects may have more members than wanted; lists have no more elements."""
    if wanted == ANYTHING:
        return True
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and fits(found[name], each) for name, each in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(fits, found, wanted))
    return type(found) is type(wanted) and bool(found == wanted)
