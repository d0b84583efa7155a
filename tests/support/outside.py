"""`python -m tests.support.outside`: who takes time, randomness, files or sockets from the system.

A simulation can only replace what comes through a constructor (`broker.machine`). Below
`millstream` nobody else may ask the system, but for the edges that are listed here with the reason.
"""

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.support.file_findings import FileFindings
from tests.support.tidy import ROOT

PACKAGES = ("broker", "streams", "sql", "connect")
MODULES = {  # whole modules: what they are for
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
METHODS = {  # of dates and paths, whatever object has them
    **dict.fromkeys(("now", "utcnow", "today"), "time"),
    **dict.fromkeys(("read_text", "read_bytes", "write_text", "write_bytes"), "files"),
    **dict.fromkeys(("mkdir", "iterdir", "rglob", "glob", "is_dir", "is_file", "exists"), "files"),
}
# Where the outside begins: file patterns, and what they may take.
EDGES: dict[str, tuple[str, ...]] = {
    "broker/clock.py": ("time",),
    "broker/machine.py": ("network", "randomness"),
    "broker/config.py": ("files",),  # settings that the owner wrote
    "broker/linear_patterns.py": ("time",),  # a limit of processor time
    "broker/serde/schema/protobuf_text.py": ("files",),  # the grammar, a part of the package
    "broker/client/connection.py": ("network",),  # constants, and errors of the machine's sockets
    "broker/client/io_loop.py": ("network",),
    "broker/client/network.py": ("network",),
    "connect/config/providers.py": ("files",),  # settings that the owner wrote
    "connect/config/connector_file.py": ("files",),
    "connect/config/worker_config.py": ("files",),
    "sql/engine/sink_rows.py": ("files",),  # of Spark
    "sql/functions/user.py": ("files",),  # functions that users wrote
    "sql/functions/aggregates_by_offset.py": ("time",),  # numbers that grow over restarts
    "streams/config.py": ("files",),  # where a default is
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
    "connect/connectors/*": ("files", "network", "time", "randomness"),  # the world outside
    "connect/__main__.py": ("files", "threads"),
    "sql/backends/spark/*": ("files", "network", "time", "randomness", "threads"),
    "sql/shell/*": ("files", "time"),  # a person in front of a terminal
    "sql/testing/*": ("files", "time", "threads", "network"),
    "sql/server/*": ("network", "time"),
}


Use = tuple[int, str, str]  # a line, a name and its kind


def uses(tree: ast.Module) -> Iterator[Use]:
    """What a module takes from the system."""
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
    """All uses that no edge explains."""
    findings = FileFindings(Path(__file__), find)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from findings.of(path)
    findings.save()


def find(path: Path, text: str) -> list[str]:
    """The uses in one file that no edge explains."""
    name = str(path.relative_to(ROOT))
    allowed = {kind for pattern, kinds in EDGES.items() if fnmatch(name, pattern) for kind in kinds}
    return [
        f"{name}:{line}: takes {kind} from the system: {what}"
        for line, what, kind in uses(ast.parse(text))
        if kind not in allowed
    ]


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    found = sorted(set(complaints()))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
