"""OffsetMap: the last offset of each key in the part of a log that is not compacted yet."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import repeat

DIGEST_BYTES = 16
# What an entry costs: the digest, the offset, and its share of the table when that has just grown.
ENTRY_BYTES = 200


NEVER = (1 << 63) - 1


class OffsetMap:
    """Key -> last offset, within a bound of memory.

    `latest_offset` is how far the map speaks for the log: a record after it is none of its
    business, a key it does not hold has no record between the dirty part's start and it. Keys come
    by the batch, since compaction passes by every record twice.
    """

    __slots__ = ("_entries_max", "_offsets", "latest_offset")

    def __init__(self, bytes_max: int) -> None:
        """An empty map that should not grow past `bytes_max`."""
        self._entries_max = max(bytes_max // ENTRY_BYTES, 1)
        self._offsets: dict[bytes | None, int] = {None: NEVER}
        self.latest_offset = -1

    def __len__(self) -> int:
        """How many keys."""
        return len(self._offsets) - 1

    def has_room(self, count: int) -> bool:
        """Whether so many more keys fit; an empty map takes any number."""
        return not len(self) or len(self) + count <= self._entries_max

    def put(self, keys: Sequence[bytes | None], offsets: Iterable[int]) -> None:
        """The keys of a batch, later than those before it; no key (None) is never the last."""
        self._offsets.update(zip(map(_stand_in, keys), offsets, strict=True))
        self._offsets[None] = NEVER

    def last_offsets(self, keys: Sequence[bytes | None]) -> Iterable[int]:
        """The last offset of each key; -1: not in this part of the log."""
        return map(self._offsets.get, map(_stand_in, keys), repeat(-1))


def _stand_in(key: bytes | None) -> bytes | None:
    """A key itself, or 16 bytes in its place; two keys do not share them in practice."""
    if key is None or len(key) < DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()
