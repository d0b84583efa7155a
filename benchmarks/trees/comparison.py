"""This checkout beside another: one process of each at a time, in turns, on the same work.

What a record costs in processor time says more than seconds on a machine that does other things as
well; still the clock of a processor moves by a tenth within a minute. So the two sides take short
turns, each turn is compared only with its neighbour, and the median of all those ratios counts.
Processes differ, too (by where their memory lies), so there are several of each. When more programs
run than there are cores, even this says little: look at the quartiles in the notes, and compare the
calls of functions (`--only calls`), which are the same on a busy machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from benchmarks.report import Report
from benchmarks.trees import counted_app, steady_app

APP = Path(steady_app.__file__)
COUNTED_APP = Path(counted_app.__file__)
HERE = APP.parents[2]
TURNS = 8  # of each process
RECORDS = {"broker": 100_000}  # per turn
RECORDS_OF_OTHERS = 50_000
COUNTED_WORKLOADS = ("streams-filter", "streams-tumbling", "sql-filter", "sql-tumbling")
COUNTED_RECORDS = 20_000


class TreeProcess:
    """The workload in one checkout; it waits between the turns."""

    def __init__(self, tree: Path, workload: str) -> None:
        """Start it and let it do one turn that does not count."""
        records = RECORDS.get(workload, RECORDS_OF_OTHERS)
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(APP), workload, str(records)],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it: its input is over."""
        self._process.communicate()

    def turn(self) -> float:
        """Do the work once; µs of processor time a record."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())


def measure_broker(report: Report, options: argparse.Namespace) -> None:
    """Requests to produce and fetch, over a socket."""
    compare(report, options, "broker")


def measure_streams_filter(report: Report, options: argparse.Namespace) -> None:
    """Filter and projection in our DSL."""
    compare(report, options, "streams-filter")


def measure_streams_tumbling(report: Report, options: argparse.Namespace) -> None:
    """A tumbling aggregate in our DSL."""
    compare(report, options, "streams-tumbling")


def measure_sql_filter(report: Report, options: argparse.Namespace) -> None:
    """Filter and projection as a statement."""
    compare(report, options, "sql-filter")


def measure_sql_tumbling(report: Report, options: argparse.Namespace) -> None:
    """A tumbling aggregate as a statement."""
    compare(report, options, "sql-tumbling")


def measure_calls(report: Report, options: argparse.Namespace) -> None:
    """Calls of functions a record, for each workload."""
    for workload in COUNTED_WORKLOADS:
        ours, theirs = (
            calls_per_record(tree, workload, options.rounds)
            for tree in (HERE, options.tree.resolve())
        )
        report.add(workload, "calls a record", ours, theirs, peer="tree", higher_is_better=False)


def calls_per_record(tree: Path, workload: str, rounds: int) -> float:
    """Run a workload in a checkout with a profiler that counts."""
    done = subprocess.run(
        [sys.executable, "-P", str(COUNTED_APP), workload, str(COUNTED_RECORDS), str(rounds)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def compare(report: Report, options: argparse.Namespace, workload: str) -> None:
    """Measure one workload in both checkouts."""
    other = options.tree.resolve()
    pairs: list[tuple[float, float]] = []
    for number in range(options.rounds):
        trees = [HERE, other] if number % 2 else [other, HERE]
        with ExitStack() as stack:
            sides = {tree: stack.enter_context(TreeProcess(tree, workload)) for tree in trees}
            for _ in range(TURNS):
                found = {tree: sides[tree].turn() for tree in trees}
                trees.reverse()
                pairs.append((found[HERE], found[other]))
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = [their / our for our, their in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    report.add(workload, "CPU µs a record", ours, theirs, peer=other.name, higher_is_better=False)
    report.note(
        f"{workload}: median of {len(ratios)} ratios of neighbours {middle:.3f}, "
        f"half of them between {low:.3f} and {high:.3f}"
    )
