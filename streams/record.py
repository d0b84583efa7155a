"""Record, Change, Windowed, Chunk: what moves through a task.

On the record path nothing of this is made per node: a node's code is a function of four arguments
(key, value, timestamp_ms, headers). In a table's part of the topology the value is a Change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
NO_HEADERS: Headers = ()

# What a table's node forwards: the new value, the old one (None when it is not needed), and
# whether this is the newest version of the key (only a versioned table ever says False).
Change = tuple[object, object, bool]


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """One record as a Processor sees it and as tests read it."""

    key: K
    value: V
    timestamp_ms: int
    headers: Headers = NO_HEADERS

    def __post_init__(self) -> None:
        """Refuse a time before the epoch."""
        if self.timestamp_ms < 0:
            raise ValueError(f"timestamp_ms is {self.timestamp_ms}; it must not be negative")

    def with_key(self, key: object) -> "Record[object, V]":
        """The same record under another key."""
        return Record(key, self.value, self.timestamp_ms, self.headers)

    def with_value(self, value: object) -> "Record[K, object]":
        """The same record with another value."""
        return Record(self.key, value, self.timestamp_ms, self.headers)

    def with_timestamp(self, timestamp_ms: int) -> Self:
        """The same record at another time."""
        return replace(self, timestamp_ms=timestamp_ms)

    def with_headers(self, headers: Headers) -> Self:
        """The same record with other headers."""
        return replace(self, headers=headers)


class Windowed(NamedTuple, Generic[K]):
    """The key of a windowed table: a key and its window.

    The end is exclusive for tumbling and hopping windows, inclusive for sliding ones and sessions.
    """

    key: K
    start_ms: int
    end_ms: int


class Position(NamedTuple):
    """Where the input record that is being processed came from."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Chunk:
    """A run of records of one partition, column-wise, still bytes.

    `next_offset` is the position after the run: offsets below it that are missing here were
    control batches, aborted or compacted away.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None  # None: no record has any
    next_offset: int

    def __len__(self) -> int:
        """How many records there are."""
        return len(self.offsets)
