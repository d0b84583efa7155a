"""The house itself: packages are ours, rules that ruff cannot check hold."""

import importlib
import re
from pathlib import Path

import pytest

from tests.support import tidy


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
