"""What is needed before Spark can start, and what its JVM says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sql.backends.spark.jvm_log import JvmLog
from sql.backends.spark.session import check_java, check_spark, java_version
from sql.errors import SqlError
from tests.support.peer import REPOSITORY, wait_until


def java_saying(folder: Path, version: str) -> None:
    """A `java` that only says its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_201"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.2"', 25),
    ],
)
def test_the_version_of_java_is_read(said: str, version: int) -> None:
    assert java_version(said) == version


def test_java_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SqlError, match="Spark needs Java, but there is none") as found:
        check_java()
    assert "apt install openjdk-17-jre-headless" in found.value.hint
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SqlError, match="there is none in JAVA_HOME"):
        check_spark()
    check_spark("sc://elsewhere:15002")  # there, not here


def test_java_must_not_be_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_saying(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SqlError, match=r"needs Java 17 or later, but .*old/bin/java is Java 11"):
        check_java()
    java_saying(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    check_java()
    java_saying(tmp_path / "odd", "?")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "odd"))
    with pytest.raises(SqlError, match="cannot find the version of Java"):
        check_java()


@pytest.mark.slow
def test_without_pyspark_it_is_said_what_to_install(tmp_path: Path) -> None:
    # As on a machine without it: a finder that denies it, in a process of its own.
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'pyspark': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'pyspark' else found(name)\n"
        "from millstream.__main__ import main\n"
        "main()\n"
    )
    shell = [sys.executable, "-c", program, "sql", "--data-dir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*shell, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=250,
        )

    refused = run("--engine", "spark", "-e", "SHOW STREAMS;")
    assert refused.returncode == 1
    assert "Spark is not installed" in refused.stderr
    assert "pip install 'millstream[spark]'" in refused.stderr
    assert "Traceback" not in refused.stderr
    create = "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSON', partitions=1);"
    one = run("-e", f"{create} SET 'engine'='spark'; CREATE STREAM t AS SELECT a FROM s;")
    assert one.returncode == 1
    assert "Stream created" in one.stdout
    assert "Spark is not installed" in one.stderr
    assert run("-e", "SHOW QUERIES;").stdout == "no queries are running\n"


def test_a_log_that_cannot_be_written_does_not_stop_the_process(tmp_path: Path) -> None:
    with JvmLog(tmp_path) as written:  # a directory: nothing can be written there
        # Far more than a pipe holds: without a reader the process would wait for good.
        said = subprocess.run(
            ["head", "-c", "2000000", "/dev/zero"], stdout=written, timeout=60, check=False
        )
    assert said.returncode == 0


def test_what_a_process_says_is_in_a_file(tmp_path: Path) -> None:
    log = JvmLog(tmp_path / "deep" / "spark.log")
    with log as written:
        subprocess.run(["sh", "-c", "echo one; echo two >&2"], stdout=written, stderr=written)
    file = tmp_path / "deep" / "spark.log"
    wait_until(lambda: file.exists() and file.read_text() == "one\ntwo\n", "the file")
