"""`python -m tests.support.plain_words [--all] [PATH ...]`: reports words that are not plain.

Without `--all`, only texts for users are checked: READMEs and other documents, and strings of the
product, that is, help texts, errors and log lines (the help of a command is its docstring). With
`--all`, docstrings, comments and names are also checked.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.support.file_findings import FileFindings

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("broker", "streams", "sql", "connect", "millstream", "examples", "benchmarks")
# What to write instead: strings; characters; emitted, reported; again; is not a ...
WORDS = re.compile(
    r"\b(anew|told|tells|signs|texts|nobody|somebody|whoever|patiently|hitherto|thereof)\b"
    r"|(?<!here )\bis no (?!longer\b|more\b|other\b)[a-z]+"
    r"|\b(lets? go of|takes? turns|looks? after|can be had|may pass|is to run|comes? to nothing)\b",
    re.IGNORECASE,
)
NAMES = re.compile(
    r"Keeper|Alone\b|Asked|Surroundings|\bPlaces\b|\bWays\b|Kept|\bLater\b|\bLeg\b|Flight|Steering"
    r"|Telling|Reaching|\baround\b|_told\b|let_go_on|_never_was|patiently|may_pass|SIGNS"
)


def documents() -> Iterator[Path]:
    """All Markdown files."""
    yield from sorted(ROOT.glob("*.md"))
    for package in (*PACKAGES, "tests", "docs"):
        yield from sorted((ROOT / package).rglob("*.md"))


def modules() -> Iterator[Path]:
    """The Python files of the product."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The first lines of docstrings, except those that are the help of a command."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node) is not None and not _is_command(node):
            found.add(node.body[0].lineno)
    return found


def _is_command(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(re.search(r"command|group", ast.unparse(each)) for each in decorators)


def in_module(source: str, *, everything: bool) -> Iterator[tuple[int, str]]:
    """Line numbers and words of a module."""
    hidden = docstring_lines(ast.parse(source))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        number, name = token.start[0], tokenize.tok_name[token.type]
        is_string = name in ("STRING", "FSTRING_MIDDLE")
        if (is_string and number not in hidden) or (
            everything and (is_string or name == "COMMENT")
        ):
            yield from _in_text(token.string, number, WORDS)
        elif everything and name == "NAME":
            yield from _in_text(token.string, number, NAMES)


def _in_text(text: str, first: int, words: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=first):
        for match in words.finditer(line):
            yield number, match[0]


def find(path: Path, text: str) -> list[tuple[int, str]]:
    """Line numbers and words of a file, in texts for users."""
    return (
        [*_in_text(text, 1, WORDS)]
        if path.suffix == ".md"
        else [*in_module(text, everything=False)]
    )


def find_everywhere(path: Path, text: str) -> list[tuple[int, str]]:
    """Line numbers and words of a file, also in docstrings, comments and names."""
    return find(path, text) if path.suffix == ".md" else [*in_module(text, everything=True)]


def main(*arguments: str) -> int:
    """Print each word with its location; return 1 if there is any."""
    everything = "--all" in arguments
    wanted = [Path(each).resolve() for each in arguments if each != "--all"] or [ROOT]
    chosen = [
        path
        for path in (*documents(), *modules())
        if any(path.is_relative_to(each) for each in wanted)
    ]
    if everything:
        found = {path: find_everywhere(path, path.read_text()) for path in chosen}
    else:
        findings = FileFindings(Path(__file__), find)
        found = {path: findings.of(path) for path in chosen}
        findings.save()
    for path, words in found.items():
        for number, word in words:
            sys.stdout.write(f"{path.relative_to(ROOT)}:{number}: {word}\n")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
