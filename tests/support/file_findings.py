"""What a check found in each file, kept for the next run.

A check that parses all files of the repository takes seconds, and most files are as they were. The
findings of a file are kept in .cache/checks under the digest of its text and of the check itself.
"""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from tests.support.peer import CACHE

FOLDER = CACHE / "checks"
Findings = TypeVar("Findings")  # what JSON can hold


class FileFindings(Generic[Findings]):
    """The findings of one check, by file; they are kept by `save`."""

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
        """What is found in a file."""
        text = path.read_bytes()
        digest = sha256(self._check + bytes(path) + b"\0" + text).hexdigest()
        if digest not in self._old:
            self._old[digest] = self._find(path, text.decode())
        self._new[digest] = self._old[digest]
        return self._new[digest]

    def save(self) -> None:
        """Keep the findings of all files that were asked for."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(self._new))
        unfinished.replace(self._file)
