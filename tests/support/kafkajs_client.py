"""kafkajs, the client for Node.js, downloaded once from npm."""

import functools
import subprocess
from pathlib import Path

from tests.support.peer import (
    PeerMissing,
    cache_folder,
    fill_folder_once,
    find_command,
    run_installer,
)

PACKAGE = "kafkajs@2.2.4"
SCENARIOS = Path(__file__).parent / "kafkajs" / "scenarios.js"


class NodeFailed(Exception):
    """The Node.js program ended with an error; the message has its output."""


def fetch_kafkajs() -> Path:
    """Return the folder of Node.js modules with kafkajs; raise PeerMissing if not available."""
    fetched = _fetch_once()
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    return fetched


@functools.cache
def _fetch_once() -> Path | PeerMissing:
    try:
        find_command("node")
        npm = find_command("npm")
        with cache_folder("kafkajs") as cache:
            installed = fill_folder_once(
                cache / "installed",
                lambda folder: _install(npm, folder),
            )
        return installed / "node_modules"
    except PeerMissing as missing:
        return missing


def _install(npm: str, folder: Path) -> None:
    # Without a package file, npm would install into a parent folder that has one.
    (folder / "package.json").write_text('{"private": true}')
    run_installer([npm, "install", "--no-audit", "--no-fund", PACKAGE], cwd=folder)


def run_scenarios(modules: Path, bootstrap: str, *scenarios: str, timeout_s: float = 120.0) -> str:
    """Runs kafkajs scenarios against a broker; returns their output, one JSON line each."""
    done = subprocess.run(
        [find_command("node"), str(SCENARIOS), bootstrap, *scenarios],
        env={"NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise NodeFailed(f"node ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
