"""FlushTicket: what must be fsynced, so that it can be done without the broker's lock."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.model import OpenFile
from broker.storage.files import FileSystem
from broker.storage.segment import Segment

if TYPE_CHECKING:
    from broker.storage.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class FlushTicket:
    """The files of a log that are not on the disk yet, and how far they reach."""

    log: "PartitionLog"
    files: list[OpenFile]
    folders: list[str]
    sealed: list[Segment]
    end_offset: int
    truncations: int

    def sync(self, files: FileSystem) -> None:
        """Wait for the disk; the only call of a log that needs no lock."""
        for file in self.files:
            files.fsync(file)
        for folder in self.folders:
            files.fsync_directory(folder)
