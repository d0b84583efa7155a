"""`python -m tests.support.tidy`: the rules of the house that ruff cannot check.

Files have at most 700 lines and functions at most 60 (docstrings not counted), nobody leaves a note
to fix something later, every folder of tests is a package, and no module is without an importer.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

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


def complaints_about(path: Path) -> Iterator[str]:
    """What is wrong with one file."""
    text = path.read_text()
    name = path.relative_to(ROOT)
    count = text.count("\n")
    if count > FILE_LINES_MAX:
        yield f"{name}: {count} lines, at most {FILE_LINES_MAX}"
    for number, line in enumerate(text.splitlines(), start=1):
        if LATER.search(line):
            yield f"{name}:{number}: a note to fix something later"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = function_lines(node)
            if lines > FUNCTION_LINES_MAX:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines"


def imported_names(path: Path) -> Iterator[str]:
    """Dotted names that a file imports, and those it starts with `python -m`."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from re.findall(rf'"((?:{"|".join(PACKAGES)})(?:\.\w+)+)', text)


def orphans() -> Iterator[str]:
    """Modules of the product and of tests/support that nobody imports."""
    known = {name for path in modules() for name in imported_names(path)}
    for path in modules():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tested = name.startswith(("tests.", "examples.")) and ".support." not in name
        if path.stem in ("__init__", "__main__") or tested or name in known:
            continue
        yield f"{path.relative_to(ROOT)}: nobody imports it"


def folders_without_init() -> Iterator[str]:
    """Folders of tests that pytest would put on the path."""
    for folder in sorted({path.parent for path in (ROOT / "tests").rglob("*.py")}):
        if not (folder / "__init__.py").exists():
            yield f"{folder.relative_to(ROOT)}: has no __init__.py"


def main() -> int:
    """Print every complaint; 1 if there is any."""
    found = [complaint for path in modules() for complaint in complaints_about(path)]
    found += [*folders_without_init(), *orphans()]
    for complaint in found:
        sys.stdout.write(complaint + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
