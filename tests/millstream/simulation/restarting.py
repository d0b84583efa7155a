"""A simulated process that is killed, or loses its power, and is started again on the same disk."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.machine import Machine
from millstream.simulation import Simulation
from millstream.simulation.disk import SimulatedDisk
from millstream.simulation.scheduler import MICROSECONDS, Process
from millstream.simulation.stores import ModelDatabases

RESTART_MS = (0, 1_000, 30_000)


@dataclass(slots=True)
class Server:
    """What a process has from its start to its end: a machine, and a broker on it."""

    simulation: Simulation
    machine: Machine
    broker: Broker
    start: int  # how many were before

    def note(self, what: str, *details: object) -> None:
        """Add to the history."""
        self.simulation.history.add(self.machine.host_name, what, *details)

    def wait(self, milliseconds: int) -> None:
        """Let virtual time pass."""
        self.simulation.scheduler.sleep(milliseconds * MICROSECONDS)


@dataclass(slots=True)
class Restarted:
    """Runs a function in a process with a broker, again after each end, until it returns."""

    simulation: Simulation
    serve: Callable[[Server], None]
    disk: SimulatedDisk = field(init=False)
    process: Process = field(init=False)
    operations_max: int = 1_500  # on the disk, before a kill in the middle of one
    starts: int = 0
    is_over: bool = False

    def __post_init__(self) -> None:
        """Start."""
        self.disk = SimulatedDisk(self.simulation, "disk")
        self._start()

    def _start(self) -> None:
        process = self.process = self.simulation.process(f"server-{self.starts}")
        files = self.disk.files(process)
        machine = replace(
            self.simulation.machine(process), files=files, databases=ModelDatabases(files)
        )
        number, self.starts = self.starts, self.starts + 1
        self.simulation.start(process, "main", partial(self._run, machine, number))

    def _run(self, machine: Machine, number: int) -> None:
        config = BrokerConfig(durability="fsync")
        with Broker(config, machine=machine, data_directory="/data/broker") as broker:
            self.serve(Server(self.simulation, machine, broker, number))
        self.is_over = True

    def end_now_and_then(self, random: Random, *, times: int, within_ms: int) -> None:
        """Kill the process or take its power, at a time or in a write, and start it again."""
        scheduler = self.simulation.scheduler
        for _ in range(times):
            process = self.process
            end = partial(self.simulation.kill, process)
            if random.random() < 0.5:
                end = self.disk.power_loss  # type: ignore[assignment]
            if random.random() < 0.7:
                self.disk.stop_after(process, random.randint(1, self.operations_max), end)
                while process.is_alive and not self.is_over:
                    scheduler.sleep(100 * MICROSECONDS)
            else:
                scheduler.sleep(random.randrange(within_ms) * MICROSECONDS)
            if self.is_over:
                return
            if process.is_alive:
                end()
            scheduler.sleep(random.choice(RESTART_MS) * MICROSECONDS)
            self._start()

    def run(self, *, kills: int = 0, within_ms: int = 20_000) -> str:
        """Let it run to its end, with so many kills on the way; the digest of the history."""
        random = self.simulation.random("kills")
        if kills:
            self.simulation.start(
                self.simulation.process("operator"),
                "main",
                partial(self.end_now_and_then, random, times=kills, within_ms=within_ms),
            )
        self.simulation.run(for_ms=3_600_000)
        for task, error in self.simulation.scheduler.crashed:
            raise AssertionError(f"{task} failed") from error
        assert self.is_over, "the process is not done within an hour"
        self.simulation.history.add("disk", "has at the end", self.disk.digest())
        return self.simulation.history.digest()
