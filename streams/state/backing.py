"""Backing, Database: where the rows of stores are between commits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Backing(Protocol):
    """The committed rows of one store. Other threads may read at any time."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        ...

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `first` up to, not including, `before`; None is an open end."""
        ...

    def count(self) -> int:
        """About how many rows there are."""
        ...

    @property
    def size_bytes(self) -> int:
        """About how many bytes the rows are, wherever they are."""
        ...

    @property
    def memory_bytes(self) -> int:
        """About how much memory the rows take."""
        ...

    @property
    def is_memory(self) -> bool:
        """Whether a read costs no more than one of a cache."""
        ...


@dataclass(slots=True)
class Write:
    """What a commit changes, as one step: rows by store, what has expired, and facts of the task.

    None deletes a row or a fact. `expired` deletes all rows of a store before the given key.
    """

    rows: dict[str, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    expired: dict[str, bytes] = field(default_factory=dict)
    facts: dict[bytes, bytes | None] = field(default_factory=dict)


class Database(Protocol):
    """The backings of a task's stores."""

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        ...

    def facts(self) -> dict[bytes, bytes]:
        """What was written beside the rows."""
        ...

    def write(self, write: Write) -> None:
        """Change everything or nothing."""
        ...

    def close(self) -> None:
        """Let go of files; rows cannot be read any more."""
        ...


def fact_key(what: str, store: str) -> bytes:
    """The key of a fact about a store."""
    return f"{what}/{store}".encode()


def is_fact_of(key: bytes, store: str) -> bool:
    """Whether a fact is about a store."""
    return key.partition(b"/")[2] == store.encode()
