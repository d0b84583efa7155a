"""`python -m tests.support.another_machine simulate --seed 4`: the command on an emulated machine.

Its processor is arm64. It has Debian's Python, the libraries of `constraints.txt` and our C
extensions, all compiled for arm64, in a folder of the cache. qemu translates the instructions of
one process at a time and looks for each absolute path in that folder first. So nothing of this
machine changes, except that qemu and a compiler are installed. Processes can fork, but not exec.
"""

import ast
import compileall
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.debian import find_program
from tests.support.peer import (
    REPOSITORY,
    PeerMissing,
    cache_folder,
    fill_folder_once,
    find_command,
    run_installer,
)

HOST_MACHINE = "x86_64"
DEBIAN, MACHINE = "arm64", "aarch64"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"  # selects the wheels
PACKAGES = (PYTHON, f"lib{PYTHON}-dev", "libstdc++6")
OUR_PACKAGES = ("broker", "streams", "sql", "connect", "millstream")
GLIBC_MINORS = range(17, 37)  # of wheels that Debian's C library can load
CONSTRAINTS = REPOSITORY / "constraints.txt"


@dataclass(frozen=True, slots=True)
class AnotherMachine:
    """Python and Millstream on an emulated processor."""

    emulator: str
    root: Path  # Debian's files
    libraries: Path
    millstream: Path  # our packages

    def run(
        self,
        *arguments: str,
        seconds_max: float | None = None,
        environment: Mapping[str, str] = {},
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python with these arguments, without this machine's environment variables."""
        given = {
            "HOME": str(self.millstream),
            "LC_ALL": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
            "PYTHONHASHSEED": "0",  # so that a command need not restart Python to set it
            "PYTHONPATH": f"{self.millstream}:{self.libraries}",
            "PYTHONSAFEPATH": "1",
            **environment,
        }
        return subprocess.run(
            [self.emulator, "-L", self.root, self.root / "usr/bin" / PYTHON, *arguments],
            cwd=self.millstream,
            env=given,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            check=False,
        )


def make_another_machine(folder: Path) -> AnotherMachine:
    """Copy the source code to `folder`, and return an emulated machine; or raise PeerMissing."""
    if platform.machine() != HOST_MACHINE:
        raise PeerMissing(f"{DEBIAN} is emulated on {HOST_MACHINE} only, not {platform.machine()}")
    emulator = find_program(f"qemu-{MACHINE}-static", "qemu-user-static")
    compiler = find_program(f"{MACHINE}-linux-gnu-gcc", f"gcc-{MACHINE}-linux-gnu")
    requirements = _requirements()
    text = "\n".join((*PACKAGES, *requirements, CONSTRAINTS.read_text()))
    version = hashlib.sha256(text.encode()).hexdigest()[:16]  # of all downloads
    with cache_folder(DEBIAN) as cache:
        system = fill_folder_once(cache / version, lambda new: _install(new, requirements))
    machine = AnotherMachine(
        emulator, system / "root", system / "libraries", folder / "another_machine"
    )
    copy_our_packages(machine.millstream)
    _compile_extensions(compiler, machine)
    compileall.compile_dir(machine.millstream, quiet=1)
    return machine


def _requirements() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return [str(each) for each in project["dependencies"]]


def _install(folder: Path, requirements: Sequence[str]) -> None:
    """Unpack Debian's packages and the wheels, without running install scripts."""
    _unpack_debian(folder / "apt", folder / "root")
    shutil.rmtree(folder / "apt")
    wheels = [f"--platform=manylinux_2_{minor}_{MACHINE}" for minor in GLIBC_MINORS]
    version = PYTHON.removeprefix("python")
    digits = version.replace(".", "")
    tags = ["--implementation=cp", f"--abi=cp{digits}", "--abi=abi3", "--abi=none"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--target", str(folder / "libraries"), "--only-binary=:all:"]
    pip += [*wheels, "--platform=any", f"--python-version={version}", *tags]
    run_installer([*pip, "--constraint", CONSTRAINTS, *requirements])


def _unpack_debian(apt_folder: Path, root: Path) -> None:
    """Unpack Python and its dependencies, from the package archives of this machine."""
    state, archives = apt_folder / "state", apt_folder / "cache/archives"
    (state / "lists/partial").mkdir(parents=True)
    (archives / "partial").mkdir(parents=True)
    settings = {
        "APT::Architecture": DEBIAN,
        "APT::Architectures::": DEBIAN,
        "APT::Sandbox::User": "root",  # another user could not read the folder
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",  # the locks are those of this machine's packages
        "Dir::Cache": str(apt_folder / "cache"),
        "Dir::State": str(state),
        "Dir::State::status": "/dev/null",  # no package is installed there yet
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    apt = find_command("apt-get")
    run_installer([apt, *options, "update"])
    install = ["install", "--download-only", "-y", "--no-install-recommends"]
    run_installer([apt, *options, *install, *PACKAGES])
    for archive in sorted(archives.glob("*.deb")):
        run_installer([find_command("dpkg-deb"), "--extract", archive, root])


def copy_our_packages(folder: Path) -> None:
    """Copy our packages without the C extensions, which are compiled for this machine."""
    for name in OUR_PACKAGES:
        shutil.copytree(
            REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )


def _extensions() -> Iterator[tuple[str, list[str]]]:
    """Names and sources of the C extensions in setup.py."""
    for node in ast.walk(ast.parse((REPOSITORY / "setup.py").read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Extension":
            name, sources = node.args
            yield ast.literal_eval(name), ast.literal_eval(sources)


def _compile_extensions(compiler: str, machine: AnotherMachine) -> None:
    suffix = f".cpython-{sys.version_info.major}{sys.version_info.minor}-{MACHINE}-linux-gnu.so"
    options = [f"--sysroot={machine.root}", f"-I{machine.root}/usr/include/{PYTHON}"]
    options += ["-shared", "-fPIC", "-O2", "-DNDEBUG"]
    for name, sources in _extensions():
        output = machine.millstream / (name.replace(".", "/") + suffix)
        paths = [machine.millstream / each for each in sources]
        subprocess.run([compiler, *options, *paths, "-o", output], check=True)


def main() -> int:
    """Run `millstream` with the arguments of this command, and print its output."""
    with tempfile.TemporaryDirectory() as folder:
        done = make_another_machine(Path(folder)).run("-m", "millstream", *sys.argv[1:])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
