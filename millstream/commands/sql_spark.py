"""SQL on Spark from the command line: its options, and the progress of queries."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

import click

from millstream.commands.stopping import StopRequest

if TYPE_CHECKING:
    from sql.engine.engine import Engine
    from sql.engine.spark_progress import SparkProgress

# A function that click turns into a command.
F = TypeVar("F", bound="Callable[..., object]")

WAIT_S = 0.5
REPORT_EVERY_S = 5.0
BOUNDED_REPORT_EVERY_S = 2.0


def engine_options(command: F) -> F:
    """`--engine` and `--spark-master`: the command gets `engine` and `spark_master`."""
    for option in (
        click.option(
            "--spark-master",
            metavar="MASTER",
            help="Spark's master: local[4], spark://HOST:PORT, or sc://HOST:PORT for Spark "
            "Connect. Default: that of spark-submit, otherwise local[*].",
        ),
        click.option(
            "--engine",
            type=click.Choice(["native", "spark"]),
            help="The engine of new queries that do not SET 'engine'. Default: native.",
        ),
    ):
        command = option(command)
    return command


def engine_settings(engine: str | None, spark_master: str | None) -> dict[str, str]:
    """The settings for the options."""
    given = {"engine": engine, "spark.master": spark_master}
    return {name: value for name, value in given.items() if value is not None}


def wait_for_queries(engine: "Engine") -> None:
    """Wait for SIGINT or SIGTERM while queries run on Spark, and report their progress."""
    with _catch_signals() as stop:
        queries = engine.spark_queries()
        if not queries:
            return
        shown = "1 query runs" if len(queries) == 1 else f"{len(queries)} queries run"
        _print_status(f"{shown} on Spark; Ctrl-C stops, and the next start continues from there")
        reporter = _ProgressReporter()
        while not stop.wait(WAIT_S):
            for query_id, runtime in engine.spark_queries().items():
                reporter.report(query_id, runtime.progress)
        _print_status("stopping")


def run_all(engine: "Engine") -> None:
    """Wait until the queries on Spark have processed all records; abort if interrupted."""
    reporter = _ProgressReporter(BOUNDED_REPORT_EVERY_S)
    with _catch_signals() as stop:
        if engine.run_bounded(reporter.report, lambda wait_ms: stop.wait(wait_ms / 1000)):
            _print_status(
                "all records are processed" if reporter.batches else "there were no new records"
            )
            return
    _print_status("stopped before the end; the next run continues from there")
    raise click.Abort


@dataclass(slots=True)
class _ProgressReporter:
    """Reports the progress of queries, at a limited rate."""

    every_s: float = REPORT_EVERY_S
    times: dict[str, float] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)

    def report(self, query_id: str, progress: "SparkProgress | None", done: bool = False) -> None:
        """Report a new batch with input, unless the previous report was too recent."""
        if progress is None or not progress.input_rows:
            return
        now = time.monotonic()
        is_early = now - self.times.get(query_id, 0) < self.every_s
        if progress.batch_id == self.batches.get(query_id) or (is_early and not done):
            return
        self.times[query_id] = now
        self.batches[query_id] = progress.batch_id
        _print_status(f"{query_id}: {progress.text}")


@contextmanager
def _catch_signals() -> Iterator[StopRequest]:
    """A request set by SIGINT and SIGTERM, so that the process does not end during a batch."""
    stop = StopRequest()

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_status(text: str) -> None:
    """Print to standard error: standard output is for results."""
    click.echo(text, err=True)
