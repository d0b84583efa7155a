"""This checkout compared with another one: alternating processes do the same work.

Processor time per record varies less than elapsed time on a busy machine, but even the clock rate
changes by a tenth within a minute. So the two sides run short turns alternately, each turn is
compared only with the adjacent one, and the median of these ratios is reported. Several processes
of each side run, because processes differ, too (in their memory layout). When more programs run
than there are cores, even these ratios are unreliable: see the quartiles in the notes, and compare
the numbers of function calls (`--only calls`), which do not depend on other load.
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
    """The workload in one checkout; it waits between turns."""

    def __init__(self, tree: Path, workload: str) -> None:
        """Start the process, and wait for a first turn, which is not measured."""
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
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def turn(self) -> float:
        """Do the work once; return µs of processor time per record."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())


def measure_broker(report: Report, options: argparse.Namespace) -> None:
    """Measure produce and fetch requests over a socket."""
    compare(report, options, "broker")


def measure_streams_filter(report: Report, options: argparse.Namespace) -> None:
    """Measure filter and projection in our DSL."""
    compare(report, options, "streams-filter")


def measure_streams_tumbling(report: Report, options: argparse.Namespace) -> None:
    """Measure a tumbling aggregate in our DSL."""
    compare(report, options, "streams-tumbling")


def measure_sql_filter(report: Report, options: argparse.Namespace) -> None:
    """Measure filter and projection in SQL."""
    compare(report, options, "sql-filter")


def measure_sql_tumbling(report: Report, options: argparse.Namespace) -> None:
    """Measure a tumbling aggregate in SQL."""
    compare(report, options, "sql-tumbling")


def measure_calls(report: Report, options: argparse.Namespace) -> None:
    """Measure function calls per record, for each workload."""
    for workload in COUNTED_WORKLOADS:
        ours, theirs = (
            calls_per_record(tree, workload, options.rounds)
            for tree in (HERE, options.tree.resolve())
        )
        report.add(workload, "calls per record", ours, theirs, peer="tree", higher_is_better=False)


def calls_per_record(tree: Path, workload: str, rounds: int) -> float:
    """Run a workload in a checkout, with a profiler that counts calls."""
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
                costs = {tree: sides[tree].turn() for tree in trees}
                trees.reverse()
                pairs.append((costs[HERE], costs[other]))
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = [their / our for our, their in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    report.add(workload, "CPU µs per record", ours, theirs, peer=other.name, higher_is_better=False)
    report.note(
        f"{workload}: median of {len(ratios)} ratios of adjacent turns {middle:.3f}, "
        f"half of them between {low:.3f} and {high:.3f}"
    )
