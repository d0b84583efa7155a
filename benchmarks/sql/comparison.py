"""Our SQL compared with our DSL, quixstreams and Flink SQL, on one broker and the same topics."""

import argparse

from benchmarks.report import Report
from benchmarks.sql.sides import dsl, sides
from benchmarks.streams.comparison import compare

RECORDS_MIN = 200_000  # fewer are processed within a few samples


def measure_filter(report: Report, options: argparse.Namespace) -> None:
    """CREATE STREAM AS SELECT: orders above a price, two of their fields."""
    _compare(report, options, "filter")


def measure_tumbling(report: Report, options: argparse.Namespace) -> None:
    """CREATE TABLE AS SELECT: count and sum by user and minute, every update emitted."""
    _compare(report, options, "tumbling")


def _compare(report: Report, options: argparse.Namespace, workload: str) -> None:
    if options.records < RECORDS_MIN:
        report.note(f"rates below {RECORDS_MIN:,} records are not meaningful")
    before = len(report.figures)
    compare(report, options, workload, sides(report))
    ours = dsl().name
    rates = [
        (each.theirs, each.ratio, each.peer)
        for each in report.figures[before:]
        if each.unit == "records/s" and each.theirs and each.ratio and each.peer != ours
    ]
    if rates:
        _, ratio, peer = max(rates)
        report.note(f"({workload}) SQL has {ratio:.2f} times the rate of the best peer, {peer}")
