"""CleanRows: a cache of committed rows, limited in bytes.

Rows are cached in generations, newest first: the rows read since the last commit, the rows that the
last commit wrote, and so on. A commit adds its rows as a whole, so there is no cost per row. Once
half of the limit is used, a row that is read from an older generation moves to the newest, so that
rows in use stay cached. When the limit is reached the oldest generation is dropped. Small
neighbouring generations are merged, so there are never many.

Each row has a time: a window its start, rows of other kinds of stores 0. The cache records up to
which time there can be rows on disk that are not cached. Rows of later times are cached or do not
exist, so they are not looked up on disk: that is the most frequent case of a window aggregate.
"""

from streams.state.key_layout import TIME_MAX

# A merged generation has at most this share of the limit, so that not too much is dropped at once.
SHARE_MAX = 8
ENTRY_BYTES = 160  # of the objects and dict entries, in addition to the contents

Rows = dict[bytes, bytes | None]


class _Absent:
    """Distinguishes "not cached" from "known to be deleted"."""


ABSENT = _Absent()


class CleanRows:
    """The cache of one store. Only the task's thread uses it."""

    __slots__ = (
        "_bytes_max",
        "_latest_ms",
        "_sizes",
        "_times",
        "_young_bytes",
        "is_filling",
        "missing_until_ms",
        "older",
        "young",
    )

    def __init__(self, bytes_max: int) -> None:
        """Cache rows of up to this many bytes; none if it is 0."""
        self._bytes_max = bytes_max
        self.young: Rows = {}
        self._young_bytes = 0
        self.older: list[Rows] = []  # newest first
        self._sizes: list[int] = []
        self._times: list[int] = []  # the latest time of a row in each generation
        self._latest_ms = 0
        self.is_filling = False  # whether rows in use must be moved, so that they are not dropped
        self.missing_until_ms = TIME_MAX  # until `on_disk` is called

    def on_disk(self, until_ms: int) -> None:
        """Set the latest time of rows on disk; below 0: there are none."""
        self.missing_until_ms = self._latest_ms = until_ms

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the rows use."""
        return self._young_bytes + sum(self._sizes)

    def get(self, key: bytes) -> bytes | _Absent | None:
        """The value of a key; None if it is known to be deleted, ABSENT if it is not cached."""
        cached: bytes | _Absent | None = self.young.get(key, ABSENT)
        if cached is not ABSENT:
            return cached
        for rows in self.older:
            value = rows.get(key, ABSENT)
            if value is not ABSENT:
                if self.is_filling:
                    self.keep(key, value)  # type: ignore[arg-type]  # mypy does not narrow so
                return value
        return ABSENT

    def keep(self, key: bytes, value: bytes | None) -> None:
        """Cache a row that was read."""
        if not self._bytes_max:
            return
        self.young[key] = value
        self._young_bytes += ENTRY_BYTES + len(key) + (len(value) if value else 0)
        if self._young_bytes > self._bytes_max // SHARE_MAX:
            self._age()

    def committed(self, rows: Rows, size: int, latest_ms: int) -> None:
        """Add the rows that a commit has written; the cache owns `rows` from now on.

        No row in the store has a later time than `latest_ms`.
        """
        if not rows:
            return
        self._latest_ms = latest_ms
        if not self._bytes_max:
            self._miss(latest_ms)
            return
        self._age()
        self._add(rows, size)

    def limit(self, bytes_max: int) -> None:
        """Reduce the limit to this many bytes."""
        self._bytes_max = min(self._bytes_max, bytes_max)
        self._drop()

    def _age(self) -> None:
        if self.young:
            self._add(self.young, self._young_bytes)
            self.young, self._young_bytes = {}, 0

    def _add(self, rows: Rows, size: int) -> None:
        older, sizes, times = self.older, self._sizes, self._times
        # Merge with a neighbour that is not much larger: each row is moved only a few times.
        while older and sizes[0] <= 2 * size and sizes[0] + size <= self._bytes_max // SHARE_MAX:
            before = older.pop(0)
            count = len(before)
            before.update(rows)
            size = sizes.pop(0) + size * (len(before) - count) // max(1, len(rows))
            rows = before
            del times[0]
        older.insert(0, rows)
        sizes.insert(0, size)
        times.insert(0, self._latest_ms)
        self._drop()

    def _drop(self) -> None:
        total = sum(self._sizes)
        while total > self._bytes_max:
            self.older.pop()
            total -= self._sizes.pop()
            self._miss(self._times.pop())
        self.is_filling = 2 * total > self._bytes_max

    def _miss(self, time_ms: int) -> None:
        if time_ms > self.missing_until_ms:
            self.missing_until_ms = time_ms
