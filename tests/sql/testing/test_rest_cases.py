"""Cases of the HTTP API: what passes, what fails and why."""

from copy import deepcopy
from typing import Any

import pytest

from sql.testing.cases import Case, CaseKind
from sql.testing.results import CaseResult, Status
from sql.testing.running import functions_with, run_case

pytestmark = pytest.mark.slow

# Any: what JSON holds.
Data = dict[str, Any]
GOOD: Data = {
    "id": "some/case",
    "statements": [
        "CREATE STREAM s (k STRING KEY, a INT) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE TABLE sums AS SELECT k, SUM(a) AS total FROM s GROUP BY k;",
        "SELECT * FROM sums;",
        "SELECT a FROM s EMIT CHANGES LIMIT 2;",
    ],
    "first_query": 2,
    "inputs": [
        {"topic": "s", "key": "x", "value": {"a": 1}, "timestamp": 10},
        {"topic": "s", "key": "x", "value": {"a": 2}, "timestamp": 20},
    ],
    "outputs": [
        {"topic": "SUMS", "key": "x", "value": {"TOTAL": 1}, "timestamp": 10},
        {"topic": "SUMS", "key": "x", "value": {"TOTAL": 3}, "timestamp": 20},
    ],
    "responses": [
        {"kind": "admin", "body": {"@type": "currentStatus"}},
        {"kind": "admin", "body": {"@type": "currentStatus"}},
        {
            "kind": "query",
            "body": [
                {"header": {"schema": "`K` STRING KEY, `TOTAL` INTEGER"}},
                {"row": {"columns": ["x", 3]}},
            ],
        },
        {
            "kind": "query",
            "body": [
                {"header": {"queryId|starts_with": "transient_"}},
                {"row": {"columns": [2]}},
                {"row": {"columns": [1]}},
                {"finalMessage": "Limit Reached"},
            ],
        },
    ],
}


def run(data: Data) -> CaseResult:
    return run_case(Case("some/case", CaseKind.REST, data), functions_with(None))


def test_a_case_passes_whatever_the_order_of_rows() -> None:
    assert run(GOOD) == CaseResult("some/case", Status.PASSED)


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (("outputs", 1, "value"), {"TOTAL": 4}, "record 1: value is"),
        (("outputs", 1), {"topic": "s", "key": "x", "value": {"a": 1}}, "more records"),
        (("responses", 0, "body"), {"@type": "streams"}, "answer 0 is"),
        (("responses", 2, "body", 0, "header", "schema"), "`K` STRING", "answer 2, part 0"),
        (("responses", 2, "body", 1, "row", "columns"), ["x", 4], "answer 2 has no row"),
        (("responses", 3, "body", 1, "row", "columns"), [1], "answer 3 has no row"),
        (("responses", 3, "body", 3, "finalMessage"), "Query Completed", "answer 3, part 3"),
        (("responses", 3, "body", 1, "row", "tombstone"), True, "answer 3, part 1"),
        (
            ("responses", 3, "body", 0, "header", "queryId|starts_with"),
            "other_",
            "answer 3, part 0",
        ),
    ],
)
def test_every_wrong_expectation_fails(
    place: tuple[str | int, ...], value: object, why: str
) -> None:
    data: Any = deepcopy(GOOD)
    part = data
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    result = run(data)
    assert result.status is Status.FAILED
    assert why in result.reason


def test_an_expected_error_must_come_with_its_status_and_kind() -> None:
    statements = [*GOOD["statements"][:2], "SELECT missing FROM sums;"]
    error = {
        "type": "io.confluent.ksql.rest.entity.KsqlStatementErrorMessage",
        "message": "MISSING",
        "status": 400,
    }
    data = GOOD | {"statements": statements, "expected_error": error, "outputs": []}
    assert run(data).status is Status.PASSED
    assert "another message" in run(data | {"expected_error": error | {"message": "?"}}).reason
    assert "the status is 400" in run(data | {"expected_error": error | {"status": 500}}).reason
    assert "no request fails" in run(GOOD | {"expected_error": error}).reason
    assert "a request fails" in run(data | {"expected_error": None}).reason


def test_inputs_may_come_after_the_query_has_begun() -> None:
    data = GOOD | {
        "statements": [GOOD["statements"][0], GOOD["statements"][3]],
        "first_query": 1,
        "properties": {"auto.offset.reset": "latest"},
        "inputs_after_query_start": True,
        "outputs": [],
        "responses": [GOOD["responses"][0], GOOD["responses"][3]],
    }
    assert run(data) == CaseResult("some/case", Status.PASSED)


@pytest.mark.parametrize(("row", "status"), [("A: 1\n", Status.PASSED), ("A: 2\n", Status.FAILED)])
def test_rows_in_protobuf_are_compared_as_text(row: str, status: Status) -> None:
    schema = 'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  int32 A = 1;\n}\n'
    end = {"finalMessage": "Limit Reached"}
    answers = [
        {"kind": "query", "body": [{"header": {}}, {"row": {"columns": [1]}}, end]},
        {"kind": "queryProto", "body": [{"header": {"protoSchema": schema}}, {"row": row}, end]},
    ]
    data = GOOD | {
        "statements": [GOOD["statements"][0], "SELECT a FROM s LIMIT 1;"],
        "first_query": 1,
        "proto_responses": True,
        "outputs": [],
        "inputs": GOOD["inputs"][:1],
        "responses": [GOOD["responses"][0], *answers],
    }
    assert run(data).status is status
