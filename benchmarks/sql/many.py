"""Many persistent queries over one source in one engine: memory, processor time, reads."""

import argparse
import time

import httpx

from benchmarks.report import Report
from benchmarks.sides import resident_mb
from benchmarks.sql.engine_app import READY
from benchmarks.sql.sides import engine_running, wait_for_line
from benchmarks.streams.comparison import broker_for_streams
from benchmarks.streams.sides import AppProcess
from benchmarks.streams.watching import cpu_seconds, peak_mb
from benchmarks.streams.workload import begin_ms, committed_of, create, orders, write
from broker.client import admin
from tests.support.peer import wait_until
from tests.support.ports import held_ports

RECORDS_MAX = 100_000  # every query processes each of them
IDLE_S = 3.0
LIMIT_S = 900.0
SOURCE = "orders"


def measure_many(report: Report, options: argparse.Namespace) -> None:
    """Measure one query, then many: the difference is the cost of each additional query."""
    records = min(options.records, RECORDS_MAX)
    (port,) = held_ports(1)
    with broker_for_streams({"metrics.port": str(port)}) as bootstrap:
        for queries in sorted({1, options.queries}):
            source = _measure(report, bootstrap, queries, records)
            times_sent = _records_sent(port, source) / records
            report.add(f"{_title(queries)}: the broker sent each record", "times", times_sent)


def _records_sent(port: int, topic: str) -> float:
    """The number of records of a topic that the broker has sent to consumers."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    sample = f'millstream_topic_messages_out_total{{topic="{topic}"}} '
    return float(text.partition(sample)[2].split(maxsplit=1)[0])


def _title(queries: int) -> str:
    return f"{queries} queries" if queries > 1 else "1 query"


def _measure(report: Report, bootstrap: str, queries: int, records: int) -> str:
    """Run queries until they have processed all records; return the source topic."""
    source = f"{SOURCE}-{queries}"
    create(bootstrap, source)
    service_id = f"many-{queries}-"
    names = ("filter", bootstrap, service_id, source, f"dear-{queries}")
    title = _title(queries)
    with engine_running(*names, queries) as app:
        wait_for_line(app, READY)
        report.add(f"{title}: idle", "MB", resident_mb(app.process_id), higher_is_better=False)
        share = _cpu_share(app, IDLE_S) * 100
        report.add(f"{title}: idle", "% of a core", share, higher_is_better=False)
        before, began = cpu_seconds(app.process_id), time.perf_counter()
        write(bootstrap, source, orders(records, begin_ms(records)))
        _wait_for_all(bootstrap, app, service_id, source, records)
        seconds = time.perf_counter() - began
        cpu_us = (cpu_seconds(app.process_id) - before) * 1e6 / records
        peak = peak_mb(app.process_id)
    report.add(f"{title}: {records:,} records", "records/s", records / seconds)
    report.add(f"{title}: per record", "CPU µs", cpu_us, higher_is_better=False)
    report.add(f"{title}: per record and query", "CPU µs", cpu_us / queries, higher_is_better=False)
    report.add(f"{title}: peak", "MB", peak, higher_is_better=False)
    return source


def _cpu_share(app: AppProcess, seconds: float) -> float:
    before = cpu_seconds(app.process_id)
    time.sleep(seconds)
    return (cpu_seconds(app.process_id) - before) / seconds


def _wait_for_all(
    bootstrap: str, app: AppProcess, service_id: str, source: str, records: int
) -> None:
    """Wait until every group has committed the whole source."""
    with admin(bootstrap) as cluster:
        groups = [each.group_id for each in cluster.list_groups() if service_id in each.group_id]

        def read() -> list[int]:
            app.check()
            return [committed_of(cluster, group, source) for group in groups]

        wait_until(lambda: min(read()) >= records, "reading the source", timeout_s=LIMIT_S)
