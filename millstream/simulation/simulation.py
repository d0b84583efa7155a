"""Simulation: the processes, threads and history of one seed."""

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Self

from broker.machine import Machine
from millstream.simulation.clock import VirtualClock
from millstream.simulation.history import History
from millstream.simulation.installing import installed
from millstream.simulation.logs import logged
from millstream.simulation.primitives import World
from millstream.simulation.scheduler import MICROSECONDS, Process, Scheduler, Task


class Simulation:
    """Runs simulated processes. Inside `with`, code of this thread gets simulated threads.

    >>> with Simulation(seed=1) as simulation:
    ...     process = simulation.process("broker")
    ...     simulation.start(process, "main", serve)
    ...     simulation.run(for_ms=600_000)
    """

    def __init__(self, seed: int) -> None:
        """Each part has its own random numbers, so that parts do not affect each other."""
        self.seed = seed
        self.history = History()
        self.scheduler = Scheduler(self.random("scheduler"), self.history)
        self.history.now_us = lambda: self.scheduler.now_us
        self.world = World(self.scheduler)
        self._process_ids = itertools.count(1)
        self._opened = ExitStack()

    def random(self, name: str) -> Random:
        """The random numbers of a part, which follow from the seed and its name."""
        return Random(f"{self.seed}/{name}")

    def process(self, name: str) -> Process:
        """Create a process, possibly with the name of a killed one."""
        return Process(name, self.random(f"process {name} {self.scheduler.steps}"))

    def machine(self, process: Process, clock: VirtualClock | None = None) -> Machine:
        """Create a Machine for a process."""
        return Machine(
            clock=clock or VirtualClock(self.scheduler),
            random=process.random,
            host_name=process.name,
            process_id=next(self._process_ids),
        )

    def start(self, process: Process, name: str, body: Callable[[], object]) -> Task:
        """Start a thread of a process."""
        return self.scheduler.spawn(process, name, body)

    def run(self, *, for_ms: int) -> None:
        """Advance virtual time; returns earlier if nothing is left to do."""
        self.scheduler.run(self.scheduler.now_us + for_ms * MICROSECONDS)

    def kill(self, process: Process) -> None:
        """End a process as SIGKILL does."""
        self.history.add(process, "killed")
        self.scheduler.kill(process)

    def __enter__(self) -> Self:
        self._opened.enter_context(logged(self.history, self.scheduler))
        self._opened.enter_context(installed(self.world))
        return self

    def __exit__(self, *_: object) -> None:
        with self._opened:
            self.scheduler.end()
