"""CommitLog: commits several files of one partition atomically.

    <directory>/.unfinished/<topic>/<partition>/
        1200.part       a file that is being written, named after its first offset
        commit.json     {"next": 1200, "files": [["800.part", "t/partition=0/t+0+0000000800.json"]]}

A commit has three steps, and may be interrupted between any two of them:

    1  all parts are complete and on disk
    2  commit.json replaces the old one               from here on the files are committed
    3  the parts are renamed to the names it lists

The next task that opens the partition finishes step 3, deletes parts that are not listed, and
continues reading at `next`. Names of parts are unique: a later part starts at a later offset.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.model import TopicPartition
from connect.errors import ConnectError

UNFINISHED = ".unfinished"
_COMMIT = "commit.json"
_PART = ".part"


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """A complete part, and its final name relative to the directory."""

    part: Path
    name: str


class CommitLog:
    """The committed and uncommitted files of one partition."""

    def __init__(self, directory: Path, partition: TopicPartition) -> None:
        self._directory = directory
        self._partition = partition
        self._folder = directory / UNFINISHED / partition.topic / str(partition.partition)

    def recover(self) -> int | None:
        """Finishes or discards an interrupted commit; returns the offset to continue from."""
        _make_folders(self._folder)
        next_offset, files = self._read()
        for part, name in files:
            if (self._folder / part).exists():
                self._rename(self._folder / part, name)
        for left in self._folder.iterdir():
            if left.name != _COMMIT:
                left.unlink()
        return next_offset

    def part(self, first_offset: int) -> Path:
        """The path of a new part."""
        return self._folder / f"{first_offset}{_PART}"

    def commit(self, parts: Sequence[FinishedPart], next_offset: int) -> None:
        """Commits all parts; the partition is then read from `next_offset` on."""
        self._write(next_offset, [(finished.part.name, finished.name) for finished in parts])
        for finished in parts:
            self._rename(finished.part, finished.name)

    def move(self, next_offset: int | None) -> None:
        """Sets the offset to continue from; None resets the log."""
        self.recover()
        if next_offset is not None:
            self._write(next_offset, [])
        else:
            (self._folder / _COMMIT).unlink(missing_ok=True)

    def _read(self) -> tuple[int | None, list[tuple[str, str]]]:
        path = self._folder / _COMMIT
        try:
            found = json.loads(path.read_bytes())
            return found["next"], found["files"]
        except FileNotFoundError:
            return None, []
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"the list of committed files cannot be read: {error!r}",
                at=str(path),
                hint="if you delete it, reading continues at the committed offset of the group",
            ) from None

    def _write(self, next_offset: int, files: list[tuple[str, str]]) -> None:
        path = self._folder / _COMMIT
        new = path.with_suffix(".new")
        with new.open("wb") as out:
            out.write(json.dumps({"next": next_offset, "files": files}).encode())
            out.flush()
            os.fsync(out.fileno())
        new.replace(path)
        _sync_folder(self._folder)

    def _rename(self, part: Path, name: str) -> None:
        target = self._directory / name
        _make_folders(target.parent)
        part.replace(target)
        _sync_folder(target.parent)


def sync_file(path: Path) -> None:
    """Syncs a file to disk."""
    _sync(path, os.O_RDONLY)


def _sync_folder(folder: Path) -> None:
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _make_folders(folder: Path) -> None:
    """Creates a folder and its parents, and syncs each parent to disk."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)
