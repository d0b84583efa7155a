"""OffsetMap: the last offset of each key in the part of a log that is not compacted yet."""

from hashlib import blake2b

DIGEST_BYTES = 16
# What an entry costs: the digest, the offset, and its share of the table when that has just grown.
ENTRY_BYTES = 200


def digest(key: bytes) -> bytes:
    """What stands for a key: itself, or 16 bytes; two keys do not share it in practice."""
    if len(key) < DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class OffsetMap:
    """Key -> last offset, within a bound of memory.

    `latest_offset` is how far the map speaks for the log: a record after it is none of its
    business, a key it does not hold has no record between the dirty part's start and it.
    """

    __slots__ = ("_entries_max", "_offsets", "latest_offset")

    def __init__(self, bytes_max: int) -> None:
        """An empty map that should not grow past `bytes_max`."""
        self._entries_max = max(bytes_max // ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    def __len__(self) -> int:
        """How many keys."""
        return len(self._offsets)

    def has_room(self, count: int) -> bool:
        """Whether so many more keys fit; an empty map takes any number."""
        return not self._offsets or len(self._offsets) + count <= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        """A key's record, later than those before it."""
        self._offsets[digest(key)] = offset

    def last_offset(self, key: bytes) -> int:
        """The last offset of a key; -1: not in this part of the log."""
        return self._offsets.get(digest(key), -1)
