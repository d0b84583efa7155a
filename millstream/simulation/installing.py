"""Installing: replaces the threads and locks of `broker.concurrency` with simulated ones.

This affects only the current thread: others, such as those of a test runner, get the real ones.
"""

import concurrent.futures._base as futures_base
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from broker import concurrency, garbage, stack_traces
from millstream.simulation.primitives import (
    SimulatedCondition,
    SimulatedEvent,
    SimulatedExecutor,
    SimulatedLock,
    SimulatedQueue,
    SimulatedRLock,
    SimulatedThread,
    World,
)
from millstream.simulation.stack_traces import format_error

REPLACED = {
    "Condition": SimulatedCondition,
    "Event": SimulatedEvent,
    "Lock": SimulatedLock,
    "RLock": SimulatedRLock,
    "SimpleQueue": SimulatedQueue,
    "Thread": SimulatedThread,
    "ThreadPoolExecutor": SimulatedExecutor,
}

ROUNDS = ("rounds_began", "collect_when_due")


@contextmanager
def installed(world: World) -> Iterator[None]:
    """Use simulated threads and locks for code of this thread, inside `with`."""
    own = threading.get_ident()
    before = {name: getattr(concurrency, name) for name in concurrency.__all__}
    futures_threading = futures_base.threading  # type: ignore[attr-defined]

    def by_thread(real: Callable[..., object], simulated: Callable[..., object]) -> object:
        def make(*args: object, **kwargs: object) -> object:
            if threading.get_ident() == own:
                return simulated(world, *args, **kwargs)
            return real(*args, **kwargs)

        return make

    names = {name: by_thread(before[name], simulated) for name, simulated in REPLACED.items()}
    names["current_thread"] = lambda: (
        _current_thread(world) if threading.get_ident() == own else threading.current_thread()
    )
    names["get_ident"] = lambda: (
        world.task().number if threading.get_ident() == own else threading.get_ident()
    )
    names["pause"] = lambda: (
        world.scheduler.yield_now() if threading.get_ident() == own else before["pause"]()
    )
    rounds = {name: getattr(garbage, name) for name in ROUNDS}
    real_format_error = stack_traces.format_error
    shim = SimpleNamespace(**{**vars(threading), **names})
    try:
        for name, replacement in names.items():
            setattr(concurrency, name, replacement)
        for name in ROUNDS:  # killed threads would never end their rounds
            setattr(garbage, name, _ignored(rounds[name], own))
        stack_traces.format_error = lambda error: (
            format_error(error) if threading.get_ident() == own else real_format_error(error)
        )
        setattr(futures_base, "threading", shim)  # noqa: B010 - a module, to mypy
        yield
    finally:
        setattr(futures_base, "threading", futures_threading)  # noqa: B010
        for name, real in before.items():
            setattr(concurrency, name, real)
        for name, real in rounds.items():
            setattr(garbage, name, real)
        stack_traces.format_error = real_format_error


def _ignored(real: Callable[[], object], own: int) -> Callable[[], object]:
    """A replacement that does nothing in this thread; other threads call the real one."""
    return lambda: (lambda: None) if threading.get_ident() == own else real()


def _current_thread(world: World) -> object:
    """The running thread; creates an object for threads that the simulation started."""
    task = world.task()
    if task.thread is None:
        thread = SimulatedThread(world, name=task.name)
        thread.task = task
        task.thread = thread
    return task.thread
