"""State of our streams: memory with millions of keys, and restoration from a changelog."""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report
from benchmarks.streams.comparison import broker_for_streams
from benchmarks.streams.sides import OURS, AppProcess, Job, measure_app, new_names, running
from benchmarks.streams.workload import begin_ms, end_of, fill, orders_of_all
from broker.client import admin

MEMORY_KEYS = 5  # multiplied by the number of records
MB = 1024 * 1024
BUDGETS = {  # memory limits of the stores
    "state_buffer_max_bytes": 64 * MB,
    "state_cache_max_bytes": 64 * MB,
    "rocksdb_block_cache_bytes": 64 * MB,
}
RESTORE_LIMIT_S = 300.0
POLL_INTERVAL_S = 0.05


def measure_memory(report: Report, options: argparse.Namespace) -> None:
    """Peak memory of workload (b) with few and many keys: it must not grow with their number."""
    with broker_for_streams() as bootstrap:
        for keys in (options.records, MEMORY_KEYS * options.records):
            rows = orders_of_all(keys, begin_ms(keys))
            job = Job("tumbling", bootstrap, fill(bootstrap, f"orders-of-{keys}", rows), "none")
            application_id, output = new_names(job, "memory")
            with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
                command = _command(job, application_id, output, Path(folder) / "state")
                budgets = [f"{name}={limit}" for name, limit in BUDGETS.items()]
                with running([*command, *budgets], Path(folder)) as app:
                    measured = measure_app(app, job, application_id, output)
            report.add(f"(b) {keys:,} keys", "records/s", measured.records_per_s)
            report.add(
                f"(b) {keys:,} keys, stores limited to {sum(BUDGETS.values()) // MB} MB",
                "MB",
                measured.peak_mb,
                higher_is_better=False,
            )


def measure_restore(report: Report, options: argparse.Namespace) -> None:
    """Fill a store, lose the disk, restore it from its changelog."""
    with broker_for_streams() as bootstrap:
        keys = options.records
        rows = orders_of_all(keys, begin_ms(keys))
        job = Job("count", bootstrap, fill(bootstrap, f"orders-of-{keys}", rows), "none")
        application_id, output = new_names(job, "restore")
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
            command = _command(job, application_id, output, Path(folder) / "first")
            with running(command, Path(folder)) as app:
                measure_app(app, job, application_id, output)
            with admin(bootstrap) as cluster:
                records = end_of(cluster, f"{application_id}-totals-changelog")
            command = _command(job, application_id, output, Path(folder) / "second")
            with running(command, Path(folder)) as app:
                seconds = _restoring_s(app)
        report.add(f"restore of {records:,} keys", "records/s", records / seconds)


def _command(job: Job, application_id: str, output: str, state: Path) -> list[str]:
    names = [job.workload, job.bootstrap, application_id, job.input.topic, job.table, output]
    return [*OURS, *names, str(state)]


def _restoring_s(app: AppProcess) -> float:
    """The seconds from the assignment of tasks until all run, from the application's log."""
    deadline = time.monotonic() + RESTORE_LIMIT_S
    while time.monotonic() < deadline:
        app.check()
        times = {}
        for line in app.printed().splitlines():
            time_s, _, state = line.partition(" state ")
            if state:
                times[state] = float(time_s)
        if "running" in times:
            return times["running"] - times["rebalancing"]
        time.sleep(POLL_INTERVAL_S)
    raise TimeoutError(f"not restored in {RESTORE_LIMIT_S:.0f} s")
