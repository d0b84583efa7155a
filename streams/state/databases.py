"""Which databases stores are in: RocksDB's, unless the machine has others, as a simulated one."""

from broker.machine import Machine
from streams.state.backing import Databases
from streams.state.rocks import RocksDatabases


def databases_of(machine: Machine) -> Databases:
    """What opens the databases of persistent stores."""
    if machine.databases is None:
        return RocksDatabases(machine.files)
    assert isinstance(machine.databases, Databases), "see streams.state.backing"
    return machine.databases
