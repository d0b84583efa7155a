"""REST cases: statements and queries through the HTTP API of a real server on a real broker."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx

from sql.errors import SqlError
from sql.functions.registry import FunctionRegistry
from sql.parse import parse
from sql.server.answers import PROTOBUF
from sql.syntax.statements import Statement
from sql.testing.cases import Case
from sql.testing.comparing import TypedRecord, difference
from sql.testing.failures import CaseFailed
from sql.testing.query_cases import encoded_inputs, typed_record
from sql.testing.rest_answers import check_answer
from sql.testing.rest_environment import RestEnvironment, service
from sql.testing.topic_setup import set_up_topics

ERROR_TAGS = {
    "io.confluent.ksql.rest.entity.KsqlStatementErrorMessage": ("statement_error",),
    # Statement errors are also errors.
    "io.confluent.ksql.rest.entity.KsqlErrorMessage": ("generic_error", "statement_error"),
}


class RequestFailed(Exception):
    """The server responded with an error."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message')}")
        self.status = status
        self.body = body


def run_rest_case(case: Case, functions: FunctionRegistry) -> None:
    """Run a case; CaseFailed, or any other error, if it does not pass."""
    data = case.data
    expected: Mapping[str, Any] = data.get("expected_error") or {}
    with service().environment(functions, data.get("properties") or {}) as environment:
        try:
            answers = list(_responses(environment, data))
        except RequestFailed as failed:
            if not expected:
                raise CaseFailed(f"a request fails: {failed}") from failed
            _check_error(failed, expected, str(data["statements"][-1]))
            return
        if expected:
            raise CaseFailed(f"no request fails; expected: {expected['message']}")
        _check_outputs(environment, data)
        wanted = data.get("responses") or ()
        if len(answers) < len(wanted):
            raise CaseFailed(f"{len(answers)} answers, expected {len(wanted)}")
        for number, (answer, response) in enumerate(zip(answers, wanted, strict=False)):
            check_answer(answer, response, f"answer {number}")


def _responses(environment: RestEnvironment, data: Mapping[str, Any]) -> Iterator[Any]:
    """The responses of the server: entities, then the results of queries."""
    statements: list[str] = data["statements"]
    first = data["first_query"]
    environment.make_topics(data, _parsed(statements[:first]))
    set_up_topics(environment, {**data, "outputs": ()}, _parsed(statements[:first]))
    if first:
        yield from _json(environment.post("/ksql", "\n".join(statements[:first])))
    inputs_later = data.get("inputs_after_query_start")
    if not inputs_later:
        environment.produce(encoded_inputs(environment, data))
        environment.wait_until_caught_up()
    else:
        environment.wait_until_running()
    for statement in statements[first:]:
        if inputs_later:
            yield _opened_before_inputs(environment, data, statement)
        else:
            yield _json(environment.post("/query", statement))
    if data.get("proto_responses"):
        for statement in statements[first:]:
            yield _json(environment.post("/query-stream", statement, accept=PROTOBUF))


def _parsed(statements: Sequence[str]) -> list[Statement]:
    try:
        return [each.statement for each in parse("\n".join(statements))]
    except SqlError:
        return []  # the server will report it


# Any: any JSON value.
def _opened_before_inputs(
    environment: RestEnvironment, data: Mapping[str, Any], statement: str
) -> Any:
    with environment.stream("/query", statement) as response:
        parts = response.iter_bytes()
        # With the header, the query has determined its start position.
        text = next(parts, b"") if response.is_success else b""
        if response.is_success:
            environment.produce(encoded_inputs(environment, data))
        text += b"".join(parts)
        return _checked(response.status_code, text)


def _json(response: httpx.Response) -> Any:
    return _checked(response.status_code, response.content)


def _checked(status: int, text: bytes) -> Any:
    content = json.loads(text, parse_float=Decimal)
    if status != httpx.codes.OK:
        raise RequestFailed(status, content)
    if isinstance(content, list) and content and "errorMessage" in content[-1]:
        raise RequestFailed(status, content[-1]["errorMessage"])
    return content


def _check_error(failed: RequestFailed, expected: Mapping[str, Any], statement: str) -> None:
    body = failed.body
    if (expected.get("message") or "") not in str(body.get("message")):
        raise CaseFailed(
            f"fails as expected, with another message: {body.get('message')!r}, "
            f"expected: {expected['message']!r}"
        )
    if expected.get("status") not in (None, failed.status):
        raise CaseFailed(f"the status is {failed.status}, expected {expected['status']}")
    kind = expected.get("type")
    if kind is not None and body.get("@type") not in ERROR_TAGS[kind]:
        raise CaseFailed(f"the error is a {body.get('@type')}, expected {kind}")
    if kind is not None and ERROR_TAGS[kind] == ("statement_error",):
        found = str(body.get("statementText"))
        if found.rstrip(";") != statement.rstrip(";"):
            raise CaseFailed(f"the error is of statement {found!r}, expected {statement!r}")


def _check_outputs(environment: RestEnvironment, data: Mapping[str, Any]) -> None:
    """Each topic has exactly the expected records, in order in each partition."""
    expected: dict[str, list[Mapping[str, Any]]] = {}
    for each in data.get("outputs") or ():
        expected.setdefault(each["topic"], []).append(each)
    for topic, wanted in expected.items():
        partitions = [
            [replace(typed_record(environment, topic, each), headers=()) for each in records]
            for records in environment.records(topic)
        ]
        _check_topic(topic, partitions, wanted)


def _check_topic(
    topic: str, partitions: list[list[TypedRecord]], wanted: Sequence[Mapping[str, Any]]
) -> None:
    left = [list(each) for each in partitions]
    for number, record in enumerate(wanted):
        plain = {name: value for name, value in record.items() if name != "headers"}
        differs = [difference(each[0], plain) for each in left if each]
        if None not in differs:
            why = differs[0] if differs else "there is none"
            raise CaseFailed(f'topic "{topic}", record {number}: {why}')
        next(each for each in left if each and difference(each[0], plain) is None).pop(0)
    if any(left):
        raise CaseFailed(f'topic "{topic}" has more records: {left}')
