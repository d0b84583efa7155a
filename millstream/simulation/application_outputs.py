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
    COUNTS,
    JOIN_DISTANCE,
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

INVARIANT = "committed results equal the reference"
SECONDS_MAX = 240  # after the last record
MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class Outputs:
    """The content of the output topics, actual or expected."""

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
    within_ms = JOIN_DISTANCE // MILLISECOND
    for each in by_time:
        if is_left(each.value):
            first = bisect_left(times, each.timestamp_ms - within_ms)
            after = bisect_right(times, each.timestamp_ms + within_ms)
            for other in right[first:after]:
                yield pair(each.value, other.value)


def await_outputs(actor: Actor, plain: Stored) -> None:
    """Read committed outputs until they are complete."""
    expected, actual = expected_of(plain), Outputs()
    with _reader(actor) as reader:
        for _ in range(SECONDS_MAX):
            _read_to_end(reader, actual)
            _check_no_excess(actual, expected)
            if actual == expected:
                actor.note("has read", sum(actual.pairs.values()), "pairs and all counts")
                return
            actor.sleep(1_000, 1_000)
    _check_all(actual, expected)


def read_outputs(actor: Actor) -> Outputs:
    """Read all outputs that are committed now."""
    outputs = Outputs()
    with _reader(actor) as reader:
        _read_to_end(reader, outputs)
    return outputs


def _reader(actor: Actor) -> Consumer:
    reader = consumer(
        actor.target,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )
    reader.assign([TopicPartition(topic, n) for topic in OUTPUTS for n in range(PARTITIONS)])
    return reader


def _read_to_end(reader: Consumer, outputs: Outputs) -> None:
    """Read up to the current ends."""
    ends = reader.end_offsets(reader.assignment())
    while any(reader.position(tp) < end for tp, end in ends.items()):
        for record in reader.poll(timeout_ms=1_000):
            outputs.add(record.topic, record.key or b"", record.value or b"")


def _check_no_excess(actual: Outputs, expected: Outputs) -> None:
    for topic, counts in actual.counts.items():
        for key, count in counts.items():
            limit = expected.counts[topic].get(key, 0)
            if count > limit:
                raise Violation(INVARIANT, f'{topic} of "{key}" are at {count}, not {limit}')
    for value, count in (actual.pairs - expected.pairs).items():
        raise Violation(INVARIANT, f"{value.decode()} is joined {count} times too often")


def _check_all(actual: Outputs, expected: Outputs) -> None:
    for topic, counts in expected.counts.items():
        for key, count in counts.items():
            now = actual.counts[topic].get(key, 0)
            if now != count:
                raise Violation(INVARIANT, f'{topic} of "{key}" stay at {now}, not {count}')
    for value in expected.pairs - actual.pairs:
        raise Violation(INVARIANT, f"{value.decode()} is missing in {JOINED}")
