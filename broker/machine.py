"""Machine: what a process takes from its machine: time, randomness, files, sockets, its name.

Everything below `millstream` gets them from its constructor, so that a simulation can put another
machine in their place, with a clock that jumps, a disk that forgets and a network that breaks.
"""

import os
import socket
from dataclasses import dataclass, field
from random import Random
from uuid import UUID, uuid4

from broker.clock import Clock, SystemClock
from broker.files import FileSystem
from broker.sockets import Sockets, SystemSockets

# The random numbers of this process; a process that is forked from it gets others.
_RANDOM = Random()
os.register_at_fork(after_in_child=_RANDOM.seed)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine; by default the one on which Python runs."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=lambda: _RANDOM)
    files: FileSystem = field(default_factory=FileSystem)
    sockets: Sockets = field(default_factory=SystemSockets)
    host_name: str = field(default_factory=socket.gethostname)
    process_id: int = field(default_factory=os.getpid)
    # What opens the databases of stores in place of RocksDB, which reaches the disk by itself; see
    # streams.state.databases.
    databases: object = None

    def uuid(self) -> UUID:
        """A random UUID, of version 4."""
        if self.random is _RANDOM:
            return uuid4()  # which cannot be guessed
        return UUID(int=self.random.getrandbits(128), version=4)


def on_clock(clock: Clock | None) -> Machine:
    """This machine, or one that differs only in its clock."""
    return Machine() if clock is None else Machine(clock=clock)
