"""Fixtures of the log's tests."""

from pathlib import Path

import pytest

from tests.broker.storage.faults import FaultyFileSystem
from tests.broker.storage.support import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A data directory on a disk that works."""
    return Disk(tmp_path / "data")


@pytest.fixture
def files() -> FaultyFileSystem:
    """A file system whose faults a test sets."""
    return FaultyFileSystem()


@pytest.fixture
def faulty_disk(tmp_path: Path, files: FaultyFileSystem) -> Disk:
    """A data directory on a disk with faults; acknowledged means durable."""
    return Disk(tmp_path / "data", files=files, durability="fsync")
