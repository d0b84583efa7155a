"""Errors at the start of a command say what, where, and what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.client import admin
from broker.errors import ConfigError
from tests.support.peer import REPOSITORY


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [("millstream", "up", "--port-base", "0"), ("broker", "--port", "0")]
)
def test_a_working_directory_that_is_gone_is_named(tmp_path: Path, module: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    name, *arguments = module
    script = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m {name} {' '.join(arguments)}"
    ended = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "the working directory no longer exists" in ended.stderr


@pytest.mark.parametrize(
    "setting", ["ssl_ca_location", "ssl_certificate_location", "ssl_key_location"]
)
def test_a_tls_file_that_is_missing_is_named(tmp_path: Path, setting: str) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(ConfigError, match=r"missing\.pem"):
        admin("localhost:1", security_protocol="SSL", **{setting: missing})
