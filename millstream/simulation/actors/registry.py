"""RegistryActor: the schema registry on the remote broker."""

from typing import TYPE_CHECKING

from broker.errors import MillstreamError
from broker.registry.registry import Registry
from millstream.simulation.actors.actor import Actor
from millstream.simulation.workloads.registry import RegistryWorkload

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

CALM_MS = 30_000


class RegistryActor(Actor):
    """Registers schemas and sets levels; at each start all acknowledged ones must exist."""

    works_until_checked = True

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self.workload = RegistryWorkload(self.random)
        self._unfinished = "a registry that starts and takes a change"

    def unfinished_work(self) -> str:
        return self._unfinished

    def run(self) -> None:
        """Run registries until stopped; open the next one after an error."""
        while not self.must_stop:
            try:
                with Registry(self.target) as registry:
                    self.note("runs")
                    self.workload.check(registry)
                    self._serve(registry)
            except MillstreamError as error:
                self.note("opens another one after", type(error).__name__, error.message[:200])
                self.sleep(500, 2_000)

    def _serve(self, registry: Registry) -> None:
        """Change the registry for a while; the next one reads the changes."""
        for _ in range(self.random.choice((3, 10, 30))):
            if not self.pause(100, 5_000):
                return
            self.workload.change(registry, self.note)
            self.on_acknowledged()
            if self.platform.is_calm(CALM_MS):
                self._unfinished = ""  # it was reopened without faults, and accepts changes
