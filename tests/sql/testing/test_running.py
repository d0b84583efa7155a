"""Running cases: what passes, what fails and why."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from broker.errors import MillstreamError
from millstream.commands.sql import sql
from sql.testing.cases import Case, CaseKind, load_cases
from sql.testing.results import CaseReport, CaseResult, Status
from sql.testing.running import functions_with, run_case, run_cases

# Any: what JSON holds.
Data = dict[str, Any]
GOOD: Data = {
    "id": "some/case",
    "statements": [
        "CREATE STREAM s (k INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE STREAM out AS SELECT k, a + 1 AS b FROM s;",
    ],
    "inputs": [
        {"topic": "s", "key": 1, "value": {"a": 1}, "timestamp": 10},
        {"topic": "s", "key": 2, "value": {"a": 2}, "timestamp": 20},
    ],
    "outputs": [
        {"topic": "OUT", "key": 1, "value": {"B": 2}, "timestamp": 10},
        {"topic": "OUT", "key": 2, "value": {"B": 3}, "timestamp": 20},
    ],
    "post": {"sources": [{"name": "OUT", "type": "STREAM", "schema": "K INT KEY, B INT"}]},
}


def run(data: Data, kind: CaseKind = CaseKind.QUERY) -> CaseResult:
    return run_case(Case("some/case", kind, data), functions_with(None))


def changed(**parts: object) -> Data:
    return deepcopy(GOOD) | parts


def test_a_case_passes() -> None:
    assert run(GOOD) == CaseResult("some/case", Status.PASSED)


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (("outputs", 0, "key"), 9, "key is 1, expected 9"),
        (("outputs", 1, "value"), {"B": 4}, "record 1: value is"),
        (("outputs", 1, "value"), None, "record 1: value is"),
        (("outputs", 1, "timestamp"), 21, "timestamp is 20, expected 21"),
        (("outputs", 0, "topic"), "ELSEWHERE", "ELSEWHERE"),
        (("post", "sources", 0, "schema"), "K INT KEY, B BIGINT", "schema of OUT"),
        (("post", "sources", 0, "type"), "TABLE", "type of OUT is STREAM"),
        (("post", "sources", 0, "name"), "NOBODY", "there is no stream or table NOBODY"),
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


def test_a_record_too_few_or_too_many_fails() -> None:
    fewer = changed(outputs=GOOD["outputs"][:1])
    more = changed(outputs=[*GOOD["outputs"], GOOD["outputs"][0]])
    assert "has 2 records, expected 1" in run(fewer).reason
    assert "has 2 records, expected 3" in run(more).reason


def test_an_expected_error_must_come_with_its_message() -> None:
    wrong = [GOOD["statements"][0], "CREATE STREAM out AS SELECT k, missing FROM s;"]
    error = {"message": "'MISSING' cannot be resolved", "phase": "statement"}
    assert run(changed(statements=wrong, expected_error=error)).status is Status.PASSED
    assert "no statement fails" in run(changed(expected_error=error)).reason
    other = changed(statements=wrong, expected_error=error | {"message": "something else"})
    assert "with another message" in run(other).reason
    unexpected = run(changed(statements=wrong))
    assert unexpected.status is Status.FAILED
    assert "MISSING" in unexpected.reason


@pytest.mark.parametrize(
    ("statement", "kind", "passes"),
    [
        ("CREATE STREAM out AS SELECT FROM s;", "some.parser.ParseFailedException", True),
        ("CREATE STREAM out AS SELECT FROM s;", "some.util.KsqlException", True),
        ("CREATE STREAM out AS SELECT z FROM s;", "some.util.KsqlStatementException", True),
        ("CREATE STREAM out AS SELECT z FROM s;", "some.parser.ParseFailedException", False),
        ("CREATE STREAM out AS SELECT z FROM s;", "java.lang.AssertionError", True),
    ],
)
def test_an_expected_error_must_be_of_its_class(statement: str, kind: str, passes: bool) -> None:
    error = {"message": "", "type": kind, "phase": "statement"}
    found = run(changed(statements=[GOOD["statements"][0], statement], expected_error=error))
    assert (found.status is Status.PASSED) == passes
    assert ("another class: StatementFailed" in found.reason) != passes


def test_statements_before_the_expected_error_must_succeed() -> None:
    error = {"message": "cannot be resolved", "phase": "statement"}
    statements = [
        GOOD["statements"][0],
        "CREATE STREAM out AS SELECT k, missing FROM s;",
        "CREATE STREAM more AS SELECT k, missing FROM s;",
    ]
    result = run(changed(statements=statements, expected_error=error))
    assert "an earlier statement fails" in result.reason


def test_an_expected_processing_error_must_come() -> None:
    error = {"message": "", "phase": "processing"}
    assert "no record fails" in run(changed(expected_error=error)).reason
    create = (
        "CREATE STREAM s (k INT KEY, a BIGINT) "
        "WITH (kafka_topic='s', value_format='JSON', timestamp='a');"
    )
    strict = changed(
        statements=[create, GOOD["statements"][1]],
        inputs=[{"topic": "s", "key": 1, "value": {"a": None}}],
        properties={"ksql.timestamp.throw.on.invalid": "true"},
        expected_error=error,
    )
    assert run(strict).status is Status.PASSED


def test_a_topic_that_must_not_exist_fails() -> None:
    forbidden = {"topics": {"forbidden_regex": ".*-repartition"}}
    statements = [
        GOOD["statements"][0],
        "CREATE TABLE out AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;",
    ]
    result = run(changed(statements=statements, outputs=[], post=forbidden))
    assert "-repartition" in result.reason


def written(folder: Path, *cases: Data) -> Path:
    path = folder / "cases.json"
    path.write_text(json.dumps({"file": "cases", "cases": list(cases)}))
    return path


def test_cases_are_loaded_by_kind_and_pattern(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        GOOD,
        {"id": "script/one", "sql": "SHOW STREAMS;"},
        {"id": "rest/one", "responses": []},
    )
    kinds = [each.kind for each in load_cases([tmp_path])]
    assert kinds == [CaseKind.QUERY, CaseKind.SCRIPT, CaseKind.REST]
    assert [each.id for each in load_cases([path], "script/*")] == ["script/one"]


def test_scripts_are_found_beside_the_cases_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "make.sql").write_text(GOOD["statements"][0])
    (tmp_path / "secret.sql").write_text(GOOD["statements"][0])
    ids = ("make.sql", "/make.sql", "../secret.sql", "missing.sql")
    written(folder, *({"id": each, "sql": f"RUN SCRIPT '{each}';"} for each in ids))
    results = [run_case(each, functions_with(None)) for each in load_cases([folder])]
    assert [each.status is Status.PASSED for each in results] == [True, True, False, False]
    assert "Could not find script ../secret.sql" in results[2].reason


def test_scripts_may_lie_in_another_folder(tmp_path: Path) -> None:
    for name in ("cases", "scripts"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "make.sql").write_text(GOOD["statements"][0])
    cases = str(written(tmp_path / "cases", {"id": "one", "sql": "RUN SCRIPT '/make.sql';"}))
    assert CliRunner().invoke(sql, ["test", cases]).exit_code == 1
    scripts = str(tmp_path / "scripts")
    assert CliRunner().invoke(sql, ["test", cases, "--scripts", scripts]).exit_code == 0


def test_files_that_hold_no_cases_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[1, 2")
    with pytest.raises(MillstreamError, match="not a file of cases"):
        load_cases([wrong])
    with pytest.raises(MillstreamError, match=r"nowhere.* does not exist"):
        load_cases([tmp_path / "nowhere"])


def test_the_report_counts_and_shows_what_failed() -> None:
    report = CaseReport(
        (
            CaseResult("a", Status.PASSED),
            CaseResult("b", Status.FAILED, "why"),
            CaseResult("c", Status.UNSUPPORTED, "not yet"),
        )
    )
    found = json.loads(report.as_json())
    assert {name: found[name] for name in ("passed", "failed", "unsupported", "total")} == {
        "passed": 1,
        "failed": 1,
        "unsupported": 1,
        "total": 3,
    }
    assert found["cases"][1] == {"id": "b", "status": "failed", "reason": "why"}
    text = "\n".join(report.lines())
    assert "why" in text
    assert "3 cases: 1 passed, 1 failed, 1 unsupported" in text


@pytest.mark.slow
def test_several_processes_give_the_same_results_in_order() -> None:
    cases = [Case(f"case {n}", CaseKind.QUERY, GOOD) for n in range(5)]
    assert [each.id for each in run_cases(cases, jobs=2)] == [each.id for each in cases]


def test_the_command_fails_if_a_case_does(tmp_path: Path) -> None:
    good = written(tmp_path, GOOD)
    passed = CliRunner().invoke(sql, ["test", str(good), "--json"])
    assert passed.exit_code == 0
    assert json.loads(passed.output)["passed"] == 1
    bad = written(tmp_path, changed(outputs=GOOD["outputs"][:1]))
    failed = CliRunner().invoke(sql, ["test", str(bad)])
    assert failed.exit_code == 1
    assert "1 failed" in failed.output


def test_functions_of_a_module_can_be_called() -> None:
    statements = [GOOD["statements"][0], "CREATE STREAM out AS SELECT k, TEST_UDF(a) AS b FROM s;"]
    outputs = [
        {"topic": "OUT", "key": key, "value": {"B": "doStuffLongVarargs"}, "timestamp": None}
        for key in (1, 2)
    ]
    case = Case("udf", CaseKind.QUERY, changed(statements=statements, outputs=outputs, post=None))
    result = run_case(case, functions_with("tests.support.sql_test_functions"))
    assert result == CaseResult("udf", Status.PASSED)
    with pytest.raises(MillstreamError, match="there is no module"):
        functions_with("no.such.module")
