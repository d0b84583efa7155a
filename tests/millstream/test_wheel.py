"""The distributions of `python -m build`: what they contain, and that an installed wheel works."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.peer import PeerMissing, find_command, run_installer, skip_without_peer
from tests.support.tidy import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(900)]

PRODUCT = ("broker", "streams", "sql", "connect", "millstream")
NEEDED = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "constraints.txt", "LICENSE"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md"),
)
C_SOURCES = (".c", ".h")
EXTENSIONS = ("broker.batch._speed", "broker.client._murmur2", "streams.state._windows")
TIMEOUT_S = 600.0


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def tracked_files() -> set[str]:
    """The files of the repository, also those that are not committed yet."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return {name for name in run(*listing, cwd=ROOT).splitlines() if (ROOT / name).is_file()}


def product_files() -> set[str]:
    return {name for name in tracked_files() if name.partition("/")[0] in PRODUCT}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, because a build writes into its tree."""
    folder = tmp_path_factory.mktemp("tree")
    try:
        find_command("git")
        # A build installs setuptools, and an installation the libraries.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        run_installer([*pip, "--dest", tmp_path_factory.mktemp("downloads"), "setuptools>=77"])
    except PeerMissing as reason:
        skip_without_peer(reason)
    for name in tracked_files():
        if name.partition("/")[0] in (name, "docs", *PRODUCT):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the source distribution, and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, tree, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment, into which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    pins = (
        ["--constraint", str(ROOT / "constraints.txt")] if sys.version_info[:2] == (3, 11) else []
    )
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(python, *pip, *pins, wheel, cwd=folder)
    return python


def files_in(wheel: Path) -> set[str]:
    """The files of a wheel without its metadata and compiled extensions."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return {name for name in names if ".dist-info/" not in name and not name.endswith(".so")}


def test_the_source_distribution_contains_all_files_of_the_packages(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert product_files() - names == set()
    assert set(NEEDED) - names == set()
    assert {name for name in names if name.startswith(("tests/", ".cache/", ".venv/"))} == set()


def test_the_wheel_contains_all_files_of_the_packages_but_c_sources(wheel: Path) -> None:
    assert files_in(wheel) == {name for name in product_files() if not name.endswith(C_SOURCES)}
    for package in PRODUCT:
        assert f"{package}/py.typed" in files_in(wheel)


@pytest.mark.long
def test_the_installed_wheel_runs_the_demo_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    millstream = python.with_name("millstream")
    printed = run(millstream, "demo", cwd=tmp_path)
    assert "page views per region" in printed
    assert list(tmp_path.iterdir()) == []
    assert run(millstream, "--version", cwd=tmp_path).startswith("millstream, version ")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_installed_wheel_has_the_compiled_extensions(python: Path, tmp_path: Path) -> None:
    run(python, "-c", f"import {', '.join(EXTENSIONS)}", cwd=tmp_path)


@pytest.mark.long
def test_without_a_compiler_the_wheel_is_built_without_extensions(
    tree: Path, tmp_path: Path
) -> None:
    run(
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--outdir",
        tmp_path,
        tree,
        cwd=tmp_path,
        CC="false",
    )
    (found,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(found) as archive:
        assert [name for name in archive.namelist() if name.endswith(".so")] == []
