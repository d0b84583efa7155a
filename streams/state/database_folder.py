"""DatabaseFolder: handles databases that are damaged, locked or out of space.

    <task>/rocksdb/          the database
    <task>/rocksdb.damaged   a read has found damage: the next start deletes the database

A database that cannot be opened, or in which a read found damage, is deleted with a log message;
its stores are restored from their changelogs.
"""

import logging
from contextlib import suppress
from pathlib import Path

from broker.files import FileSystem
from streams.errors import StateDirectoryLocked, StoreError, StoreNotReady

logger = logging.getLogger(__name__)

DAMAGED = "damaged"  # suffix of the marker file: delete the database before opening

# Errors that a new database would have, too, or that do not mean damage.
_NOT_DAMAGE = (
    "No space left",
    "Permission denied",
    "Too many open files",
    "Read-only file system",
    "Cannot allocate memory",
)
_LOCKED = ("lock hold by current process", "LOCK: Resource temporarily unavailable")


class DatabaseFolder:
    """The directory of one database."""

    def __init__(self, files: FileSystem, path: Path) -> None:
        self.path = path
        self.files = files
        self._marker = str(path.with_name(f"{path.name}.{DAMAGED}"))

    def delete_damaged(self) -> None:
        """Delete the database if a read has found damage."""
        if self.files.modified_ns(self._marker) is not None:
            self.rebuild("a read found damage")

    def rebuild(self, reason: str) -> None:
        """Delete the database, so that a new one is created."""
        logger.warning(
            "state in %s cannot be used (%s): it is deleted and restored from the changelogs",
            self.path,
            reason,
        )
        self.files.remove_folder(str(self.path))
        self.files.unlink(self._marker)

    def raise_unless_damage(self, error: Exception) -> None:
        """Raise errors that are not damage: the database is in use, or the disk is full."""
        problem = str(error)
        if any(words in problem for words in _LOCKED):
            raise StateDirectoryLocked(
                "the state of the task is in use",
                at=str(self.path),
                hint="another process or runner has it open; give each its own state_dir",
            ) from error
        if any(words in problem for words in _NOT_DAMAGE):
            raise StoreError(
                f"cannot open the state of the task: {problem}",
                at=str(self.path),
                hint="free space, or fix the permissions of the directory; nothing is lost",
            ) from error

    def failed(self, problem: str, store: str) -> StoreError:
        """Create the error to raise; mark damage, so that the next start creates a new database."""
        hint = "free space, or check the disk; nothing is lost, the changelog has all records"
        if not any(words in problem for words in _NOT_DAMAGE):
            with suppress(OSError):  # without the marker, the next read finds the damage again
                self.files.write_file(self._marker, b"", durable=False)
            logger.error("state in %s is damaged: %s", self.path, problem)
            hint = "start the task again: the store is rebuilt from its changelog"
        return StoreError(f'store "{store}" failed: {problem}', at=str(self.path), hint=hint)


def closed(store: str) -> StoreNotReady:
    """The error of a read after the database was closed."""
    return StoreNotReady(
        f'store "{store}" is closed',
        hint="its task has stopped or moved; retry, perhaps on another instance",
    )
