"""The cases in `contract/`: requests with the answers they must get, word for word.

A case is a name and steps; a step has a request (method, path, headers, and a body as JSON or a
text as it is), a status and a body. "*" stands for any value, and at the end of a text for any end:
GUIDs are not written down, nor what a library says. REWRITE=1 writes the answers that were given in
place of those that do not match; look at the difference.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

FOLDER = Path(__file__).parent / "contract"
ANYTHING = "*"
REWRITE = os.environ.get("REWRITE") == "1"
NOT_WRITTEN_DOWN = frozenset({"guid"})

# Any: a step is whatever JSON the file holds, and is looked into all the way down.
Step = dict[str, Any]
Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True)
class Case:
    """One case: what it shows, and what is asked and answered."""

    family: str
    name: str
    steps: list[Step]

    def __str__(self) -> str:
        """How pytest names it."""
        return f"{self.family}: {self.name}"


def read_cases(*families: str) -> list[Case]:
    """The cases of some files, or of all."""
    return [
        Case(path.stem, case["name"], case["steps"])
        for path in sorted(FOLDER.glob("*.json"))
        if not families or path.stem in families
        for case in orjson.loads(path.read_bytes())
    ]


def run_case(case: Case, send: Send) -> None:
    """Ask step by step and compare."""
    answers = [send(_request(step["request"])) for step in case.steps]
    if REWRITE:
        _rewrite(case, answers)
    for step, answer in zip(case.steps, answers, strict=True):
        asked = f"{step['request']['method']} {step['request']['path']}"
        found = _content(answer)
        assert answer.status_code == step["status"], (asked, found)
        assert matches(found, step["body"]), (
            f"{asked}\n  found    {found}\n  expected {step['body']}"
        )


def matches(found: object, expected: object) -> bool:
    """Whether two JSON values are the same, but for what may be anything."""
    if expected == ANYTHING:
        return True
    if isinstance(expected, str) and expected.endswith(ANYTHING):
        return isinstance(found, str) and found.startswith(expected[:-1])
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(expected) == list(found) and all(
            matches(found[name], value) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(matches, found, expected))
    return type(found) is type(expected) and found == expected


def _request(step: Step) -> httpx.Request:
    text = step.get("text")
    content = text.encode() if text is not None else None
    if "body" in step:
        content = orjson.dumps(step["body"])
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"} if content else {}
    headers |= step.get("headers", {})
    return httpx.Request(
        step["method"], f"http://registry{step['path']}", content=content, headers=headers
    )


def _content(answer: httpx.Response) -> object:
    try:
        return orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return answer.text


def _rewrite(case: Case, answers: list[httpx.Response]) -> None:
    path = FOLDER / f"{case.family}.json"
    cases = orjson.loads(path.read_bytes())
    (found,) = [each for each in cases if each["name"] == case.name]
    for step, answer in zip(found["steps"], answers, strict=True):
        step["status"] = answer.status_code
        if not matches(_content(answer), step["body"]):
            step["body"] = _masked(_content(answer))
    path.write_bytes(orjson.dumps(cases, option=orjson.OPT_INDENT_2) + b"\n")
    case.steps[:] = found["steps"]


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {
            name: ANYTHING if name in NOT_WRITTEN_DOWN else _masked(inner)
            for name, inner in value.items()
        }
    return [_masked(inner) for inner in value] if isinstance(value, list) else value
