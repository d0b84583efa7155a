"""SQL on Spark from the command line: its options, and what is told while queries run."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

import click

from millstream.commands.stopping import StopAsked

if TYPE_CHECKING:
    from sql.engine.engine import Engine
    from sql.engine.spark_progress import SparkProgress

# Any command that click makes of a function.
F = TypeVar("F", bound="Callable[..., object]")

WAIT_S = 0.5
TELL_EVERY_S = 5.0
BOUNDED_TELL_EVERY_S = 2.0


def engine_options(command: F) -> F:
    """`--engine` and `--spark-master`: the command gets `engine` and `spark_master`."""
    for option in (
        click.option(
            "--spark-master",
            metavar="MASTER",
            help="Where Spark runs: local[4], spark://HOST:PORT, or sc://HOST:PORT for Spark "
            "Connect. Default: what spark-submit was given, or else local[*].",
        ),
        click.option(
            "--engine",
            type=click.Choice(["native", "spark"]),
            help="What new queries run on, if they do not SET 'engine'. Default: native.",
        ),
    ):
        command = option(command)
    return command


def engine_settings(engine: str | None, spark_master: str | None) -> dict[str, str]:
    """The settings that the options stand for."""
    given = {"engine": engine, "spark.master": spark_master}
    return {name: value for name, value in given.items() if value is not None}


def stay(engine: "Engine") -> None:
    """Let the queries on Spark run until SIGINT or SIGTERM, and tell how far they are."""
    with _stop_asked() as stop:
        queries = engine.spark_queries()
        if not queries:
            return
        shown = "1 query runs" if len(queries) == 1 else f"{len(queries)} queries run"
        _say(f"{shown} on Spark; Ctrl-C stops, and the next start goes on from there")
        told = _Told()
        while not stop.wait(WAIT_S):
            for query_id, runtime in engine.spark_queries().items():
                told.tell(query_id, runtime.progress)
        _say("stopping")


def run_all(engine: "Engine") -> None:
    """Let the queries on Spark process all that is there; interrupted, it is no success."""
    told = _Told(BOUNDED_TELL_EVERY_S)
    with _stop_asked() as stop:
        if engine.run_bounded(told.tell, lambda wait_ms: stop.wait(wait_ms / 1000)):
            _say("all is processed" if told.batches else "nothing new was there to process")
            return
    _say("stopped before the end; the next run goes on from there")
    raise click.Abort


@dataclass(slots=True)
class _Told:
    """What was told already: not the same again, and not too often."""

    every_s: float = TELL_EVERY_S
    times: dict[str, float] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)

    def tell(self, query_id: str, progress: "SparkProgress | None", done: bool = False) -> None:
        """Tell of a batch that is new and read something, some time after the one before."""
        if progress is None or not progress.input_rows:
            return
        now = time.monotonic()
        is_early = now - self.times.get(query_id, 0) < self.every_s
        if progress.batch_id == self.batches.get(query_id) or (is_early and not done):
            return
        self.times[query_id] = now
        self.batches[query_id] = progress.batch_id
        _say(f"{query_id}: {progress.text}")


@contextmanager
def _stop_asked() -> Iterator[StopAsked]:
    """What SIGINT and SIGTERM set, instead of ending the process in the middle of a batch."""
    stop = StopAsked()

    def asked(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    """To standard error: standard output is for answers."""
    click.echo(text, err=True)
