"""Clients of ksqlDB, downloaded once: for Node.js from npm, for Python into an own environment.

Confluent's Java client is missing because it is not on Maven Central.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.peer import (
    REPOSITORY,
    PeerMissing,
    cache_folder,
    fill_folder_once,
    find_command,
    run_installer,
)

SCENARIOS = Path(__file__).parent / "ksqldb" / "scenarios.js"
NODE_CLIENTS = ("ksqldb-client@1.0.5", "ksqldb-js@1.1.2", "ksqldb-rx-client@1.1.1")
# Of the package "ksql", only this fork can be imported by current versions of Python.
PYTHON_CLIENTS = ("pykSQL==0.11.0", "ksqldb==1.0.1", "httpx[http2]==0.27.2", "pydantic>=2.6,<3")
# It also requires pandas, for a purpose other than the client.
WITHOUT_DEPENDENCIES = "ksqldb-client==0.28.2a2"
TIMEOUT_S = 240.0

# Runs scenarios against the server at a URL; returns their output, one JSON line each.
Runner = Callable[..., str]


class ClientFailed(Exception):
    """The program with the client ended with an error; the message has its output."""


def node_clients() -> Runner:
    """Download the clients from npm, or raise PeerMissing."""
    return _runner(_fetch_for_node())


def python_clients() -> Runner:
    """Download the clients from PyPI, or raise PeerMissing."""
    return _runner(_fetch_for_python())


Fetched = tuple[list[str], dict[str, str]]


@functools.cache
def _fetch_for_node() -> Fetched | PeerMissing:
    try:
        node, npm = find_command("node"), find_command("npm")
        with cache_folder("ksqldb-node") as cache:
            installed = fill_folder_once(
                cache / "installed", lambda folder: _install_for_node(npm, folder)
            )
    except PeerMissing as missing:
        return missing
    return [node, str(SCENARIOS)], {"NODE_PATH": str(installed / "node_modules")}


def _install_for_node(npm: str, folder: Path) -> None:
    # Without a package file, npm would install into a parent folder that has one.
    (folder / "package.json").write_text('{"private": true}')
    run_installer(
        [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE_CLIENTS], cwd=folder
    )


@functools.cache
def _fetch_for_python() -> Fetched | PeerMissing:
    try:
        with cache_folder("ksqldb-python") as cache:
            installed = fill_folder_once(cache / "installed", _install_for_python)
    except PeerMissing as missing:
        return missing
    return [str(installed / "bin" / "python"), "-m", "tests.support.ksqldb.scenarios"], {}


def _install_for_python(folder: Path) -> None:
    run_installer([sys.executable, "-m", "venv", folder])
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # One client is built from source, with a build script that imports pip.
    run_installer([*pip, "setuptools<66", "wheel"])
    run_installer([*pip, "--no-build-isolation", *PYTHON_CLIENTS])
    run_installer([*pip, "--no-deps", WITHOUT_DEPENDENCIES])


def _runner(fetched: Fetched | PeerMissing) -> Runner:
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    command, environment = fetched

    def run(url: str, *scenarios: str) -> str:
        done = subprocess.run(
            [*command, url, *scenarios],
            cwd=REPOSITORY,
            env={"PATH": os.environ.get("PATH", ""), **environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise ClientFailed(
                f"the client ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done.stdout

    return run
