"""Chooses the databases of stores: RocksDB, unless the machine has others, as in a simulation."""

from broker.machine import Machine
from streams.state.backing import Databases
from streams.state.rocks import RocksDatabases


def databases_of(machine: Machine) -> Databases:
    """The object that opens the databases of persistent stores."""
    if machine.databases is None:
        return RocksDatabases(machine.files)
    assert isinstance(machine.databases, Databases), "see streams.state.backing"
    return machine.databases
