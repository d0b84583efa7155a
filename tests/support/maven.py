"""Java artifacts, downloaded once with Maven into the cache folder."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.peer import PeerMissing, find_command, run_installer


@dataclass(frozen=True, slots=True)
class Artifact:
    """One Java artifact by its Maven coordinates; the version may be a range such as `[4,)`."""

    group: str
    name: str
    version: str


def find_newest_version(group: str, name: str, *, versions: str) -> str:
    """The highest published version of an artifact inside the range `versions`."""
    # Without dependencies: otherwise Maven reads those of every version.
    listing = _run_maven([Artifact(group, name, versions)], "dependency:list", transitive=False)
    found = re.search(rf"{re.escape(group)}:{re.escape(name)}:jar:([^:\s]+)", listing)
    if found is None:
        raise PeerMissing(f"mvn lists no version {versions} of {group}:{name}")
    return found.group(1)


def copy_jars(artifacts: Sequence[Artifact], folder: Path) -> None:
    """Copies the jars of the artifacts and their dependencies to `folder`."""
    _run_maven(artifacts, "dependency:copy-dependencies", f"-DoutputDirectory={folder}")


def copy_without_dependencies(artifacts: Sequence[Artifact], folder: Path) -> None:
    """Copies the jars of the artifacts to `folder`, without dependencies."""
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={folder}")
    _run_maven(artifacts, *goal, transitive=False)


def _run_maven(artifacts: Sequence[Artifact], *goal: str, transitive: bool = True) -> str:
    find_command("java")
    maven = find_command("mvn")
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pom.xml").write_text(_project_description(artifacts, transitive))
        return run_installer([maven, "--batch-mode", *goal], cwd=Path(project))


def _project_description(artifacts: Sequence[Artifact], transitive: bool) -> str:
    every_dependency = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    no_dependencies = f"<exclusions>{every_dependency}</exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{artifact.group}</groupId><artifactId>{artifact.name}</artifactId>"
        f"<version>{artifact.version}</version>{'' if transitive else no_dependencies}</dependency>"
        for artifact in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>millstream</groupId><artifactId>peers</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
