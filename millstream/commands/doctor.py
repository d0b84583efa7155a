"""`millstream doctor`: checks the requirements of this machine, with advice."""

import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import click

from millstream.commands.options import json_option
from millstream.commands.platform_options import platform_options
from millstream.commands.port_owner import owner_of
from millstream.output import Output
from millstream.settings import PORTS, PlatformSettings

OK, WARNING, PROBLEM = "ok", "warning", "problem"

PYTHON_MIN = (3, 11)
JAVA_MIN = 17
JAVA_SECONDS_MAX = 20
GIBIBYTE = 1 << 30
DISK_MIN, DISK_RECOMMENDED = GIBIBYTE // 4, 5 * GIBIBYTE
LIBRARIES = ("rocksdict", "orjson", "starlette", "uvicorn", "httpx", "fastavro", "lark", "click")
# The packages that each extra of `pip install 'millstream[...]'` installs.
EXTRAS = {
    "spark": ("pyspark", "pyarrow", "pandas"),
    "uvloop": ("uvloop",),
    "sqlite": ("sqlalchemy",),
    "postgres": ("sqlalchemy", "psycopg"),
    "mysql": ("sqlalchemy", "pymysql"),
    "parquet": ("pyarrow",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, with advice."""

    check: str
    state: str
    found: str
    advice: str = ""


@click.command()
@platform_options
@json_option
def doctor(settings: PlatformSettings, output: Output) -> None:
    """Check Python, Java, ports, disk and libraries; exit code 1 if something must be fixed."""
    with output.progress("checking"):
        findings = [
            _python(),
            *_libraries(),
            *_extras(),
            _java(),
            _disk(Path(settings.data_dir)),
            *_ports(settings),
        ]
    output.rows([asdict(each) for each in findings], title="millstream doctor")
    if any(each.state == PROBLEM for each in findings):
        sys.exit(1)


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] >= PYTHON_MIN:
        return Finding("Python", OK, found)
    minimum = ".".join(map(str, PYTHON_MIN))
    return Finding("Python", PROBLEM, found, f"install Python {minimum} or newer")


def _libraries() -> Iterator[Finding]:
    for name in ("millstream", *LIBRARIES):
        version = _version(name)
        if version is None:
            yield Finding(name, PROBLEM, "not installed", "pip install millstream, or make install")
        else:
            yield Finding(name, OK, version)


def _extras() -> Iterator[Finding]:
    for extra, names in EXTRAS.items():
        versions = {name: _version(name) for name in names}
        missing = [name for name, version in versions.items() if version is None]
        found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        if missing:
            advice = f"optional: pip install 'millstream[{extra}]'"
            yield Finding(f"extra {extra}", WARNING, f"not installed: {', '.join(missing)}", advice)
        else:
            yield Finding(f"extra {extra}", OK, found)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _java() -> Finding:
    advice = f"needed only for Spark: install a JDK {JAVA_MIN} or newer"
    command = shutil.which("java")
    if command is None:
        return Finding("Java", WARNING, "not installed", advice)
    try:
        output = subprocess.run(
            [command, "-version"],
            capture_output=True,
            text=True,
            timeout=JAVA_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", WARNING, f"cannot run {command}: {error}", advice)
    return java_finding(output.stderr or output.stdout, command)


def java_finding(output: str, command: str) -> Finding:
    """The version from `java -version`: 1.8.0 is Java 8, 17.0.2 is 17."""
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', output)
    if version is None:
        first = (output.strip().splitlines() or ["nothing"])[0]
        return Finding("Java", WARNING, f'{command} printed "{first}"', "is it a JDK?")
    found = f"{version.group(1)} at {command}"
    if int(version.group(1)) >= JAVA_MIN:
        return Finding("Java", OK, found)
    return Finding("Java", WARNING, found, f"Spark needs Java {JAVA_MIN} or newer")


def _disk(directory: Path) -> Finding:
    existing = directory.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    found = f"{free / GIBIBYTE:.1f} GiB free for {directory}"
    if free < DISK_MIN:
        return Finding("disk", PROBLEM, found, "free some space, or choose another --data-dir")
    if free < DISK_RECOMMENDED:
        return Finding("disk", WARNING, found, 'topics grow: limit them with "log.retention.bytes"')
    return Finding("disk", OK, found)


def _ports(settings: PlatformSettings) -> Iterator[Finding]:
    for service in PORTS:
        port = settings.port(service)
        check = f"port of {service}"
        if port == 0:
            yield Finding(check, OK, "any free port")
        elif _is_free(settings.host, port):
            yield Finding(check, OK, f"{port} is free")
        else:
            owner = owner_of(port) or "a program of another user"
            if "millstream up" in owner:
                yield Finding(check, OK, f"{port}, used by {owner}", "see `millstream status`")
                continue
            advice = (
                "if that is Millstream, see `millstream status`; otherwise choose another "
                "--port-base"
            )
            yield Finding(check, WARNING, f"{port} is used by {owner}", advice)


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
            tried.listen(1)
        except OSError:
            return False
    return True
