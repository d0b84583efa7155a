"""Our streams compared with quixstreams, faust and Kafka Streams, on one broker."""

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.report import Report
from benchmarks.sides import millstream as our_broker
from benchmarks.streams.sides import Job, Side, millstream, peers
from benchmarks.streams.watching import AppFailed, Measurement
from benchmarks.streams.workload import Input, begin_ms, counted_in, fill, orders, profiles

TITLES = {
    "filter": "(a) filter, projection",
    "tumbling": "(b) tumbling count, sum",
    "join": "(c) stream-table join",
}
TABLE = "profiles"
NO_SETTINGS: Mapping[str, str] = {}


def measure_filter(report: Report, options: argparse.Namespace) -> None:
    """Orders above a price, two of their fields."""
    compare(report, options, "filter", [millstream(), *peers(report)])


def measure_tumbling(report: Report, options: argparse.Namespace) -> None:
    """Count and sum by user and minute, every update emitted."""
    compare(report, options, "tumbling", [millstream(), *peers(report)])


def measure_join(report: Report, options: argparse.Namespace) -> None:
    """Orders with the profiles of their users."""
    compare(report, options, "join", [millstream(), *peers(report)])


@contextmanager
def broker_for_streams(settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[str]:
    """Our broker, without a delay for the first rebalance of groups; yields its address."""
    with our_broker({"group.initial.rebalance.delay.ms": "0", **settings}) as side:
        yield side.bootstrap


@dataclass(slots=True)
class _Topics:
    """Topics of one broker, each filled on first use."""

    bootstrap: str
    first_ms: int
    filled: dict[int, Input]

    def orders(self, count: int) -> Input:
        """A topic with `count` orders."""
        if count not in self.filled:
            rows = orders(count, self.first_ms)
            self.filled[count] = fill(self.bootstrap, f"orders-{count}", rows)
        return self.filled[count]


def compare(
    report: Report, options: argparse.Namespace, workload: str, sides: Sequence[Side]
) -> None:
    """Run all sides alternately and report the medians; the first side is ours."""
    runs: dict[str, list[Measurement]] = {side.name: [] for side in sides}
    with broker_for_streams() as bootstrap:
        topics = _Topics(bootstrap, begin_ms(options.records), {})
        if workload == "join":
            fill(bootstrap, TABLE, profiles(topics.first_ms))
        for _ in range(options.rounds):
            for side in sides:
                count = side.records(workload, options.records)
                if count is not None:
                    job = Job(workload, bootstrap, topics.orders(count), TABLE)
                    _run(report, side, job, runs[side.name])
    _add(report, workload, [(side.name, runs[side.name]) for side in sides if runs[side.name]])


def _run(report: Report, side: Side, job: Job, runs: list[Measurement]) -> None:
    try:
        measured = side.measure(job)
    except AppFailed as failed:
        report.note(f"{side.name} failed on {job.workload}: {failed}"[:600])
        return
    report.say(
        f"   {side.name}: {measured.records_per_s:,.0f} records/s, {measured.cpu_us:.1f} µs each, "
        f"{measured.peak_mb:.0f} MB ({job.input.records:,} records)"
    )
    _check(report, side, job, measured)
    runs.append(measured)


def _check(report: Report, side: Side, job: Job, measured: Measurement) -> None:
    """Note wrong results: only sides with equal results are comparable."""
    if measured.outputs != job.outputs:
        report.note(f"{side.name} wrote {measured.outputs:,} results instead of {job.outputs:,}")
    elif job.workload == "tumbling":
        counted = counted_in(job.bootstrap, measured.output, measured.outputs)
        if counted != job.input.counted:
            report.note(f"{side.name} counted {counted:,} instead of {job.input.counted:,}")


def _add(report: Report, workload: str, runs: list[tuple[str, list[Measurement]]]) -> None:
    if not runs or runs[0][0] != "Millstream":
        return
    (_, ours), *others = runs
    columns = (("records_per_s", "records/s"), ("cpu_us", "CPU µs per record"), ("peak_mb", "MB"))
    for column, unit in columns:
        for peer, theirs in others or [("", [])]:
            report.add(
                TITLES[workload],
                unit,
                _median(ours, column),
                _median(theirs, column) if theirs else None,
                peer=peer,
                higher_is_better=column == "records_per_s",
            )


def _median(runs: list[Measurement], column: str) -> float:
    return statistics.median(float(getattr(run, column)) for run in runs)
