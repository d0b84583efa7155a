"""Producer ids: each is assigned once, also across restarts.

    producer-ids    the first id that was never reserved, as a decimal number and a line feed

Ids are reserved in blocks: the file is advanced past a block before its first id is assigned, so a
crash wastes the rest of a block but never assigns an id twice.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress

from broker import concurrency
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.files import FileSystem

FILE_NAME = "producer-ids"
BLOCK_SIZE = 1000
SPARE_MIN = 500  # with fewer left, the next block is reserved

logger = logging.getLogger(__name__)

Background = Callable[[Callable[[], object]], None]


def _at_once(job: Callable[[], object]) -> None:
    job()


class ProducerIds:
    """Assigns producer ids."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        files: FileSystem | None = None,
        in_background: Background = _at_once,
    ) -> None:
        """Ids of the broker with this data directory; nothing is reserved yet."""
        self._path = os.path.join(directory, FILE_NAME)
        self._files = files or FileSystem()
        self._in_background = in_background
        self._writing = concurrency.Lock()
        self._next = 0
        self._reserved_end = 0
        self._is_reserving = False  # in the background
        self._failure: BrokerError | None = None  # of the last reservation in the background

    def load(self) -> None:
        """Continue after the last reserved block, and reserve the next one."""
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
        """Never assign this id or a lower one: it is in use, whatever the file contains."""
        self._next = max(self._next, producer_id + 1)
        self._reserve_at_start()

    def _reserve_at_start(self) -> None:
        """Reserve now, while no request waits: the first producer must not wait for the disk."""
        if self._next >= self._reserved_end:
            with suppress(BrokerError):  # the first request for an id retries
                self._reserve(self._next + BLOCK_SIZE)

    def next(self) -> int:
        """An id that was never assigned before.

        The broker calls it under its lock, so it never waits for the disk: the next block is
        reserved before this one is used up, and producers retry if none is available yet.
        """
        if self._next + SPARE_MIN >= self._reserved_end and not self._is_reserving:
            self._is_reserving = True
            self._in_background(self._reserve_ahead)
        if self._next >= self._reserved_end:
            failure, self._failure = self._failure, None
            raise failure or BrokerError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "producer ids are being reserved"
            )
        self._next += 1
        return self._next - 1

    def _reserve_ahead(self) -> None:
        try:
            self._reserve(max(self._next, self._reserved_end) + BLOCK_SIZE)
        except BrokerError as error:
            self._failure = error
            logger.warning("%s", error)
        else:
            self._failure = None
        finally:
            self._is_reserving = False

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
