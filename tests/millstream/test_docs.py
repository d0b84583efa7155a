"""What docs/architecture.md and CONTRIBUTING.md name exists: files, commands, code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

import pytest

from millstream.__main__ import COMMANDS
from tests.support.tidy import PACKAGES, ROOT

pytestmark = pytest.mark.slow  # all modules are parsed

PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
SECTION = re.compile(r"^## +(.*)$", re.MULTILINE)
BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(
    r"(?<![\w/.])[\w.-]*[\w/-]*[\w-]+(?:/|\.(?:py|md|json|lark|toml|txt|java))(?![\w*])"
)
CAPITALS = re.compile(r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
COMMAND = re.compile(
    r"(?:\$ )?(?:\.venv/bin/)?(make|millstream|python -m|pip|pre-commit|ruff|mypy) +([\w./-]+)"
)
# What is in the file system only after something has run, and what belongs to users.
NOT_OURS = {".venv/", "dist/", "millstream.toml"}


def sections(page: str) -> Iterator[tuple[str, str]]:
    """Titles and texts; what comes before the first title has none."""
    first, *rest = SECTION.split((ROOT / page).read_text())
    yield "", first
    yield from zip(rest[::2], rest[1::2], strict=True)


@cache
def defined() -> frozenset[str]:
    """The names that the code defines: modules, classes, functions, their members, constants."""
    names: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            names.add(module.removesuffix(".__init__"))
            for node in ast.parse(path.read_text()).body:
                found = set(names_of(node))
                names |= found | {f"{path.stem}.{name}" for name in found}
    return frozenset(names)


def names_of(node: ast.stmt, above: str = "") -> Iterator[str]:
    match node:
        case ast.ClassDef():
            yield above + node.name
            for part in node.body:
                yield from names_of(part, f"{node.name}.")
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield above + node.name
            yield node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield above + name


@cache
def words() -> frozenset[str]:
    """All words of the code and of its settings: for what is neither a file nor defined."""
    paths = [ROOT / "pyproject.toml", ROOT / "Makefile"]
    paths += [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return frozenset(word for path in paths for word in re.findall(r"\w+", path.read_text()))


def is_file(name: str, section: str) -> bool:
    """A file or folder of the repository, or of the package that the section is about."""
    return name in NOT_OURS or (ROOT / name).exists() or (ROOT / section / name).exists()


def unknown_command(program: str, argument: str) -> bool:
    match program:
        case "make":
            return f"\n{argument}:" not in (ROOT / "Makefile").read_text()
        case "millstream":
            return argument not in COMMANDS
        case "python -m":
            return argument not in ("pytest", "build") and find_spec(argument) is None
        case _:
            return False


def unknown_in_drawing(text: str, section: str) -> Iterator[str]:
    yield from (name for name in FILE.findall(text) if not is_file(name, section))
    yield from (name for name in CAPITALS.findall(text) if name not in defined())


def is_unknown(name: str, section: str) -> bool:
    """Whether something in backquotes is not there."""
    name = name.removeprefix(".venv/bin/")  # tools, wherever they are installed
    if command := COMMAND.match(name):
        return unknown_command(command[1], command[2])
    if "/" in name or FILE.fullmatch(name):
        return not is_file(name, section)
    if CAPITALS.search(name) or ("." in name and IDENTIFIER.fullmatch(name)):
        return name not in defined()
    return not set(re.findall(r"\w+", name)) <= words()


def unknown_names(page: str) -> Iterator[str]:
    for title, text in sections(page):
        for language, block in BLOCK.findall(text):
            if language == "text":
                yield from unknown_in_drawing(block, title)
            else:
                found = map(COMMAND.match, block.splitlines())
                yield from (line[0] for line in found if line and unknown_command(line[1], line[2]))
        yield from (name for name in INLINE.findall(BLOCK.sub("", text)) if is_unknown(name, title))


@pytest.mark.parametrize("page", PAGES)
def test_everything_that_a_page_names_exists(page: str) -> None:
    assert sorted(unknown_names(page)) == []


@pytest.mark.parametrize("package", ["broker", "streams", "sql", "connect", "millstream"])
def test_every_package_has_a_drawing(package: str) -> None:
    (text,) = (text for title, text in sections("docs/architecture.md") if title == package)
    ((language, drawing),) = BLOCK.findall(text)
    assert language == "text"
    assert len(CAPITALS.findall(drawing)) >= 5


@pytest.mark.parametrize(
    ("name", "section", "expected"),
    [
        ("broker/broker.py", "", False),
        ("broker/brokers.py", "", True),
        ("broker.py", "broker", False),
        ("PartitionLog", "", False),
        ("PartitionLogs", "", True),
        ("Broker.handle", "", False),
        ("Broker.handles", "", True),
        ("broker.client", "", False),
        ("broker.clients", "", True),
        ("make check", "", False),
        ("make checks", "", True),
        ("millstream up", "", False),
        ("millstream down", "", True),
        (".venv/bin/python -m tests.support.tidy", "", False),
        (".venv/bin/python -m tests.support.untidy", "", True),
        (".venv/bin/mypy", "", False),
    ],
)
def test_what_does_not_exist_is_found(name: str, section: str, expected: bool) -> None:
    assert is_unknown(name, section) is expected
