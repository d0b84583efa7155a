"""Windows, and the assignment of timestamps to windows; pure functions.

    kind       bounds               belongs to                          a record is too late when
    tumbling   [start, start+size)  exactly one                         end <= stream time - grace
    hopping    [start, start+size)  up to ceil(size / advance)          the same, window by window
    sliding    [t-d, t] inclusive   those ending at, or 1 ms after, ... end < stream time - grace
    session    [first, last]        one, merged of all within the gap   end + gap < time - grace
    unlimited  [start, unlimited)  one                                 never

Durations are milliseconds or timedelta.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from streams.errors import TopologyError

Duration = int | timedelta
UNLIMITED_END_MS = (1 << 63) - 1


def milliseconds(duration: Duration, name: str = "duration") -> int:
    """A duration in milliseconds; booleans and floats are refused."""
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise TopologyError(
            f'"{name}" is {duration!r}', hint="pass milliseconds as an int, or a timedelta"
        )
    return duration


def _not_negative(name: str, value: int) -> None:
    if value < 0:
        raise TopologyError(f'"{name}" is {value} ms', hint="it must not be negative")


def _positive(name: str, value: int) -> None:
    if value <= 0:
        raise TopologyError(f'"{name}" is {value} ms', hint="it must be more than 0")


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of one size that start every `advance_ms`: tumbling when both are equal.

    Created by `tumbling` and `hopping`.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _positive("size", self.size_ms)
        _not_negative("grace", self.grace_ms)
        if not 0 < self.advance_ms <= self.size_ms:
            raise TopologyError(
                f'"advance" is {self.advance_ms} ms',
                hint=f"it must be more than 0 and at most the size, {self.size_ms} ms",
            )

    def starts(self, timestamp_ms: int) -> Iterator[int]:
        """The starts of the windows that contain a timestamp, oldest first; none is negative."""
        advance = self.advance_ms
        first = max(0, timestamp_ms - self.size_ms + advance) // advance * advance
        return iter(range(first, timestamp_ms + 1, advance))


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window that never ends."""

    start_ms: int = 0

    def __post_init__(self) -> None:
        _not_negative("start", self.start_ms)


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows of records that are at most `difference_ms` apart; both ends are inclusive."""

    difference_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _not_negative("difference", self.difference_ms)
        _not_negative("grace", self.grace_ms)


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows that grow as long as records arrive within the gap."""

    gap_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _positive("gap", self.gap_ms)
        _not_negative("grace", self.grace_ms)


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """How far apart joined records can be: other in [time - before, time + after], inclusive.

    With `eager_unmatched`, as in Kafka before 3.1, unmatched results are emitted immediately, and
    again if a match arrives later.
    """

    before_ms: int
    after_ms: int
    grace_ms: int = 0
    eager_unmatched: bool = False

    def __post_init__(self) -> None:
        _not_negative("grace", self.grace_ms)
        if self.before_ms + self.after_ms < 0:
            raise TopologyError(
                f"the join window is [{-self.before_ms}, {self.after_ms}] ms",
                hint="before + after must not be negative",
            )

    @property
    def size_ms(self) -> int:
        """The size of the join window."""
        return self.before_ms + self.after_ms


Windows = TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows


def tumbling(size: Duration, *, grace: Duration = 0) -> TimeWindows:
    """Windows that do not overlap and have no gaps.

    >>> tumbling(timedelta(minutes=1), grace=timedelta(seconds=5))
    TimeWindows(size_ms=60000, advance_ms=60000, grace_ms=5000)
    """
    size_ms = milliseconds(size, "size")
    return TimeWindows(size_ms, size_ms, milliseconds(grace, "grace"))


def hopping(size: Duration, advance: Duration, *, grace: Duration = 0) -> TimeWindows:
    """Windows that overlap: one starts every `advance`."""
    return TimeWindows(
        milliseconds(size, "size"), milliseconds(advance, "advance"), milliseconds(grace, "grace")
    )


def sliding(difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
    """Windows of records at most `difference` apart."""
    return SlidingWindows(milliseconds(difference, "difference"), milliseconds(grace, "grace"))


def session(gap: Duration, *, grace: Duration = 0) -> SessionWindows:
    """Windows that end after a gap without records."""
    return SessionWindows(milliseconds(gap, "gap"), milliseconds(grace, "grace"))


def unlimited(start_ms: int = 0) -> UnlimitedWindows:
    """One window that starts at a time and never ends."""
    return UnlimitedWindows(start_ms)


def join_within(
    difference: Duration | None = None,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
    grace: Duration = 0,
) -> JoinWindows:
    """The window of a stream-stream join: the same before and after, or different."""
    given = 0 if difference is None else difference
    return JoinWindows(
        milliseconds(given if before is None else before, "before"),
        milliseconds(given if after is None else after, "after"),
        milliseconds(grace, "grace"),
    )
