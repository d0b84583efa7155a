"""`python -m tests.support.outside`: direct uses of time, randomness, files or sockets.

A simulation can only replace dependencies that are passed to constructors (`broker.machine`). Only
`millstream` and the modules listed here, each with a reason, may use the system directly.
"""

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.support.file_findings import FileFindings
from tests.support.tidy import ROOT

PACKAGES = ("broker", "streams", "sql", "connect")
MODULES = {  # whole modules, and the kind of use
    "asyncio": "network",
    "fcntl": "files",
    "mmap": "files",
    "secrets": "randomness",
    "select": "network",
    "selectors": "network",
    "shutil": "files",
    "socket": "network",
    "tempfile": "files",
    "threading": "threads",
}
NAMES = {  # single names, by module
    "concurrent.futures": {"ThreadPoolExecutor": "threads", "ProcessPoolExecutor": "threads"},
    "queue": {"SimpleQueue": "threads", "Queue": "threads"},
    "os": {
        **dict.fromkeys(
            (
                *("open", "read", "write", "pread", "pwrite", "fsync", "fdatasync", "rename"),
                *(
                    "replace",
                    "remove",
                    "unlink",
                    "makedirs",
                    "mkdir",
                    "rmdir",
                    "listdir",
                    "scandir",
                ),
                *("stat", "fstat", "truncate", "ftruncate", "sendfile", "walk"),
            ),
            "files",
        ),
        "urandom": "randomness",
    },
    "random": dict.fromkeys(
        (
            *("random", "randint", "randrange", "choice", "choices", "shuffle", "uniform"),
            *("getrandbits", "SystemRandom", "sample"),
        ),
        "randomness",
    ),
    "time": dict.fromkeys(
        ("time", "time_ns", "monotonic", "monotonic_ns", "sleep", "localtime", "gmtime"), "time"
    ),
    "uuid": dict.fromkeys(("uuid1", "uuid4"), "randomness"),
}
METHODS = {  # methods of dates and paths, on any object
    **dict.fromkeys(("now", "utcnow", "today"), "time"),
    **dict.fromkeys(("read_text", "read_bytes", "write_text", "write_bytes"), "files"),
    **dict.fromkeys(("mkdir", "iterdir", "rglob", "glob", "is_dir", "is_file", "exists"), "files"),
}
# Modules at the edge of the system: file patterns, and the kinds that they may use.
EDGES: dict[str, tuple[str, ...]] = {
    "broker/clock.py": ("time",),
    "broker/machine.py": ("network", "randomness"),
    "broker/config.py": ("files",),  # settings of the user
    "broker/linear_patterns.py": ("time",),  # time limit
    "broker/serde/schema/protobuf_text.py": ("files",),  # the grammar, a part of the package
    "broker/client/connection.py": ("network",),  # constants, and errors of the machine's sockets
    "broker/client/io_loop.py": ("network",),
    "broker/client/network.py": ("network",),
    "connect/config/providers.py": ("files",),  # settings of the user
    "connect/config/connector_file.py": ("files",),
    "connect/config/worker_config.py": ("files",),
    "sql/engine/sink_rows.py": ("files",),  # for Spark
    "sql/functions/user.py": ("files",),  # user-defined functions
    "sql/functions/aggregates_by_offset.py": ("time",),  # numbers that increase after restarts
    "streams/config.py": ("files",),  # the default state directory
    "streams/runtime/processes.py": ("network",),  # real processes
    "broker/concurrency.py": ("threads", "time"),
    "broker/files.py": ("files",),
    "broker/model.py": ("files",),  # the descriptor of a real file
    "broker/sockets.py": ("network",),
    "broker/__main__.py": ("files", "network"),
    "broker/rest/*": ("network", "time"),
    "broker/server/*": ("network", "files", "time", "threads"),  # asyncio and HTTP
    "broker/client/sasl.py": ("randomness",),  # nonces
    "broker/client/tls.py": ("files",),
    "connect/connectors/*": ("files", "network", "time", "randomness"),  # external systems
    "connect/__main__.py": ("files", "threads"),
    "sql/backends/spark/*": ("files", "network", "time", "randomness", "threads"),
    "sql/shell/*": ("files", "time"),  # interactive
    "sql/testing/*": ("files", "time", "threads", "network"),
    "sql/server/*": ("network", "time"),
}


Use = tuple[int, str, str]  # a line, a name and its kind


def uses(tree: ast.Module) -> Iterator[Use]:
    """The direct uses in a module."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Call):
            yield from _calls(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = aliases.get(node.value.id, "")
            if kind := NAMES.get(module, {}).get(node.attr):
                yield node.lineno, f"{module}.{node.attr}", kind


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Use]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            kind = MODULES.get(alias.name)
        else:
            module = node.module or ""
            kind = NAMES.get(module, {}).get(alias.name) or MODULES.get(module)
        if kind is not None:
            yield node.lineno, alias.name, kind


def _calls(node: ast.Call) -> Iterator[Use]:
    if isinstance(node.func, ast.Name) and node.func.id == "open":
        yield node.lineno, "open", "files"
    elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        yield node.lineno, f".{node.func.attr}()", METHODS[node.func.attr]


def complaints() -> Iterator[str]:
    """All uses that are not allowed."""
    findings = FileFindings(Path(__file__), find)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from findings.of(path)
    findings.save()


def find(path: Path, text: str) -> list[str]:
    """The uses in one file that are not allowed."""
    name = str(path.relative_to(ROOT))
    allowed = {kind for pattern, kinds in EDGES.items() if fnmatch(name, pattern) for kind in kinds}
    return [
        f"{name}:{line}: uses {kind} of the system directly: {what}"
        for line, what, kind in uses(ast.parse(text))
        if kind not in allowed
    ]


def main() -> int:
    """Print all complaints; return 1 if there is any."""
    found = sorted(set(complaints()))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
