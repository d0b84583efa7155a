"""Watches an application from outside: what it has written, its processor time, its memory.

Outside, so that all sides are measured alike and none pays for it. The rate is taken between the
first and the last look at the output topic: starting up does not count, the last record does.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.streams.workload import committed_of, end_of
from broker.client.cluster_admin import Admin

LOOK_EVERY_S = 0.02
COMMIT_LIMIT_S = 30.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class AppFailed(Exception):
    """An application ended, or did nothing for too long; the text holds what it printed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run cost."""

    records_per_s: float
    cpu_us: float  # processor time per input record
    peak_mb: float
    output: str  # the topic of the results
    outputs: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What an application reads, and how much it must write before it is done."""

    group_id: str
    topic: str
    records: int
    output: str
    outputs: int


def cpu_seconds(process_id: int) -> float:
    """Processor time of a process so far, user and system."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def peak_mb(process_id: int) -> float:
    """The most memory that a process has had resident, in MB."""
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
    """Wait until everything is written and committed; `check` raises when the process has ended."""
    deadline = time.monotonic() + limit_s
    before = first = last = _look(cluster, process_id, expected)
    while last.outputs < expected.outputs:
        check()
        if time.monotonic() > deadline:
            raise AppFailed(f"{last.outputs} of {expected.outputs} outputs in {limit_s:.0f} s")
        time.sleep(LOOK_EVERY_S)
        last = _look(cluster, process_id, expected)
        if first.outputs == 0:
            before, first = first, last
    if first.outputs == last.outputs:
        first = before  # all came between two looks
    _wait_for_commit(cluster, expected)
    done = (last.outputs - first.outputs) / expected.outputs * expected.records
    cpu_s = cpu_seconds(process_id) - first.cpu_s
    seconds = max(last.at - first.at, LOOK_EVERY_S)
    outputs = end_of(cluster, expected.output)
    return Measurement(
        done / seconds, cpu_s * 1e6 / max(done, 1), peak_mb(process_id), expected.output, outputs
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    outputs: int
    cpu_s: float


def _look(cluster: Admin, process_id: int, expected: Expected) -> _Sample:
    outputs = end_of(cluster, expected.output)
    return _Sample(time.perf_counter(), outputs, cpu_seconds(process_id))


def _wait_for_commit(cluster: Admin, expected: Expected) -> None:
    """What a commit costs belongs to the processor time of the records in it."""
    deadline = time.monotonic() + COMMIT_LIMIT_S
    while committed_of(cluster, expected.group_id, expected.topic) < expected.records:
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK_EVERY_S)
