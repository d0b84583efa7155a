"""Producer ids: each is given out once, also over restarts.

    producer-ids    the first id that was never reserved, as a decimal number and a line feed

Ids are reserved in blocks: the file moves past a block before its first id is given out, so a crash
wastes the rest of a block and reuses nothing.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from broker import concurrency
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.files import FileSystem

FILE_NAME = "producer-ids"
BLOCK_SIZE = 1000
SPARE_MIN = 500  # with fewer left the next block is reserved

Background = Callable[[Callable[[], object]], None]


def _at_once(job: Callable[[], object]) -> None:
    job()


class ProducerIds:
    """Gives out producer ids."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        files: FileSystem | None = None,
        in_background: Background = _at_once,
    ) -> None:
        """Ids of the broker whose data is in the directory; nothing is reserved yet."""
        self._path = os.path.join(directory, FILE_NAME)
        self._files = files or FileSystem()
        self._in_background = in_background
        self._writing = concurrency.Lock()
        self._next = 0
        self._reserved_end = 0
        self._reserving_end = 0  # being written in the background

    def load(self) -> None:
        """Continue after the last block that was reserved, and reserve the next one."""
        data = self._files.read_file(self._path)
        if data is not None:
            self._next = self._reserved_end = self._parsed(data)
        self._reserve_at_start()

    def _parsed(self, data: bytes) -> int:
        text = data.decode(errors="replace")
        try:
            return int(text)
        except ValueError:
            raise StorageError(
                f"the producer id file holds {text[:40]!r}, not a number",
                at=self._path,
                hint="write the first unused producer id into it",
            ) from None

    def skip_past(self, producer_id: int) -> None:
        """Never give out this id or a lower one: it is in use, whatever the file says."""
        self._next = max(self._next, producer_id + 1)
        self._reserve_at_start()

    def _reserve_at_start(self) -> None:
        """Now, where no request waits: the first producer must not wait for the disk."""
        if self._next >= self._reserved_end:
            with suppress(BrokerError):  # the first request for an id reports it
                self._reserve(self._next + BLOCK_SIZE)

    def next(self) -> int:
        """An id that was never used before."""
        if self._next >= self._reserved_end:
            self._reserve(self._next + BLOCK_SIZE)
        self._next += 1
        if self._next + SPARE_MIN >= self._reserved_end > self._reserving_end:
            # Before they are used up: the broker does not wait for the disk under its lock.
            self._reserving_end = self._reserved_end
            self._in_background(self._reserve_ahead)
        return self._next - 1

    def _reserve_ahead(self) -> None:
        self._reserve(self._reserving_end + BLOCK_SIZE)

    def _reserve(self, end: int) -> None:
        with self._writing:
            if end <= self._reserved_end:
                return
            try:
                self._files.write_file(self._path, f"{end}\n".encode())
            except OSError as error:
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"cannot reserve producer ids: {error.strerror}",
                    at=self._path,
                ) from error
            self._reserved_end = end
