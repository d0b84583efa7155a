"""Record, Change, Windowed, Chunk: the data that tasks process.

None of these objects are created per node and record: a node is a function of four arguments (key,
value, timestamp_ms, headers). In the nodes of a table, the value is a Change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
NO_HEADERS: Headers = ()

# The value that a table's node forwards: new value, old value (None if it is not needed), and
# whether this is the latest version of the key (False only in versioned tables).
Change = tuple[object, object, bool]


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """A record, for Processors and tests."""

    key: K
    value: V
    timestamp_ms: int
    headers: Headers = NO_HEADERS

    def __post_init__(self) -> None:
        if self.timestamp_ms < 0:
            raise ValueError(f"timestamp_ms is {self.timestamp_ms}; it must not be negative")

    def with_key(self, key: object) -> "Record[object, V]":
        """The same record with another key."""
        return Record(key, self.value, self.timestamp_ms, self.headers)

    def with_value(self, value: object) -> "Record[K, object]":
        """The same record with another value."""
        return Record(self.key, value, self.timestamp_ms, self.headers)

    def with_timestamp(self, timestamp_ms: int) -> Self:
        """The same record with another timestamp."""
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
    """The topic, partition and offset of an input record."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Chunk:
    """Consecutive records of one partition, in columns of bytes.

    `next_offset` is the position after them: missing offsets before it are control records, or
    records that were aborted or compacted.
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
        """The number of records."""
        return len(self.offsets)
