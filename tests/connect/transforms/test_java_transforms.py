"""The cases against Kafka's own transforms; REWRITE=1 writes their results down."""

import os
from itertools import groupby

import pytest

from tests.connect.transforms.cases import Case, agrees, read_cases, write_cases
from tests.connect.transforms.notation import Json
from tests.support.kafka_connect import ask_kafka_connect

pytestmark = [pytest.mark.peer, pytest.mark.slow]


def test_kafkas_own_transforms_give_the_results_of_the_cases() -> None:
    cases = read_cases()
    answers = ask_kafka_connect([case.content for case in cases])
    if os.environ.get("REWRITE"):
        _rewrite(cases, answers)
    wrong = [
        (str(case), found, case.expected)
        for case, found in zip(cases, answers, strict=True)
        if not _same(found, case.expected)
    ]
    assert wrong == []


def _same(found: Json, expected: Json) -> bool:
    if isinstance(expected, dict) and str(expected.get("error", "")).endswith("*"):
        return agrees(found, expected)
    return bool(found == expected)


def _rewrite(cases: list[Case], answers: list[Json]) -> None:
    for case, found in zip(cases, answers, strict=True):
        if _same(found, case.expected) and ("error" in case.content or "result" in case.content):
            continue
        case.content.pop("error", None)
        case.content.pop("result", None)
        failed = isinstance(found, dict) and "error" in found
        case.content.update(found if failed else {"result": found})
    for family, group in groupby(cases, key=lambda case: case.family):
        write_cases(family, [case.content for case in group])
