"""The contract table: requests to a Connect worker, and what Kafka Connect answered them with.

A case is a list of steps; each has a request, and the status, headers and answer it must get.

    "eventually": true          the request is repeated until the answer is right
    "contains": true            the answer may have more elements than are listed
    "only": [names]             only these members of the answer count
    "brief": true               of a validation only the values and errors count
    "ours": {...}               what our worker answers where Kafka Connect blames itself, with 500
    "*"                         anything
    "<worker>" "<version>"      the worker's address, the version of a plugin
    "{folder}"                  in requests: the folder of the test

REWRITE=1 with a real Kafka Connect writes its answers into the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.support.peer import wait_until

FOLDER = Path(__file__).with_name("contract")
ANYTHING = "*"
# Answers may differ in these members: words, times, traces, and what else there is to choose.
OPEN_MEMBERS = frozenset(
    {"commit", "documentation", "kafka_cluster_id", "last_modified", "recommended_values", "trace"}
)
HEADERS = ("location",)
FILLED = "one\ntwo\nthree\n"
SETTLED_S = 30.0

# Any: whatever JSON may hold.
Json = Any


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A worker to ask, and what stands for the parts of its answers that are its own."""

    client: httpx.Client
    version: str
    folder: Path
    is_ours: bool

    def prepare(self) -> None:
        """Make the files that connectors of the table read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "filled.txt").write_text(FILLED)


def table() -> Iterator[tuple[Path, list[Json]]]:
    """All files of the table with their cases."""
    for path in sorted(FOLDER.glob("*.json")):
        yield path, orjson.loads(path.read_bytes())


def check_case(case: Json, asked: HttpRequest) -> None:
    """Go through the steps of a case."""
    for step in case["steps"]:
        check_step(step, asked)


def check_step(step: Json, asked: HttpRequest) -> None:
    """Send the request and compare the answer, until it is right if the step says so."""
    wanted = {**step, **(step.get("ours", {}) if asked.is_ours else {})}
    found: Json = None

    def right() -> bool:
        nonlocal found
        found = answered(step, asked)
        return difference(wanted, found) is None

    # Kafka's workers answer from what they have read back, which may come a moment later.
    settles = not asked.is_ours and step["request"]["method"] == "GET"
    if settles or step.get("eventually"):
        try:
            wait_until(right, f"the answer to {step['request']}", timeout_s=SETTLED_S)
        except TimeoutError:
            raise AssertionError(f"{step['request']}: {difference(wanted, found)}") from None
    elif not right():
        raise AssertionError(f"{step['request']}: {difference(wanted, found)}")


def difference(wanted: Json, found: Json) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    for part in ("status", "headers"):
        if part in wanted and wanted[part] != found[part]:
            return f"{part} is {found[part]}, not {wanted[part]}: {found['answer']}"
    if "answer" not in wanted:
        return None
    answer = found["answer"]
    if "only" in wanted:
        answer = {name: answer[name] for name in wanted["only"]}
    if wanted.get("contains"):
        missing = [each for each in wanted["answer"] if each not in answer]
        return f"{missing} is missing" if missing else None
    return _difference(wanted["answer"], answer, "")


def _difference(wanted: Json, found: Json, at: str) -> str | None:
    if wanted in (ANYTHING, found):
        return None
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        parts = ((_difference(wanted[name], found[name], f"{at}/{name}")) for name in wanted)
        return next((part for part in parts if part), None)
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        numbered = enumerate(zip(wanted, found, strict=True))
        several = (_difference(left, right, f"{at}/{n}") for n, (left, right) in numbered)
        return next((part for part in several if part), None)
    return f"{at or 'the answer'} is {found!r}, not {wanted!r}"


def answered(step: Json, asked: HttpRequest) -> Json:
    """Send the request of a step; status, headers and answer with their own parts replaced."""
    response = send(step["request"], asked)
    try:
        answer = response.json() if response.content else None
    except ValueError:
        answer = ANYTHING  # pages of Kafka's HTTP server
    if response.status_code == httpx.codes.INTERNAL_SERVER_ERROR and isinstance(answer, dict):
        answer["message"] = ANYTHING  # what Java says of itself
    if step.get("brief") and isinstance(answer, dict) and "configs" in answer:
        answer = _brief(answer)
    headers = {name: response.headers[name] for name in HEADERS if name in response.headers}
    return {
        "status": response.status_code,
        "headers": _replaced(headers, asked),
        "answer": _replaced(answer, asked),
    }


def send(request: Json, asked: HttpRequest) -> httpx.Response:
    """Send a request; workers of a group answer 409 while they share out their work."""
    content = _filled(request.get("text", ""), asked).encode()
    headers = dict(request.get("headers", {}))
    if "body" in request:
        content = _filled(orjson.dumps(request["body"]).decode(), asked).encode()
        headers = {"Content-Type": "application/json", **headers}
    response = None

    def settled() -> bool:
        nonlocal response
        response = asked.client.request(
            request["method"], request["path"], content=content or None, headers=headers
        )
        return response.status_code != httpx.codes.CONFLICT or "rebalance" not in response.text

    wait_until(settled, f"an answer to {request}")
    assert response is not None
    return response


def _filled(text: str, asked: HttpRequest) -> str:
    return text.replace("{folder}", str(asked.folder))


def _replaced(value: Json, asked: HttpRequest) -> Json:
    if isinstance(value, dict):
        return {
            name: ANYTHING if name in OPEN_MEMBERS and each is not None else _replaced(each, asked)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_replaced(each, asked) for each in value]
    if isinstance(value, str):
        address = asked.client.base_url.netloc.decode()
        text = value.replace(str(asked.folder), "{folder}").replace(address, "<worker>")
        if text == asked.version or f"[{asked.version}]" in text:
            text = text.replace(asked.version, "<version>")
        return text
    return value


def _brief(answer: Json) -> Json:
    """A validation without its definitions: each setting's value, then its errors."""
    values = [config["value"] for config in answer["configs"]]
    return {
        "name": answer["name"],
        "error_count": answer["error_count"],
        "values": {value["name"]: [value["value"], *value["errors"]] for value in values},
    }
