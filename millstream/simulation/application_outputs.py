"""Compares the outputs of the application with those expected for its input.

All results are committed once: counts increase by one, and each pair of the join exists once.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from broker.client import consumer
from broker.client.record_consumer import Consumer
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import PARTITIONS
from millstream.simulation.actors.streams_apps import (
    CLOSE,
    COUNTS,
    JOINED,
    OUTPUTS,
    WINDOW,
    WINDOW_COUNTS,
    group_of,
    is_left,
    pair,
    window_key,
)
from millstream.simulation.observations import Stored, StoredRecord, Violation

INVARIANT = "what is committed equals the reference"
SECONDS_MAX = 240  # after the last record
MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class Outputs:
    """The content of the output topics, found or expected."""

    counts: dict[str, dict[str, int]] = field(  # the last count of each key, by topic
        default_factory=lambda: {COUNTS: {}, WINDOW_COUNTS: {}}
    )
    pairs: Counter[bytes] = field(default_factory=Counter)

    def add(self, topic: str, key: bytes, value: bytes) -> None:
        """Add a record of a topic."""
        if topic == JOINED:
            self.pairs[value] += 1
            return
        counts, name, count = self.counts[topic], key.decode(), int(value)
        before = counts.get(name, 0)
        if count != before + 1:
            raise Violation(INVARIANT, f'{topic} of "{name}" go from {before} to {count}')
        counts[name] = count


def expected_of(plain: Stored) -> Outputs:
    """The expected outputs for an input."""
    expected = Outputs()
    groups: dict[str, list[StoredRecord]] = defaultdict(list)
    for records in plain.values():
        for each in records:
            groups[group_of(each.value)].append(each)
    size_ms = WINDOW // MILLISECOND
    for group, records in groups.items():
        expected.counts[COUNTS][group] = len(records)
        starts = Counter(each.timestamp_ms // size_ms * size_ms for each in records)
        for start_ms, count in starts.items():
            expected.counts[WINDOW_COUNTS][window_key(group, start_ms)] = count
        expected.pairs.update(_pairs(records))
    return expected


def _pairs(records: Iterable[StoredRecord]) -> Iterator[bytes]:
    """The expected pairs of the join of one group."""
    by_time = sorted(records, key=lambda each: each.timestamp_ms)
    right = [each for each in by_time if not is_left(each.value)]
    times = [each.timestamp_ms for each in right]
    within_ms = CLOSE // MILLISECOND
    for each in by_time:
        if is_left(each.value):
            first = bisect_left(times, each.timestamp_ms - within_ms)
            after = bisect_right(times, each.timestamp_ms + within_ms)
            for other in right[first:after]:
                yield pair(each.value, other.value)


def await_outputs(actor: Actor, plain: Stored) -> None:
    """Read committed outputs until they are complete."""
    expected, found = expected_of(plain), Outputs()
    with _reader(actor) as reader:
        for _ in range(SECONDS_MAX):
            _read_to_end(reader, found)
            _check_no_excess(found, expected)
            if found == expected:
                actor.note("has read", sum(found.pairs.values()), "pairs and all counts")
                return
            actor.rest(1_000, 1_000)
    _check_all(found, expected)


def read_outputs(actor: Actor) -> Outputs:
    """Read all outputs that are committed now."""
    found = Outputs()
    with _reader(actor) as reader:
        _read_to_end(reader, found)
    return found


def _reader(actor: Actor) -> Consumer:
    reader = consumer(
        actor.target,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )
    reader.assign([TopicPartition(topic, n) for topic in OUTPUTS for n in range(PARTITIONS)])
    return reader


def _read_to_end(reader: Consumer, found: Outputs) -> None:
    """Read up to the current ends."""
    ends = reader.end_offsets(reader.assignment())
    while any(reader.position(tp) < end for tp, end in ends.items()):
        for record in reader.poll(timeout_ms=1_000):
            found.add(record.topic, record.key or b"", record.value or b"")


def _check_no_excess(found: Outputs, expected: Outputs) -> None:
    for topic, counts in found.counts.items():
        for key, count in counts.items():
            limit = expected.counts[topic].get(key, 0)
            if count > limit:
                raise Violation(INVARIANT, f'{topic} of "{key}" are at {count}, not {limit}')
    for value, count in (found.pairs - expected.pairs).items():
        raise Violation(INVARIANT, f"{value.decode()} is joined {count} times too often")


def _check_all(found: Outputs, expected: Outputs) -> None:
    for topic, counts in expected.counts.items():
        for key, count in counts.items():
            now = found.counts[topic].get(key, 0)
            if now != count:
                raise Violation(INVARIANT, f'{topic} of "{key}" stay at {now}, not {count}')
    for value in expected.pairs - found.pairs:
        raise Violation(INVARIANT, f"{value.decode()} is missing in {JOINED}")
