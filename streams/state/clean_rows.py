"""CleanRows: committed rows that stay in memory, within a budget of bytes.

Rows are kept by generation, newest first: what was read since the last commit, what the last
commit wrote, and so on. A commit hands over its rows as a whole, so it costs nothing per row. Once
half of the budget is used, a row that is found in an older generation moves to the youngest, so
rows in use stay. When the budget is used up the oldest generation goes. Small neighbours are
merged: there are never many.

Each row has a time: a window its start, rows of other kinds of stores 0. The cache knows up to
which time rows may be on disk only. Rows of later times are here or nowhere, so no reader looks for
them on disk: that is most of what a window aggregate asks for.
"""

from streams.state.key_layout import TIME_MAX

# A generation grows by merging up to this share of the budget, so that not too much goes at once.
SHARE_MAX = 8
ENTRY_BYTES = 160  # of the objects and the places in dicts, beside the contents

Rows = dict[bytes, bytes | None]


class _Absent:
    """Distinguishes "not here" from "known to be deleted"."""


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
        """Keep rows of up to this many bytes; none when it is 0."""
        self._bytes_max = bytes_max
        self.young: Rows = {}
        self._young_bytes = 0
        self.older: list[Rows] = []  # newest first
        self._sizes: list[int] = []
        self._times: list[int] = []  # no row of a generation has a later time
        self._latest_ms = 0
        self.is_filling = False  # whether rows in use must move, lest they go
        self.missing_until_ms = TIME_MAX  # until it is known what is on disk

    def on_disk(self, until_ms: int) -> None:
        """All rows on disk have times up to this one; below 0: there are none."""
        self.missing_until_ms = self._latest_ms = until_ms

    @property
    def memory_bytes(self) -> int:
        """About how much memory the rows take."""
        return self._young_bytes + sum(self._sizes)

    def get(self, key: bytes) -> bytes | _Absent | None:
        """The value of a key, None when it is known to be deleted; ABSENT when it is not here."""
        found: bytes | _Absent | None = self.young.get(key, ABSENT)
        if found is not ABSENT:
            return found
        for rows in self.older:
            value = rows.get(key, ABSENT)
            if value is not ABSENT:
                if self.is_filling:
                    self.keep(key, value)  # type: ignore[arg-type]  # mypy does not narrow so
                return value
        return ABSENT

    def keep(self, key: bytes, value: bytes | None) -> None:
        """Remember a row that was read."""
        if not self._bytes_max:
            return
        self.young[key] = value
        self._young_bytes += ENTRY_BYTES + len(key) + (len(value) if value else 0)
        if self._young_bytes > self._bytes_max // SHARE_MAX:
            self._age()

    def committed(self, rows: Rows, size: int, latest_ms: int) -> None:
        """Take over what a commit has written; `rows` belong to the cache from now on.

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
        """Keep at most this many bytes from now on."""
        self._bytes_max = min(self._bytes_max, bytes_max)
        self._drop()

    def _age(self) -> None:
        if self.young:
            self._add(self.young, self._young_bytes)
            self.young, self._young_bytes = {}, 0

    def _add(self, rows: Rows, size: int) -> None:
        older, sizes, times = self.older, self._sizes, self._times
        # A neighbour that is not much larger takes the rows in: each row moves a few times only.
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
