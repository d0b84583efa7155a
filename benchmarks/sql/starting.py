"""The time from submitting a statement until its query runs, in a running engine."""

import argparse
import statistics
import tempfile
import time

from benchmarks.report import Report
from benchmarks.sql.engine_app import ORDERS, RUNNING_LIMIT_MS, open_engine
from benchmarks.streams.comparison import broker_for_streams
from benchmarks.streams.workload import create
from sql.engine.engine import Engine

QUERIES_PER_ROUND = 5
TARGET_MS = 200.0
STATEMENT = "CREATE STREAM dear{number} AS SELECT buyer, `price` FROM orders WHERE `price` > 50;"


def measure_start(report: Report, options: argparse.Namespace) -> None:
    """Measure from CREATE STREAM AS SELECT to the response, and until the query runs."""
    answered: list[float] = []
    running: list[float] = []
    with broker_for_streams() as bootstrap, tempfile.TemporaryDirectory() as folder:
        create(bootstrap, "orders")
        with open_engine(bootstrap, "start", folder) as engine:
            engine.execute(ORDERS.format(topic="orders"))
            for number in range(options.rounds * QUERIES_PER_ROUND):
                answer_ms, running_ms = _start(engine, STATEMENT.format(number=number))
                answered.append(answer_ms)
                running.append(running_ms)
    for title, found in (("answered", answered), ("running", running)):
        report.add(f"start: CSAS {title}, median", "ms", statistics.median(found))
        report.add(f"start: CSAS {title}, longest", "ms", max(found))
    report.note(f"target: a query runs within {TARGET_MS:.0f} ms")


def _start(engine: Engine, statement: str) -> tuple[float, float]:
    """Milliseconds until the statement returns, and until all tasks of its query run."""
    before = set(engine.commands.running)
    began = time.perf_counter()
    engine.execute(statement)
    answered = time.perf_counter()
    [query_id] = set(engine.commands.running) - before
    runtime = engine.commands.running[query_id].runtime
    if not runtime.wait_running(RUNNING_LIMIT_MS):
        raise TimeoutError(f"{query_id} is not running: {runtime.failures}")
    return (answered - began) * 1000, (time.perf_counter() - began) * 1000
