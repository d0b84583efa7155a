"""A pytest plugin that records the duration of each test, and fails tests over their limits.

The limit depends on the mark and counts processor time, that of this process and of the processes
that the test started and waited for: a busy machine does not make a test fail. All durations are in
.cache/durations.json after a run: wall time and processor time of each test, in seconds.
"""

import json
import os
from collections.abc import Generator

import pytest

from tests.support.peer import CACHE

# A test without a mark runs in every `make check`: it should take a quarter of a second. The
# slowest tests use a third of the limits: a machine that is twice as slow reports none of them.
SECONDS_MAX = {"slow": 60.0, "peer": 60.0, "long": float("inf")}
UNMARKED_SECONDS_MAX = 4.0
SLOWEST = 15
FILE = CACHE / "durations.json"
_PROPERTY = "cpu_seconds"
_started = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def seconds_max(marks: set[str]) -> float:
    """The limit of processor time of a test with these marks."""
    return max((SECONDS_MAX[mark] for mark in marks & {*SECONDS_MAX}), default=UNMARKED_SECONDS_MAX)


def wall_seconds(phases: dict[str, float]) -> float:
    """The duration of a test and its fixtures."""
    return sum(phases.get(phase, 0.0) for phase in ("setup", "call", "teardown"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Start the clock after the fixtures, because those of a module are shared by tests."""
    yield
    item.stash[_started] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the processor time of the call to the report; fail the test if it is over the limit."""
    report = yield
    if report.when != "call":
        return report
    used = cpu_seconds() - item.stash[_started]
    report.user_properties.append((_PROPERTY, used))
    most = seconds_max({mark.name for mark in item.iter_markers()})
    if report.passed and used > most:
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} used {used:.1f} s of processor time, its marks allow {most:g} s: "
            "make it faster, or give it the mark slow or long (tests/README.md)"
        )
    return report


class Recorder:
    """Collects durations from all workers."""

    def __init__(self) -> None:
        self.durations: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        of_test = self.durations.setdefault(report.nodeid, {})
        of_test[report.when or ""] = round(report.duration, 3)
        if report.when == "call":
            used = dict(report.user_properties).get(_PROPERTY, 0.0)
            of_test["cpu"] = round(float(str(used)), 3)

    def pytest_sessionfinish(self) -> None:
        """Write the durations."""
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(self.durations, indent=0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest tests."""
        by_wall_time = sorted(self.durations.items(), key=lambda test: -wall_seconds(test[1]))
        terminalreporter.section(f"the {SLOWEST} slowest of {len(self.durations)} tests")
        for name, phases in by_wall_time[:SLOWEST]:
            wall, used = wall_seconds(phases), phases.get("cpu", 0.0)
            terminalreporter.write_line(f"{wall:7.1f} s, of it {used:5.1f} s computing: {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in the main process, unless the run has only a few tests."""
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder())
