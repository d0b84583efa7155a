"""What packages export: `__init__.py` holds public names only, and importing it is fast."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tidy import ROOT

PACKAGES = (
    "broker",
    "broker.client",
    "broker.registry",
    "broker.serde",
    "broker.serde.registry",
    "broker.server",
    "connect",
    "millstream.testing",
    "sql",
    "streams",
    "streams.serving",
    "streams.testing",
)
PROMISED = {
    "broker": {"Broker", "BrokerConfig", "Server", "TopicPartition"},
    "broker.client": {"NewTopic", "admin", "consumer", "group_member", "producer"},
    "connect": {"ConfigDef", "SinkConnector", "SinkTask", "SourceConnector", "SourceTask"},
    "sql": {"Engine", "SqlConfig", "udaf", "udf", "udtf"},
    "streams": {"Processor", "StreamsApp", "StreamsBuilder", "Topology", "tumbling"},
}
# Libraries that are large, or that an installation without extras does not have.
LARGE = frozenset(
    (
        *("pyspark", "pandas", "numpy", "pyarrow", "sqlalchemy", "psycopg", "pymysql", "uvloop"),
        *("rocksdict", "fastavro", "google.protobuf", "jsonschema_rs", "lark"),
        *("httpx", "starlette", "uvicorn", "h2", "rich", "prompt_toolkit", "pytest", "hypothesis"),
        "prometheus_client",
    )
)
OPTIONAL = LARGE & {"pyspark", "pandas", "numpy", "pyarrow", "sqlalchemy", "psycopg", "pymysql"}


def tree_of(package: str) -> ast.Module:
    return ast.parse((ROOT / Path(*package.split(".")) / "__init__.py").read_text())


def lazy_imports(package: str) -> dict[str, str]:
    """Names that a type checker imports, and their modules."""
    return {
        alias.name: str(node.module)
        for block in tree_of(package).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loaded_by(module: str) -> set[str]:
    """The modules that a new process has after an import."""
    program = f"import sys, {module}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(found.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_names_that_are_imported_later_are_those_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(package)
    lazy = lazy_imports(package)
    assert set(lazy) <= set(module.__all__)
    for name, origin in lazy.items():
        assert getattr(module, name) is getattr(importlib.import_module(origin), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_nothing_that_it_does_not_export(package: str) -> None:
    exported = set(importlib.import_module(package).__all__)
    imported = {
        alias.asname or alias.name
        for node in tree_of(package).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported - exported <= {"TYPE_CHECKING", "public_names"}
    defined = ast.FunctionDef | ast.ClassDef
    assert not [node for node in tree_of(package).body if isinstance(node, defined)]


@pytest.mark.parametrize("package", sorted(PROMISED))
def test_the_names_that_programs_start_with_are_exported(package: str) -> None:
    assert PROMISED[package] <= set(importlib.import_module(package).__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Brokers' from 'broker'"):
        exec("from broker import Brokers")


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", ["broker", "broker.client", "broker.serde", "connect", "sql", "streams"]
)
def test_an_import_of_a_package_loads_no_large_library(package: str) -> None:
    assert loaded_by(package) & LARGE == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["broker.broker", "connect.server", "millstream.__main__", "sql.engine.engine", "streams.app"],
)
def test_the_platform_loads_no_library_of_an_extra_before_it_is_used(module: str) -> None:
    assert loaded_by(module) & OPTIONAL == set()
