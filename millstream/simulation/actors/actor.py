"""Actor: a participant of a simulation; it runs in a process, and in a new one after a restart."""

import logging
from typing import TYPE_CHECKING

from broker import concurrency
from broker.client.opening import Target
from broker.machine import Machine
from millstream.simulation.observations import Violation
from millstream.simulation.scheduler import Process

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

logger = logging.getLogger(__name__)


class Actor:
    """A participant. `run` is its program; the platform calls the other methods."""

    works_until_checked = False  # whether it runs until everything has been checked

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        self.name = name
        self.platform = platform
        self.random = platform.simulation.random(f"actor {name}")
        self.process: Process | None = None
        self.machine: Machine | None = None
        self.starts = 0
        self.is_done = False
        self.ends_after_acknowledgement = False
        self._stopping: concurrency.Event | None = None

    # --- its program ----------------------------------------------------------------------------

    def run(self) -> None:
        """The program; runs until the actor is stopped or killed."""
        raise NotImplementedError

    @property
    def target(self) -> Target:
        """The cluster, as reached from its process."""
        assert self.machine is not None
        return self.platform.target(self.machine)

    @property
    def must_stop(self) -> bool:
        """Whether it has been requested to stop."""
        return self._stopping is not None and self._stopping.is_set()

    def sleep(self, shortest_ms: int, longest_ms: int) -> bool:
        """Sleep for a random time; returns False if the actor must stop."""
        assert self._stopping is not None
        return not self._stopping.wait(self.random.randint(shortest_ms, longest_ms) / 1000)

    def pause(self, shortest_ms: int, longest_ms: int) -> bool:
        """Sleep between two actions, longer in a long scenario; see Scenario.pace."""
        return self.sleep(shortest_ms, longest_ms * self.platform.scenario.pace)

    def note(self, event: str, *details: object) -> None:
        """Add an event to the history."""
        self.platform.simulation.history.add(self.name, event, *details)

    def on_acknowledged(self) -> None:
        """Called after an acknowledgement to a user; a fault may kill the process here."""
        if self.ends_after_acknowledgement:
            self.kill()

    def check_invariants(self) -> None:
        """Raise a Violation if an invariant does not hold. It must not wait: no thread calls it."""

    def unfinished_work(self) -> str:
        """Describe work that is not finished after the faults; empty if there is none."""
        return ""

    # --- called by the platform -----------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.is_alive and not self.is_done

    def start(self) -> None:
        simulation = self.platform.simulation
        self.starts += 1
        self.is_done = self.ends_after_acknowledgement = False
        self.process = simulation.process(self.name)
        self.machine = self.platform.machine_of(self)
        self.note("starts")
        simulation.start(self.process, "main", self._main)

    def _main(self) -> None:
        self._stopping = concurrency.Event()
        try:
            self.run()
        except Violation as violation:
            self.platform.report(violation)
        except Exception as error:
            self.failed(error)
        self.is_done = True
        self.note("has ended")
        assert self.process is not None
        self.platform.simulation.scheduler.kill(self.process)  # also ends its other threads

    def failed(self, error: Exception) -> None:
        """Note that its program failed; the platform restarts it."""
        self.note("failed:", type(error).__name__, str(error)[:200])

    def stop(self) -> None:
        """Request it to stop."""
        if self._stopping is not None and self.is_alive:
            self.note("is asked to stop")
            self._stopping.set()

    def kill(self) -> None:
        """Kill its process."""
        if self.process is not None and self.process.is_alive:
            self.platform.simulation.kill(self.process)
