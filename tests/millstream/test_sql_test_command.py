"""`millstream sql test` finds what its command line names."""

import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from millstream.__main__ import command_line

FUNCTIONS = """
from sql.functions.registry import Family

more = Family("TEST")

@more.scalar("TWICE(number INT) -> INT")
def twice(number):
    return 2 * number
"""
CASE = {
    "id": "mine/a function of the user",
    "statements": [
        "CREATE STREAM s (n INT) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE STREAM out AS SELECT TWICE(n) AS twice FROM s;",
    ],
    "inputs": [{"topic": "s", "value": {"n": 4}}],
    "outputs": [{"topic": "OUT", "value": {"TWICE": 8}}],
}


@pytest.mark.slow
def test_functions_are_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "functions_of_mine.py").write_text(FUNCTIONS)
    (tmp_path / "cases.json").write_bytes(orjson.dumps({"cases": [CASE]}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    asked = ["sql", "test", "cases.json", "--functions", "functions_of_mine", "--jobs", "1"]
    result = CliRunner().invoke(command_line, [*asked, "--json"])
    assert result.exception is None, result.exception
    assert orjson.loads(result.output)["passed"] == 1
