"""Errors as users read them."""

import errno
import os
from pathlib import Path

import pytest

from broker.errors import failure_text


def test_an_error_of_the_system_names_its_file(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(OSError, match="missing") as failed:
        missing.read_text()
    assert failure_text(failed.value) == f"No such file or directory: {missing}"


def test_an_error_without_a_file_says_where_it_came_from() -> None:
    with pytest.raises(OSError, match="descriptor") as failed:
        os.fsync(1_000_000)
    assert failure_text(failed.value).startswith("Bad file descriptor\n  at: ")
    assert failure_text(OSError(errno.EIO, "Input/output error")) == "Input/output error"
