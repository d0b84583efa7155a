"""OffsetMap: the last offset of each key in the part of a log that is not compacted yet."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import repeat

DIGEST_BYTES = 16
# The cost of an entry: the digest, the offset, and its share of the table after it has grown.
ENTRY_BYTES = 200


NEVER = (1 << 63) - 1


class OffsetMap:
    """Key -> last offset, within a memory limit.

    `latest_offset` is the offset up to which the map covers the log: for later records it has no
    information, and a key that is not in it has no record in the dirty part up to there. Keys are
    added per batch, since compaction reads every record twice.
    """

    __slots__ = ("_entries_max", "_offsets", "latest_offset")

    def __init__(self, bytes_max: int) -> None:
        """An empty map that should not grow beyond `bytes_max`."""
        self._entries_max = max(bytes_max // ENTRY_BYTES, 1)
        self._offsets: dict[bytes | None, int] = {None: NEVER}
        self.latest_offset = -1

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._offsets) - 1

    def has_room(self, count: int) -> bool:
        """Whether this number of keys fits; an empty map accepts any number."""
        return not len(self) or len(self) + count <= self._entries_max

    def put(self, keys: Sequence[bytes | None], offsets: Iterable[int]) -> None:
        """Add the keys of the next batch; records without a key (None) are never retained."""
        self._offsets.update(zip(map(_stand_in, keys), offsets, strict=True))
        self._offsets[None] = NEVER

    def last_offsets(self, keys: Sequence[bytes | None]) -> Iterable[int]:
        """The last offset of each key; -1: not in this part of the log."""
        return map(self._offsets.get, map(_stand_in, keys), repeat(-1))


def _stand_in(key: bytes | None) -> bytes | None:
    """A short key itself, or a 16-byte digest of a long one."""
    if key is None or len(key) < DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()
