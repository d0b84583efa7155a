"""Measures an application from outside: its output, processor time and memory.

All sides are measured in the same way, and the measurement costs none of them time. The rate is
taken between the first output and the last one, so it does not include the start.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.streams.workload import committed_of, end_of
from broker.client.cluster_admin import Admin

SAMPLE_INTERVAL_S = 0.02
COMMIT_LIMIT_S = 30.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class AppFailed(Exception):
    """An application ended or made no progress; the message has its output."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run."""

    records_per_s: float
    cpu_us: float  # processor time per input record
    peak_mb: float
    output: str  # the topic of the results
    outputs: int


@dataclass(frozen=True, slots=True)
class Expected:
    """The input of an application, and the number of results that completes its job."""

    group_id: str
    topic: str
    records: int
    output: str
    outputs: int


def cpu_seconds(process_id: int) -> float:
    """The processor time that a process has used, user and system."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def peak_mb(process_id: int) -> float:
    """The peak resident memory of a process, in MB."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(process_id)


def watch(
    cluster: Admin,
    process_id: int,
    expected: Expected,
    check: Callable[[], None],
    *,
    limit_s: float = 600.0,
) -> Measurement:
    """Wait until all results are written and committed; `check` raises if the process ended."""
    deadline = time.monotonic() + limit_s
    before = first = last = _sample(cluster, process_id, expected)
    while last.outputs < expected.outputs:
        check()
        if time.monotonic() > deadline:
            raise AppFailed(f"{last.outputs} of {expected.outputs} outputs in {limit_s:.0f} s")
        time.sleep(SAMPLE_INTERVAL_S)
        last = _sample(cluster, process_id, expected)
        if first.outputs == 0:
            before, first = first, last
    if first.outputs == last.outputs:
        first = before  # all results came between two samples
    _wait_for_commit(cluster, expected)
    done = (last.outputs - first.outputs) / expected.outputs * expected.records
    cpu_s = cpu_seconds(process_id) - first.cpu_s
    seconds = max(last.at - first.at, SAMPLE_INTERVAL_S)
    outputs = end_of(cluster, expected.output)
    return Measurement(
        done / seconds, cpu_s * 1e6 / max(done, 1), peak_mb(process_id), expected.output, outputs
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    outputs: int
    cpu_s: float


def _sample(cluster: Admin, process_id: int, expected: Expected) -> _Sample:
    outputs = end_of(cluster, expected.output)
    return _Sample(time.perf_counter(), outputs, cpu_seconds(process_id))


def _wait_for_commit(cluster: Admin, expected: Expected) -> None:
    """Wait for the commit: it is a part of the processor time of the records."""
    deadline = time.monotonic() + COMMIT_LIMIT_S
    while committed_of(cluster, expected.group_id, expected.topic) < expected.records:
        if time.monotonic() > deadline:
            return
        time.sleep(SAMPLE_INTERVAL_S)
