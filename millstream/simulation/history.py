"""History: who did what when, in a simulation; its digest says whether two runs were the same."""

import hashlib
from collections import deque
from collections.abc import Callable

LINES_KEPT = 20_000
DETAIL = f"{'':14}| "  # where other lines have the time


class History:
    """Events in their order. The digest covers all of them, also those that are forgotten."""

    def __init__(self, lines_max: int = LINES_KEPT) -> None:
        """Nothing has happened."""
        self.now_us: Callable[[], int] = lambda: 0
        self.count = 0
        self._lines: deque[str] = deque(maxlen=lines_max)
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, who: object, what: str, *details: object) -> None:
        """Something happened now."""
        self.count += 1
        now_us = self.now_us()
        line = f"{now_us / 1_000_000:12.6f}  {who!s:<28} {what} {' '.join(map(str, details))}"
        line = line.rstrip()
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        self._lines.append(line)

    def detail(self, text: str) -> None:
        """More about the last event, for readers only: it may differ between equal runs."""
        self._lines.extend(f"{DETAIL}{line}" for line in text.rstrip().splitlines())

    def digest(self) -> str:
        """Equal for equal histories."""
        return self._digest.hexdigest()

    def last(self, count: int = LINES_KEPT) -> list[str]:
        """The last events."""
        return list(self._lines)[-count:]
