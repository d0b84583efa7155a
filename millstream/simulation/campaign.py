"""Campaign: runs many seeds on all cores, each in its own process.

Each process is forked from one that has imported everything: a seed starts in milliseconds, and is
not affected by earlier ones. Its processor time is limited, so that a seed that hangs is stopped
even if the machine is busy.
"""

import gc
import os
import pickle
import resource
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from millstream.simulation.scenario import (
    APPLICATION,
    SERVERS,
    Scenario,
    core_scenario_of,
    scenario_with,
)

PROCESSOR_SECONDS_MAX = 120
SECONDS_MAX = 1_800.0  # if something outside of the simulation blocks
CHUNK_BYTES = 1 << 16
WARM_UP_MINUTES = 0.2


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a seed."""

    seed: int
    invariant: str | None = None  # the violated one
    details: str = ""
    digest: str = ""
    virtual_ms: int = 0
    steps: int = 0
    seconds: float = 0.0
    lines: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all invariants hold."""
        return self.invariant is None


Run = Callable[[Scenario], Result]


@dataclass(slots=True)
class _Child:
    seed: int
    pid: int
    reading: int
    started: float
    data: bytearray


def warm_up(run: Run) -> None:
    """Run a few seeds here, so that forked processes have everything loaded and compiled."""
    run(core_scenario_of(1, minutes=WARM_UP_MINUTES))
    for part in (APPLICATION, *SERVERS):
        run(scenario_with(1, part, minutes=WARM_UP_MINUTES))


def run_all(scenarios: Iterable[Scenario], run: Run, *, jobs: int) -> Iterator[Result]:
    """Run scenarios with at most `jobs` processes; yields results as they arrive."""
    gc.collect()
    gc.freeze()
    remaining = iter(scenarios)
    with selectors.DefaultSelector() as selector:
        children: dict[int, _Child] = {}
        try:
            while True:
                while len(children) < jobs and (scenario := next(remaining, None)) is not None:
                    child = _fork(scenario, run)
                    children[child.reading] = child
                    selector.register(child.reading, selectors.EVENT_READ)
                if not children:
                    return
                for key, _ in selector.select(1.0):
                    child = children[key.fd]
                    data = os.read(child.reading, CHUNK_BYTES)
                    child.data += data
                    if not data:
                        selector.unregister(child.reading)
                        del children[child.reading]
                        yield _finish(child)
                for child in children.values():
                    if time.monotonic() - child.started > SECONDS_MAX:
                        os.kill(child.pid, signal.SIGKILL)
        finally:
            for child in children.values():
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                os.close(child.reading)


def _fork(scenario: Scenario, run: Run) -> _Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(scenario.seed, pid, reading, time.monotonic(), bytearray())
    try:  # the child must not clean up for the parent
        os.close(reading)
        resource.setrlimit(
            resource.RLIMIT_CPU, (PROCESSOR_SECONDS_MAX, resource.getrlimit(resource.RLIMIT_CPU)[1])
        )
        started = time.monotonic()
        try:
            result = run(scenario)
        except BaseException as error:
            lines = tuple(traceback.format_exc().splitlines())
            result = Result(scenario.seed, "the simulation itself", repr(error), lines=lines)
        _write_all(writing, pickle.dumps((result, time.monotonic() - started)))
    finally:
        os._exit(0)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _finish(child: _Child) -> Result:
    os.waitpid(child.pid, 0)
    os.close(child.reading)
    seconds = time.monotonic() - child.started
    if not child.data:
        reason = f"the process of the seed ended or hung after {seconds:.0f} s"
        return Result(child.seed, "the simulation itself", reason, seconds=seconds)
    result, seconds = pickle.loads(child.data)  # written by our own child process
    assert isinstance(result, Result)
    return replace(result, seconds=seconds)
