"""OpenStore: the interface of open stores for tasks, and the parts of all stores.

A kind of store has two classes. The *reads* convert keys and values to bytes and back, over `Reads`
of rows: the task's WriteBuffer, or the view of other threads. The *store* adds writes, and the
methods for commits, changelogs and restoring.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from streams.record import Headers
from streams.state.codec import StoreCodec
from streams.state.expiry import Expiry
from streams.state.row_groups import RowGroups
from streams.state.store import StoreSpec
from streams.state.write_buffer import WriteBuffer

# key, value, headers, timestamp_ms: a record for the changelog.
ChangelogRow = tuple[bytes, bytes | None, Headers, int]
# key, value, timestamp_ms: a record from the changelog.
RestoredRow = tuple[bytes | None, bytes | None, int]


class RecordTime:
    """The timestamp of the current record; the task sets it, plain stores read it."""

    __slots__ = ("ms",)

    def __init__(self) -> None:
        self.ms = 0


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The parts of a store."""

    spec: StoreSpec
    codec: StoreCodec
    buffer: WriteBuffer
    groups: RowGroups | None  # of stores that have segments
    expiry: Expiry
    record_time: RecordTime

    @property
    def latest_ms(self) -> int:
        """The largest time of a row: a start in window stores; 0 where rows have no times."""
        return max(0, self.expiry.observed_ms)

    @property
    def row_groups(self) -> RowGroups:
        """The groups of a store that has segments."""
        assert self.groups is not None
        return self.groups


class OpenStore(Protocol):
    """The interface of an open store for its task."""

    @property
    def parts(self) -> StoreParts:
        """The parts of the store."""
        ...

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        ...

    def before_commit(self) -> None:
        """Make the last changes before the commit."""
        ...

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        ...

    def committed(self) -> None:
        """The buffer was written and emptied."""
        ...

    def discarded(self) -> None:
        """The buffer was emptied without being written."""
        ...

    def view(self) -> object:
        """A read-only view, for other threads."""
        ...
