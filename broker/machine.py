"""Machine: the resources of a process: time, random numbers, files, sockets, host name.

Everything below `millstream` receives them in its constructor, so that a simulation can replace the
machine with one whose clock jumps, whose disk loses writes and whose network fails.
"""

import os
import socket
from dataclasses import dataclass, field
from random import Random
from uuid import UUID, uuid4

from broker.clock import Clock, SystemClock
from broker.files import FileSystem
from broker.sockets import Sockets, SystemSockets

# The random numbers of this process; a forked process gets others.
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
    # Opens the databases of stores instead of RocksDB, which accesses the disk itself; see
    # streams.state.databases.
    databases: object = None

    def uuid(self) -> UUID:
        """A random UUID, of version 4."""
        if self.random is _RANDOM:
            return uuid4()  # which cannot be guessed
        return UUID(int=self.random.getrandbits(128), version=4)


def on_clock(clock: Clock | None) -> Machine:
    """This machine, or a copy with another clock."""
    return Machine() if clock is None else Machine(clock=clock)
