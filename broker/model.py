"""Plain values that all layers use."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1
MAX_TIMESTAMP = -3

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC})


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """As in the names of directories and in messages: topic-partition."""
        return f"{self.topic}-{self.partition}"


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, as in a batch."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


class AbortedTransaction(NamedTuple):
    """An aborted transaction that a read_committed reader must skip."""

    producer_id: int
    first_offset: int


class OpenFile:
    """A file descriptor that closes when its last holder releases it.

    Readers may hold slices of a segment that is already deleted; the kernel retains the bytes.
    """

    __slots__ = ("descriptor",)

    def __init__(self, path: str, flags: int = os.O_RDWR, mode: int = 0o644) -> None:
        self.descriptor = -1
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, mode)

    def fileno(self) -> int:
        """The descriptor."""
        return self.descriptor

    def read(self, size: int, position: int) -> bytes:
        """Bytes at a position; fewer at the end of the file."""
        return os.pread(self.descriptor, size, position)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


@dataclass(slots=True)
class FileSlice:
    """A run of bytes of an open file, sent without passing through Python."""

    file: OpenFile
    position: int
    size: int

    def __len__(self) -> int:
        """Size in bytes."""
        return self.size

    def read(self) -> bytes:
        """The bytes of the slice."""
        return self.file.read(self.size, self.position)


Records = bytes | memoryview | FileSlice


@dataclass(slots=True)
class ConnectionInfo:
    """What a handler knows about the client of a request."""

    client_id: str = ""
    client_host: str = "embedded"
    listener: str = "PLAINTEXT"
    software_name: str = ""
    software_version: str = ""
    attributes: dict[str, object] = field(default_factory=dict)
