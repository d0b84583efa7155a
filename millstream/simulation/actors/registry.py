"""RegistryActor: the schema registry on the remote broker."""

from typing import TYPE_CHECKING

from broker.errors import MillstreamError
from broker.registry.registry import Registry
from millstream.simulation.actors.actor import Actor
from millstream.simulation.workloads.registry import RegistryWorkload

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import Platform

CALM_MS = 30_000


class RegistryActor(Actor):
    """Registers schemas and sets levels; what it acknowledged is there after each start."""

    serves = True

    def __init__(self, name: str, platform: "Platform") -> None:
        """Nothing is registered."""
        super().__init__(name, platform)
        self.workload = RegistryWorkload(self.random)
        self._waits_for = "a registry that starts and takes a change"

    def unsettled(self) -> str:
        """What it still waits for."""
        return self._waits_for

    def live(self) -> None:
        """Open registries until told to stop; the next one when one has failed."""
        while not self.must_stop:
            try:
                with Registry(self.target) as registry:
                    self.note("runs")
                    self.workload.check(registry)
                    self._serve(registry)
            except MillstreamError as error:
                self.note("opens another one after", type(error).__name__, error.message[:200])
                self.rest(500, 2_000)

    def _serve(self, registry: Registry) -> None:
        """Change it for a while; the next one reads what this one has written."""
        for _ in range(self.random.choice((3, 10, 30))):
            if not self.pause(100, 5_000):
                return
            self.workload.change(registry, self.note)
            self.answered()
            if self.platform.is_calm(CALM_MS):
                self._waits_for = ""  # it was read again without faults, and takes changes
