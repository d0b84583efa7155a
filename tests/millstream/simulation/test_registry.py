"""The schema registry in a simulation: what it acknowledged survives, with the same ids."""

from functools import partial

import pytest

from broker.registry.registry import Registry
from millstream.simulation import Simulation
from millstream.simulation.workloads.registry import RegistryWorkload
from tests.millstream.simulation.restarting import Restarted, Server

CHANGES = 40


def serve(workload: RegistryWorkload, server: Server) -> None:
    """Check what was promised, and go on."""
    with Registry(server.broker) as registry:
        workload.check(registry)
        while workload.done < CHANGES:
            workload.change(registry, server.note)
            server.wait(workload.random.randrange(2_000))
        workload.check(registry)
        server.note("has", sorted(registry.subjects()), sorted(workload.ids.items()))


def run(seed: int) -> str:
    """A registry that is killed; the digest of the history."""
    with Simulation(seed) as simulation:
        workload = RegistryWorkload(simulation.random("workload"))
        restarted = Restarted(simulation, partial(serve, workload), operations_max=150)
        return restarted.run(kills=4)


@pytest.mark.slow
def test_schemas_keep_their_ids() -> None:
    for seed in range(30):
        run(seed)


@pytest.mark.slow
def test_one_seed_is_one_history() -> None:
    assert run(1) == run(1)
    assert run(1) != run(2)
