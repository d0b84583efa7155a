"""What state costs our streams: memory with millions of keys, and restoring it from a changelog."""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report
from benchmarks.streams.comparison import broker_for_streams
from benchmarks.streams.sides import OURS, AppProcess, Job, new_names, running, watched
from benchmarks.streams.workload import begin_ms, end_of, fill, orders_of_all
from broker.client import admin

MEMORY_KEYS = 5  # times the number of records
MB = 1024 * 1024
BUDGETS = {  # all that stores may take
    "state_buffer_max_bytes": 64 * MB,
    "state_cache_max_bytes": 64 * MB,
    "rocksdb_block_cache_bytes": 64 * MB,
}
RESTORE_LIMIT_S = 300.0
LOOK_EVERY_S = 0.05


def measure_memory(report: Report, options: argparse.Namespace) -> None:
    """Peak memory of workload (b), few keys and many: it must not grow with them."""
    with broker_for_streams() as bootstrap:
        for keys in (options.records, MEMORY_KEYS * options.records):
            rows = orders_of_all(keys, begin_ms(keys))
            job = Job("tumbling", bootstrap, fill(bootstrap, f"orders-of-{keys}", rows), "none")
            application_id, output = new_names(job, "memory")
            with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
                command = _command(job, application_id, output, Path(folder) / "state")
                budgets = [f"{name}={limit}" for name, limit in BUDGETS.items()]
                with running([*command, *budgets], Path(folder)) as app:
                    found = watched(app, job, application_id, output)
            report.add(f"(b) {keys:,} keys", "records/s", found.records_per_s)
            report.add(
                f"(b) {keys:,} keys, stores may take {sum(BUDGETS.values()) // MB} MB",
                "MB",
                found.peak_mb,
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
                watched(app, job, application_id, output)
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
    """From when the tasks are given out until all of them run, as the application says it."""
    deadline = time.monotonic() + RESTORE_LIMIT_S
    while time.monotonic() < deadline:
        app.check()
        moments = {}
        for line in app.printed().splitlines():
            moment, _, state = line.partition(" state ")
            if state:
                moments[state] = float(moment)
        if "running" in moments:
            return moments["running"] - moments["rebalancing"]
        time.sleep(LOOK_EVERY_S)
    raise TimeoutError(f"not restored in {RESTORE_LIMIT_S:.0f} s")
