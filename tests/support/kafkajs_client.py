"""kafkajs, the client for Node, fetched once through npm."""

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
    """The Node program ended with an error; the text holds what it printed."""


def fetch_kafkajs() -> Path:
    """The folder of Node modules that holds kafkajs, or PeerMissing."""
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
    # Without a package file npm would look for one in the folders above, and install there.
    (folder / "package.json").write_text('{"private": true}')
    run_installer([npm, "install", "--no-audit", "--no-fund", PACKAGE], cwd=folder)


def run_scenarios(modules: Path, bootstrap: str, *scenarios: str, timeout_s: float = 120.0) -> str:
    """Runs scenarios of kafkajs against a broker; what they printed, one JSON line for each."""
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
