"""LogContext: the resources that all logs of a data directory share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.descriptors import LOG_FILES_MAX
from broker.files import FileSystem, OpenFiles

if TYPE_CHECKING:
    from broker.storage.partition_log import PartitionLog

LOADED_INDEXES_MAX = 8


def _nothing(_: "PartitionLog") -> None:
    pass


def _no_folder(_: str) -> None:
    pass


@dataclass(slots=True, kw_only=True)
class LogContext:
    """The disk, the clock and the limits of all logs."""

    clock: Clock
    files: FileSystem = field(default_factory=FileSystem)
    random: Random = field(default_factory=Random)
    open_files: OpenFiles = field(default_factory=lambda: OpenFiles(LOG_FILES_MAX))
    # Indexes of sealed segments, which can be released and loaded again.
    loaded_indexes: OpenFiles = field(default_factory=lambda: OpenFiles(LOADED_INDEXES_MAX))
    # Acknowledge only records on disk: the high watermark waits for fsync.
    acknowledge_durable: bool = False
    # Called when a log has unflushed data.
    needs_flush: Callable[["PartitionLog"], None] = _nothing
    # Called when a log must be flushed now, before its last append counts as written.
    flush_soon: Callable[["PartitionLog"], None] = _nothing
    # Called before a log creates its folder: a folder of a deleted log may still have the name.
    free_folder: Callable[[str], None] = _no_folder
    # Logs whose start offset was advanced: housekeeping removes the segments before it.
    starts_later: dict["PartitionLog", None] = field(default_factory=dict)
    # Files renamed for deletion, with the monotonic time at which they may be removed.
    discarded: list[tuple[int, str]] = field(default_factory=list)
