"""`python -m tests.support.tidy`: style rules that ruff cannot check.

Files have at most 700 lines and functions at most 60 (without docstrings), there are no notes to
fix something later, every folder of tests is a package, and every module is imported somewhere.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from tests.support.file_findings import FileFindings

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("broker", "streams", "sql", "connect", "millstream", "benchmarks", "examples", "tests")
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
LATER = re.compile(r"\b(FIX" + "ME|TO" + "DO|XX" + "X)\b")


def modules() -> Iterator[Path]:
    """All Python files of the repository."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        text = node.body[0]
        lines -= (text.end_lineno or text.lineno) - text.lineno + 1
    return lines


class FileReport(TypedDict):
    """The findings in one file."""

    complaints: list[str]
    imports: list[str]


def find(path: Path, text: str) -> FileReport:
    """The complaints about a file, and its imports."""
    nodes = [*ast.walk(ast.parse(text))]
    return {
        "complaints": [*complaints_about(path, text, nodes)],
        "imports": [*imported_names(text, nodes)],
    }


def complaints_about(path: Path, text: str, nodes: list[ast.AST]) -> Iterator[str]:
    """The complaints about one file."""
    name = path.relative_to(ROOT)
    count = text.count("\n")
    if count > FILE_LINES_MAX:
        yield f"{name}: {count} lines, at most {FILE_LINES_MAX}"
    for note in LATER.finditer(text):
        number = text.count("\n", 0, note.start()) + 1
        yield f"{name}:{number}: a note to fix something later"
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = function_lines(node)
            if lines > FUNCTION_LINES_MAX:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines"


def imported_names(text: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Dotted names that a file imports or starts with `python -m`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from re.findall(rf'"((?:{"|".join(PACKAGES)})(?:\.\w+)+)', text)


def orphans(found: dict[Path, FileReport]) -> Iterator[str]:
    """Modules of the product and of tests/support that are never imported."""
    known = {name for report in found.values() for name in report["imports"]}
    for path in found:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tested = name.startswith(("tests.", "examples.")) and ".support." not in name
        if path.stem in ("__init__", "__main__") or tested or name in known:
            continue
        yield f"{path.relative_to(ROOT)}: never imported"


def folders_without_init() -> Iterator[str]:
    """Folders of tests that pytest would add to sys.path."""
    for folder in sorted({path.parent for path in (ROOT / "tests").rglob("*.py")}):
        if not (folder / "__init__.py").exists():
            yield f"{folder.relative_to(ROOT)}: has no __init__.py"


def main() -> int:
    """Print all complaints; return 1 if there is any."""
    findings = FileFindings(Path(__file__), find)
    found = {path: findings.of(path) for path in modules()}
    findings.save()
    complaints = [each for report in found.values() for each in report["complaints"]]
    complaints += [*folders_without_init(), *orphans(found)]
    for complaint in complaints:
        sys.stdout.write(complaint + "\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
