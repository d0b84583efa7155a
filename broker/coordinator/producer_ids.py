"""Producer ids: each is given out once, also over restarts.

    producer-ids    the first id that was never reserved, as a decimal number and a line feed

Ids are reserved in blocks: the file moves past a block before its first id is given out, so a crash
wastes the rest of a block and reuses nothing.
"""

from pathlib import Path

from broker.errors import BrokerError, ErrorCode, StorageError
from broker.storage.files import FileSystem

FILE_NAME = "producer-ids"
BLOCK_SIZE = 1000


class ProducerIds:
    """Gives out producer ids."""

    def __init__(self, directory: str | Path) -> None:
        """Ids of the broker whose data is in the directory; nothing is reserved yet."""
        self._path = Path(directory) / FILE_NAME
        self._next = 0
        self._reserved_end = 0

    def load(self) -> None:
        """Go on after the last block that was reserved."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return
        try:
            self._next = self._reserved_end = int(text)
        except ValueError:
            raise StorageError(
                f"the producer id file holds {text[:40]!r}, not a number",
                at=str(self._path),
                hint="write the first id that no producer has used into it",
            ) from None

    def skip_past(self, producer_id: int) -> None:
        """Never give out this id or a lower one; somebody has it, whatever the file says."""
        self._next = max(self._next, producer_id + 1)

    def next(self) -> int:
        """An id that nobody had before."""
        if self._next >= self._reserved_end:
            self._reserve(self._next + BLOCK_SIZE)
        self._next += 1
        return self._next - 1

    def _reserve(self, end: int) -> None:
        try:
            FileSystem().write_file(str(self._path), f"{end}\n".encode())
        except OSError as error:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"cannot reserve producer ids: {error.strerror}",
                at=str(self._path),
            ) from error
        self._reserved_end = end
