"""Programs of Debian packages: found on this machine, or installed if we are root."""

import functools
import os
import shutil
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from tests.support.peer import PeerMissing, cache_folder, find_command, run_installer

TIMEOUT_S = 90.0  # per step: a test that waits for all steps has 300 s
# RUNLEVEL=1 keeps a package from starting its service: servers are started by tests.
_ENVIRONMENT = ("env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")


def find_program(name: str, package: str, *, folders: Sequence[str] = ()) -> str:
    """The path of a program on the PATH or in `folders` (patterns), or PeerMissing."""
    found = _find_once(name, package, tuple(folders))
    if isinstance(found, PeerMissing):
        raise PeerMissing(*found.args)
    return found


@functools.cache
def _find_once(name: str, package: str, folders: tuple[str, ...]) -> str | PeerMissing:
    if (path := _installed(name, folders)) is not None:
        return path
    try:
        if os.geteuid() != 0:
            raise PeerMissing(f"{name} is not installed, and only root may install {package}")
        with cache_folder("debian"):
            if (path := _installed(name, folders)) is None:
                _install(package)
                path = _installed(name, folders)
    except PeerMissing as missing:
        return missing
    return path or PeerMissing(f'package "{package}" has no program "{name}"')


def _installed(name: str, folders: Sequence[str]) -> str | None:
    # The folder of the newest version is the last one.
    places = [place for pattern in folders for place in sorted(glob(pattern), reverse=True)]
    for path in (Path(place) / name for place in places):
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(name)


def _install(package: str) -> None:
    apt = find_command("apt-get")
    install = [*_ENVIRONMENT, apt, "install", "-y", "--no-install-recommends", package]
    try:
        run_installer(install, timeout_s=TIMEOUT_S)
    except PeerMissing:
        # The package lists may be missing or outdated.
        run_installer([apt, "update"], timeout_s=TIMEOUT_S)
        run_installer(install, timeout_s=TIMEOUT_S)
