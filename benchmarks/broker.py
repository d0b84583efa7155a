"""The broker compared with Apache Kafka, with librdkafka: throughput, latency, memory."""

import argparse
import itertools
import statistics

from benchmarks import librdkafka_load as load
from benchmarks import raw_load
from benchmarks.report import Report
from benchmarks.sides import Side, both, resident_mb
from benchmarks.streams.watching import cpu_seconds

PARTITIONS = 4
SIZES = {"100 B": (100, 1_000_000), "1 KiB": (1024, 400_000)}
LATENCY_RECORDS = 10_000
CONSUME_ROUNDS = 3  # for each round of the other workloads
TOPICS = (f"bench-{number}" for number in itertools.count())


def measure(report: Report, options: argparse.Namespace) -> None:
    """Measure both sides alternately, so that other load affects both equally."""
    with both(report) as sides:
        for side in sides:
            report.say(f"   warming up {side.name}")
            _produce(side, 100, int(200_000 * options.scale))
            _consume(side, *_filled(side, 100, int(200_000 * options.scale)))
        for name, (size, count) in SIZES.items():
            _compare_produce(report, sides, name, size, int(count * options.scale), options)
            _compare_consume(report, sides, name, size, int(count * options.scale), options)
        _compare_latency(report, sides, options)
        _compare_raw(report, sides, options)
        theirs = resident_mb(sides[1].process_id) if len(sides) > 1 else None
        ours = resident_mb(sides[0].process_id)
        peer = _peer(sides)
        report.add(
            "resident memory afterwards", "MB", ours, theirs, peer=peer, higher_is_better=False
        )


def _peer(sides: list[Side]) -> str:
    return sides[1].name if len(sides) > 1 else ""


def _produce(side: Side, size: int, count: int) -> float:
    topic = next(TOPICS)
    load.create_topic(side.bootstrap, topic, PARTITIONS, {})
    return load.in_process(load.produce, side.bootstrap, topic, count, size)


def _filled(side: Side, size: int, count: int) -> tuple[str, int]:
    """Fill a new topic; return its name and its number of records."""
    topic = next(TOPICS)
    load.create_topic(side.bootstrap, topic, PARTITIONS, {})
    return topic, load.in_process(load.fill, side.bootstrap, topic, PARTITIONS, count, size)


def _consume(side: Side, topic: str, count: int) -> tuple[float, float]:
    """Return records per second, and the broker's CPU seconds per million records."""
    before = cpu_seconds(side.process_id)
    rate = load.in_process(load.consume, side.bootstrap, topic, PARTITIONS, count)
    return rate, (cpu_seconds(side.process_id) - before) / count * 1_000_000


def _medians(rounds: list[list[tuple[float, ...]]], column: int) -> list[float]:
    """The median of one column for each side; each round has one row of columns per side."""
    return [
        statistics.median(round_[side][column] for round_ in rounds)
        for side in range(len(rounds[0]))
    ]


def _compare_produce(
    report: Report,
    sides: list[Side],
    name: str,
    size: int,
    count: int,
    options: argparse.Namespace,
) -> None:
    rounds: list[list[tuple[float, ...]]] = [
        [(_produce(side, size, count) / 1000,) for side in sides] for _ in range(options.rounds)
    ]
    _add(report, sides, f"produce {name}", "k records/s", _medians(rounds, 0))


def _compare_consume(
    report: Report,
    sides: list[Side],
    name: str,
    size: int,
    count: int,
    options: argparse.Namespace,
) -> None:
    """Short alternating rounds, because the client limits both sides; each side starts half."""
    topics = [_filled(side, size, count) for side in sides]
    rounds: list[list[tuple[float, ...]]] = []
    for number in range(options.rounds * CONSUME_ROUNDS):
        order = list(range(len(sides)))
        if number % 2:
            order.reverse()
        results = {each: _consume(sides[each], *topics[each]) for each in order}
        rounds.append([results[each] for each in range(len(sides))])
    rates = [value / 1000 for value in _medians(rounds, 0)]
    _add(report, sides, f"consume {name}", "k records/s", rates)
    _add(
        report,
        sides,
        f"broker CPU for 1 M records of {name}",
        "s",
        _medians(rounds, 1),
        higher_is_better=False,
    )


def _compare_latency(report: Report, sides: list[Side], options: argparse.Namespace) -> None:
    rounds: list[list[tuple[float, ...]]] = []
    for _ in range(options.rounds):
        results: list[tuple[float, ...]] = []
        for side in sides:
            topic = next(TOPICS)
            load.create_topic(side.bootstrap, topic, 1, {})
            count = max(int(LATENCY_RECORDS * options.scale), 2000)
            results.append(load.in_process(_latency, side.bootstrap, topic, count))
        rounds.append(results)
    for column, what in enumerate(("p50", "p99")):
        values = _medians(rounds, column)
        _add(report, sides, f"latency {what} at 1,000/s", "ms", values, higher_is_better=False)


def _latency(bootstrap: str, topic: str, count: int) -> tuple[float, float]:
    return load.latency(bootstrap, topic, count)


def _compare_raw(report: Report, sides: list[Side], options: argparse.Namespace) -> None:
    rounds: list[list[tuple[float, ...]]] = []
    for _ in range(options.rounds):
        results: list[tuple[float, ...]] = []
        for side in sides:
            topic = next(TOPICS)
            load.create_topic(side.bootstrap, topic, 1, {})
            requests = int(10_000 * options.scale)
            results.append(load.in_process(raw_load.run, side.bootstrap, topic, requests))
        rounds.append(results)
    _add(report, sides, "raw produce, 64 KB batches", "requests/s", _medians(rounds, 0))
    _add(report, sides, "raw fetch, 1 MB each", "MB/s", _medians(rounds, 1))


def _add(
    report: Report,
    sides: list[Side],
    name: str,
    unit: str,
    values: list[float],
    *,
    higher_is_better: bool = True,
) -> None:
    theirs = values[1] if len(values) > 1 else None
    report.add(name, unit, values[0], theirs, peer=_peer(sides), higher_is_better=higher_is_better)
