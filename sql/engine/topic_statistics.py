"""Statistics: counts of records that the queries of this server read from and write to a topic.

Counts are those of running queries. Rates are computed from two snapshots of them, the older one
within the window of ksqlDB's rates. The time of the last message is the record's timestamp.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from broker import concurrency
from broker.clock import Clock
from sql.engine import entities as en
from sql.engine.query_metrics import MeasuredQuery, QueryMetrics, query_metrics

WINDOW_MS = 100_000
BETWEEN_MS = 250  # the minimum time between two snapshots
SNAPSHOTS_MAX = 20
NOT_KNOWN = "n/a"
TIME_MAX_MS = 253_402_300_799_999  # of year 9999; records may contain any number


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """The counts of a query at some time."""

    at_ms: int
    found: QueryMetrics


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a topic, and when it last changed."""

    name: str
    value: float
    last_ms: int

    def __str__(self) -> str:
        """The format of ksqlDB."""
        digits = 0 if self.value == round(self.value) else 2
        return f"{self.name:>16}:{self.value:10.{digits}f} "


@dataclass(frozen=True, slots=True)
class TopicStatistics:
    """The statistics of a topic; empty if no query of this server reads or writes it."""

    messages: tuple[Statistic, ...] = ()
    failures: tuple[Statistic, ...] = ()

    @property
    def text(self) -> str:
        """The messages in one line."""
        return _line(self.messages, "last-message")

    @property
    def failures_text(self) -> str:
        """The failures in one line."""
        return _line(self.failures, "last-failed")


class Statistics:
    """Computes statistics of topics from the metrics of queries. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = concurrency.Lock()
        self._snapshots: dict[str, deque[CounterSnapshot]] = {}

    def of(self, topic: str, queries: Mapping[str, MeasuredQuery]) -> TopicStatistics:
        """The statistics of a topic, from some queries by their ids."""
        if not queries:
            return TopicStatistics()
        with self._lock:
            looked = [self._take_snapshot(name, each) for name, each in queries.items()]
            if not all(looked):
                never = concurrency.Condition()
                with never:
                    self._clock.wait(never, BETWEEN_MS)
                for name, each in queries.items():
                    self._take_snapshot(name, each)
            return _statistics(topic, [list(self._snapshots[name]) for name in queries])

    def _take_snapshot(self, name: str, query: MeasuredQuery) -> bool:
        """Take a snapshot unless one is recent; whether there are two snapshots to compare."""
        now_ms = self._clock.monotonic_ms()
        snapshots = self._snapshots.setdefault(name, deque(maxlen=SNAPSHOTS_MAX))
        while snapshots and snapshots[0].at_ms < now_ms - WINDOW_MS:
            snapshots.popleft()
        if not snapshots or now_ms - snapshots[-1].at_ms >= BETWEEN_MS:
            snapshots.append(CounterSnapshot(now_ms, query_metrics(query)))
        return len(snapshots) > 1

    def keep(self, names: Iterable[str]) -> None:
        """Remove all other queries."""
        with self._lock:
            self._snapshots = {
                name: self._snapshots[name] for name in names if name in self._snapshots
            }


def _statistics(topic: str, queries: list[list[CounterSnapshot]]) -> TopicStatistics:
    readers = [snapshots for snapshots in queries if topic in snapshots[-1].found.read]
    writers = [snapshots for snapshots in queries if topic in snapshots[-1].found.written]
    messages: list[Statistic] = []
    failures: list[Statistic] = []
    if readers:
        total, rate = _sums(readers, lambda found: found.read.get(topic, 0))
        last_ms = _last_ms(readers)
        messages += (
            Statistic("consumer-messages-per-sec", rate, last_ms),
            Statistic("consumer-total-messages", total, last_ms),
        )
        total, rate = _sums(readers, lambda found: found.failed)
        failures += (
            Statistic("consumer-failed-messages", total, 0),
            Statistic("consumer-failed-messages-per-sec", rate, 0),
        )
    if writers:
        total, rate = _sums(writers, lambda found: found.written.get(topic, 0))
        last_ms = _last_ms(writers)
        messages += (
            Statistic("messages-per-sec", rate, last_ms),
            Statistic("total-messages", total, last_ms),
        )
    return TopicStatistics(tuple(messages), tuple(failures))


def _sums(
    queries: list[list[CounterSnapshot]], count: Callable[[QueryMetrics], int]
) -> tuple[int, float]:
    """The sum of a count over queries, and its rate per second."""
    total, rate = 0, 0.0
    for snapshots in queries:
        first, last = snapshots[0], snapshots[-1]
        total += count(last.found)
        elapsed_ms = last.at_ms - first.at_ms
        grown = count(last.found) - count(first.found)
        if elapsed_ms > 0 and grown > 0:  # a restarted query counts from zero
            rate += grown * 1000 / elapsed_ms
    return total, rate


def _last_ms(queries: list[list[CounterSnapshot]]) -> int:
    return max(snapshots[-1].found.last_ms for snapshots in queries)


def _line(found: tuple[Statistic, ...], last: str) -> str:
    if not found:
        return ""
    return "".join(map(str, found)) + f"{last:>16}: {_time_text(found[0].last_ms):>9}"


def _time_text(time_ms: int) -> str:
    if time_ms <= 0:
        return NOT_KNOWN
    moment = datetime.fromtimestamp(min(time_ms, TIME_MAX_MS) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def of_host(found: Iterable[Statistic], address: str) -> tuple[en.HostStatistic, ...]:
    """Statistics with their host."""
    name, _, port = address.rpartition(":")
    host = en.HostInfo(name, int(port) if port.isdecimal() else 0)
    return tuple(en.HostStatistic(host, each.name, each.value, each.last_ms) for each in found)
