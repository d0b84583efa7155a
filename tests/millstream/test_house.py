"""The house itself: packages are ours, rules that ruff cannot check hold."""

import importlib
import re
from pathlib import Path

import pytest

from tests.support import tidy
from tests.support.file_findings import FileFindings
from tests.support.scheduling import longest_first


@pytest.mark.parametrize("package", ["broker", "streams", "sql", "connect", "millstream"])
def test_a_package_is_loaded_from_this_repository(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).parent.parent == tidy.ROOT


def test_a_long_function_is_reported() -> None:
    import ast

    body = "\n".join("    x = 1" for _ in range(tidy.FUNCTION_LINES_MAX))
    node = ast.parse(f"def long():\n{body}").body[0]
    assert isinstance(node, ast.FunctionDef)
    assert tidy.function_lines(node) == tidy.FUNCTION_LINES_MAX + 1


def test_hooks_before_a_commit_run_only_tools_of_the_environment() -> None:
    config = (tidy.ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: *(.+)", config) == ["local"]
    entries = re.findall(r"entry: *(\S+)", config)
    assert entries
    assert [each for each in entries if not each.startswith(".venv/bin/")] == []


def test_findings_of_a_file_are_kept_until_the_file_or_the_check_changes(tmp_path: Path) -> None:
    check, file = tmp_path / "check.py", tmp_path / "file.py"
    check.write_text("1")
    file.write_text("a")
    read: list[str] = []

    def find(_path: Path, text: str) -> list[str]:
        read.append(text)
        return [text.upper()]

    def findings() -> list[str]:
        of_files = FileFindings(check, find, folder=tmp_path / "kept")
        found = of_files.of(file)
        of_files.save()
        return found

    assert (findings(), findings(), read) == (["A"], ["A"], ["a"])
    file.write_text("b")
    assert (findings(), read) == (["B"], ["a", "b"])
    check.write_text("2")
    assert (findings(), read) == (["B"], ["a", "b", "b"])


def test_groups_of_tests_that_take_long_come_first() -> None:
    groups = {
        "tests/short.py": {"tests/short.py::a": False, "tests/short.py::b": False},
        "tests/known.py": {"tests/known.py::a": False},
        "tests/guessed.py": {"tests/guessed.py::a": False},
        "kafka": {"tests/kafka.py::a": False},
    }
    guessed = {test: 0.01 for tests in groups.values() for test in tests}
    guessed["tests/guessed.py::a"] = 45.0
    found = longest_first(groups, {"tests/known.py::a": 10.0}, guessed)
    assert found == ["tests/guessed.py", "kafka", "tests/known.py", "tests/short.py"]
