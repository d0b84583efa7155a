"""History: the events of a simulation; equal runs have equal digests."""

import hashlib
from collections import deque
from collections.abc import Callable

LINES_MAX = 20_000
DETAIL = f"{'':14}| "  # in the column of the time


class History:
    """Events in order. The digest covers all events, also those that are no longer stored."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self.now_us: Callable[[], int] = lambda: 0
        self.count = 0
        self._lines: deque[str] = deque(maxlen=lines_max)
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, actor: object, event: str, *details: object) -> None:
        """Add an event."""
        self.count += 1
        now_us = self.now_us()
        line = f"{now_us / 1_000_000:12.6f}  {actor!s:<28} {event} {' '.join(map(str, details))}"
        line = line.rstrip()
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        self._lines.append(line)

    def detail(self, text: str) -> None:
        """Add details of the last event, which are not part of the digest."""
        self._lines.extend(f"{DETAIL}{line}" for line in text.rstrip().splitlines())

    def digest(self) -> str:
        """The digest of all events."""
        return self._digest.hexdigest()

    def last(self, count: int = LINES_MAX) -> list[str]:
        """The last events."""
        return list(self._lines)[-count:]
