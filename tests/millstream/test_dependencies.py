"""Every library that the packages import is declared, and every declared one is used and pinned."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from millstream.commands.doctor import EXTRAS, LIBRARIES
from tests.support.tidy import ROOT

PRODUCT = ("broker", "streams", "sql", "connect", "millstream")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where libraries of an extra are imported: everything else must work without them.
PARTS_OF_EXTRAS = {
    "mysql": ("connect/connectors/jdbc/*",),
    "parquet": ("connect/connectors/files_sink/parquet_format.py",),
    "postgres": ("connect/connectors/jdbc/*",),
    "spark": ("sql/backends/spark/*",),
    "sqlite": ("connect/connectors/jdbc/*",),
    "testing": ("streams/testing/*", "millstream/pytest_plugin.py"),
    "uvloop": ("broker/server/server.py",),
}
NOT_IMPORTED = {"numpy"}  # pyspark and pandas need it, in these versions
DYNAMIC_IMPORTS = ("import_module", "__import__")


def names(requirements: list[str]) -> set[str]:
    found: set[str] = {canonicalize_name(Requirement(each).name) for each in requirements}
    return found - {"millstream"}


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(module)), *_]) if (
                name in DYNAMIC_IMPORTS
            ):
                yield module
            case ast.Call(
                func=ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]
            ) if name in DYNAMIC_IMPORTS:
                yield module


def libraries_of(path: Path, distributions: dict[str, str]) -> Iterator[str]:
    """The distributions that a file imports; the name of the module if none is known."""
    for module in imported_modules(ast.parse(path.read_text())):
        top = module.partition(".")[0]
        if top in PRODUCT or top in sys.stdlib_module_names:
            continue
        yield distributions.get(top, top)


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Distributions that the product imports, and the files that do."""
    # "google" is a namespace; what we import of it is protobuf's.
    known: dict[str, str] = {
        module: canonicalize_name(owners[0]) for module, owners in packages_distributions().items()
    }
    known["google"] = "protobuf"
    found: dict[str, set[str]] = {}
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            for library in libraries_of(path, known):
                found.setdefault(library, set()).add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.slow
def test_every_import_is_declared(imports: dict[str, set[str]]) -> None:
    required = names(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    undeclared = {
        f"{library}: {file}"
        for library, files in imports.items()
        if library not in required
        for file in files
        if not any(
            fnmatch(file, pattern)
            for extra, patterns in PARTS_OF_EXTRAS.items()
            if library in names(extras[extra])
            for pattern in patterns
        )
    }
    assert undeclared == set()


@pytest.mark.slow
def test_every_declared_library_is_imported(imports: dict[str, set[str]]) -> None:
    extras = (PROJECT["optional-dependencies"][extra] for extra in PARTS_OF_EXTRAS)
    declared = names(PROJECT["dependencies"]).union(*map(names, extras))
    assert declared - set(imports) == NOT_IMPORTED


def test_a_library_has_one_lower_bound() -> None:
    bounds: dict[str, set[str]] = {}
    for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for requirement in map(Requirement, requirements):
            if requirement.name != "millstream":
                assert any(each.operator == ">=" for each in requirement.specifier), requirement
                bounds.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_the_doctor_knows_the_extras() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(LIBRARIES) <= names(PROJECT["dependencies"])
    assert set(EXTRAS) == set(PARTS_OF_EXTRAS) - {"testing"}
    for extra, libraries in EXTRAS.items():
        assert set(libraries) <= names(extras[extra])


def test_all_connectors_have_their_libraries_in_one_extra() -> None:
    (everything,) = PROJECT["optional-dependencies"]["connectors"]
    assert Requirement(everything).extras == {"mysql", "parquet", "postgres", "sqlite"}


def test_constraints_pin_every_declared_library_within_its_bounds() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    versions = {
        canonicalize_name(name): version for name, version in (pin.split("==") for pin in pins)
    }
    for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for requirement in map(Requirement, requirements):
            if requirement.name != "millstream":
                version = versions[canonicalize_name(requirement.name)]
                assert requirement.specifier.contains(version), requirement
