"""Actor: a role in a simulation: it starts a process, which may be killed, and starts another."""

import logging
from typing import TYPE_CHECKING

from broker import concurrency
from broker.client.opening import Target
from broker.machine import Machine
from millstream.simulation.observations import Violation
from millstream.simulation.scheduler import Process

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import Platform

logger = logging.getLogger(__name__)


class Actor:
    """One role. `live` is its program; everything else is done to it from outside."""

    serves = False  # whether it works on until everything is checked

    def __init__(self, name: str, platform: "Platform") -> None:
        """Not started."""
        self.name = name
        self.platform = platform
        self.random = platform.simulation.random(f"actor {name}")
        self.process: Process | None = None
        self.machine: Machine | None = None
        self.starts = 0
        self.is_done = False
        self.ends_after_an_answer = False
        self._stopping: concurrency.Event | None = None

    # --- its program ----------------------------------------------------------------------------

    def live(self) -> None:
        """What it does until it is asked to stop, or is killed."""
        raise NotImplementedError

    @property
    def target(self) -> Target:
        """The cluster as its process reaches it."""
        assert self.machine is not None
        return self.platform.target(self.machine)

    @property
    def must_stop(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping is not None and self._stopping.is_set()

    def rest(self, shortest_ms: int, longest_ms: int) -> bool:
        """Do nothing for a while; False when it was told to stop."""
        assert self._stopping is not None
        return not self._stopping.wait(self.random.randint(shortest_ms, longest_ms) / 1000)

    def pause(self, shortest_ms: int, longest_ms: int) -> bool:
        """Rest between two pieces of work: longer in a long scenario, see Scenario.pace."""
        return self.rest(shortest_ms, longest_ms * self.platform.scenario.pace)

    def note(self, what: str, *details: object) -> None:
        """Write into the history."""
        self.platform.simulation.history.add(self.name, what, *details)

    def answered(self) -> None:
        """A user was told just now that something is done: it may be the last thing it did."""
        if self.ends_after_an_answer:
            self.kill()

    def check_always(self) -> None:
        """Raise a Violation if something is wrong now; called by no thread: it must not wait."""

    def unsettled(self) -> str:
        """What it still waits for, though nothing goes wrong any more; empty if nothing."""
        return ""

    # --- from outside ---------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether it has a process."""
        return self.process is not None and self.process.is_alive and not self.is_done

    def start(self) -> None:
        """Start a process."""
        simulation = self.platform.simulation
        self.starts += 1
        self.is_done = self.ends_after_an_answer = False
        self.process = simulation.process(self.name)
        self.machine = self.platform.machine_of(self)
        self.note("starts")
        simulation.start(self.process, "main", self._main)

    def _main(self) -> None:
        self._stopping = concurrency.Event()
        try:
            self.live()
        except Violation as violation:
            self.platform.report(violation)
        except Exception as error:
            self.failed(error)
        self.is_done = True
        self.note("has ended")
        assert self.process is not None
        self.platform.simulation.scheduler.kill(self.process)  # its other threads end with it

    def failed(self, error: Exception) -> None:
        """Its program ended with an error; it is started again, as a user would."""
        self.note("failed:", type(error).__name__, str(error)[:200])

    def stop(self) -> None:
        """Tell it to end by itself."""
        if self._stopping is not None and self.is_alive:
            self.note("is asked to stop")
            self._stopping.set()

    def kill(self) -> None:
        """End its process at once."""
        if self.process is not None and self.process.is_alive:
            self.platform.simulation.kill(self.process)
