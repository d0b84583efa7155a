"""NetworkConditions: the current delays and faults of a simulated network."""

from random import Random
from zlib import crc32

from millstream.simulation.scheduler import MICROSECONDS, Process, Scheduler

DELAY_US = (100, 5_000)
SLOW_CHANCE = 0.002  # of a message that takes much longer, as after a lost packet
SLOW_US = (100_000, 700_000)
CAPACITIES = (4_096, 65_536, 262_144)


class NetworkConditions:
    """The delays and faults; all random decisions of the network are made here."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self._scheduler = scheduler
        self.random = random
        self.slow_factor: dict[str, float] = {}  # by the name of a process; "": all
        self.partitions: dict[tuple[str, str], None] = {}
        self.without_power: dict[str, None] = {}  # processes whose machine has no power
        self.cut_chance = 0.0  # of a connection, whenever it is used
        self.digest = 0  # of all bytes that were sent

    @property
    def now_us(self) -> int:
        return self._scheduler.now_us

    def delay_us(self, one: Process, other: Process) -> int:
        """The delay of a message."""
        chance = self.random.random()
        low, high = DELAY_US
        delay_us = low + int((high - low) * chance * chance)  # most are fast
        if chance > 1 - SLOW_CHANCE:
            delay_us = self.random.randint(*SLOW_US)
        if self.slow_factor:
            factors = [self.slow_factor.get(name, 1.0) for name in ("", one.name, other.name)]
            delay_us = int(delay_us * max(factors))
        return delay_us

    def capacity(self) -> int:
        """The capacity of a connection in each direction."""
        return self.random.choice(CAPACITIES)

    def must_cut(self) -> bool:
        """Whether a connection breaks after it was used."""
        return self.cut_chance > 0 and self.random.random() < self.cut_chance

    def is_partitioned(self, one: Process, other: Process) -> bool:
        """Whether two processes cannot reach each other."""
        if not self.partitions:
            return False
        for pair in ((one.name, other.name), (other.name, one.name)):
            if pair in self.partitions or (pair[0], "") in self.partitions:
                return True
        return False

    def is_unreachable(self, one: Process, other: Process) -> bool:
        """Whether there can be no response, because of a partition or a machine without power."""
        if one.name in self.without_power or other.name in self.without_power:
            return True
        return self.is_partitioned(one, other)

    def add_to_digest(self, data: bytes) -> None:
        """Add sent bytes to the digest."""
        self.digest = crc32(data, self.digest)

    def connect_timeout_us(self) -> int:
        """The timeout of a connect to an unreachable machine."""
        return self.random.randint(10, 3_000) * MICROSECONDS
