"""The findings of a check in each file, cached for the next run.

A check that parses all files of the repository takes seconds, and most files do not change. The
findings of a file are cached in .cache/checks under the digest of its text and of the check itself.
"""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from tests.support.peer import CACHE

FOLDER = CACHE / "checks"
Findings = TypeVar("Findings")  # JSON values


class FileFindings(Generic[Findings]):
    """The findings of one check, by file; `save` writes them to the cache."""

    def __init__(
        self, check: Path, find: Callable[[Path, str], Findings], *, folder: Path = FOLDER
    ) -> None:
        self._find = find
        self._file = folder / f"{check.stem}.json"
        self._check = check.read_bytes()
        self._old: dict[str, Findings] = {}
        if self._file.exists():
            self._old = json.loads(self._file.read_text())
        self._new: dict[str, Findings] = {}

    def of(self, path: Path) -> Findings:
        """The findings in a file."""
        text = path.read_bytes()
        digest = sha256(self._check + bytes(path) + b"\0" + text).hexdigest()
        if digest not in self._old:
            self._old[digest] = self._find(path, text.decode())
        self._new[digest] = self._old[digest]
        return self._new[digest]

    def save(self) -> None:
        """Write the findings of all requested files."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(self._new))
        unfinished.replace(self._file)
