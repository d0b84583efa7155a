"""SimulatedPlatform: runs one scenario, with its processes, disks and network.

3 s     the broker starts, topics are created
work    actors work, faults happen
10 min  no more faults; in this time everything must work again, and is checked
"""

import gc
from functools import partial

from broker.broker import Broker
from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.client.opening import Target
from broker.client.remote import Remote
from broker.errors import ErrorCode, MillstreamError
from broker.machine import Machine
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.audit import Audit
from millstream.simulation.actors.balances import Balances
from millstream.simulation.actors.broker import BrokerActor
from millstream.simulation.actors.connect_worker import ConnectWorkerActor, RivalWorkerActor
from millstream.simulation.actors.producers import (
    LEDGER,
    PARTITIONS,
    PLAIN,
    BurstProducer,
    IdempotentProducer,
    TransactionalProducer,
)
from millstream.simulation.actors.readers import GroupReader
from millstream.simulation.actors.registry import RegistryActor
from millstream.simulation.actors.retention import RetainedTopic
from millstream.simulation.actors.second_sql_server import SecondSqlServerActor
from millstream.simulation.actors.sql_server import SqlServerActor
from millstream.simulation.actors.streams_apps import OUTPUTS, StreamsApplication
from millstream.simulation.actors.topic_changes import TopicChanges
from millstream.simulation.actors.unknown_topics import UnknownTopics
from millstream.simulation.application_state import ApplicationStateChecker
from millstream.simulation.broker_invariants import BrokerInvariants
from millstream.simulation.checker import Checker
from millstream.simulation.clock import VirtualClock
from millstream.simulation.disk import SimulatedDisk
from millstream.simulation.faults import Faults
from millstream.simulation.network import SimulatedNetwork
from millstream.simulation.observations import Observations, Violation
from millstream.simulation.primitives import LONG_US, SimulatedRLock
from millstream.simulation.scenario import CALM_BEFORE_MS, MINUTE_MS, Fault, Scenario
from millstream.simulation.scheduler import NoProgress
from millstream.simulation.simulation import Simulation
from millstream.simulation.stores import ModelDatabases

RECOVERY_MS = 10 * MINUTE_MS
TURNS_A_SECOND_MAX = 5_000  # of one thread; busy threads have had up to 1,000
NO_SPIN = "no thread spins"
CATCH_UP_SECONDS_MAX = 300  # for readers, after the last record
SETTLED_US = 3_000_000  # after the last client has closed its connections
LONG_REAL_S = 0.05  # locks must be held for less
GARBAGE_MS = 60_000
KINDS: dict[str, type[Actor]] = {
    "producer": IdempotentProducer,
    "bursts": BurstProducer,
    "transactions": TransactionalProducer,
    "classic": GroupReader,
    "consumer": GroupReader,
    "topics": TopicChanges,
    "retention": RetainedTopic,
    "unknown": UnknownTopics,
    "audit": Audit,
    "balances": Balances,
    "application": StreamsApplication,
    "sql": SqlServerActor,
    "second": SecondSqlServerActor,
    "registry": RegistryActor,
    "connect": ConnectWorkerActor,
    "rival": RivalWorkerActor,
}


class SimulatedPlatform:
    """The processes, disks and network of one scenario."""

    address = "broker:9092"

    def __init__(self, simulation: Simulation, scenario: Scenario) -> None:
        self.simulation = simulation
        self.scenario = scenario
        self.observations = Observations()
        self.violation: Violation | None = None
        self.network = SimulatedNetwork(simulation)
        self._disks: dict[str, SimulatedDisk] = {}
        self._clocks: dict[str, VirtualClock] = {}
        self._locks: list[SimulatedRLock] = []
        self._world = simulation.process("world")
        self._faults = Faults(self)
        self._is_over = False
        self.broker = BrokerActor("broker", self)
        self.actors: dict[str, Actor] = {"broker": self.broker}
        for name in scenario.actors:
            self.actors[name] = KINDS[name.split()[0]](name, self)
        self._checker = Checker("checker", self)
        self._broker_invariants = BrokerInvariants(self)
        self._state_checker = ApplicationStateChecker("state checker", self)

    # --- for actors -----------------------------------------------------------------------------

    def disk_of(self, actor: Actor) -> SimulatedDisk:
        """The disk of an actor's machine; it survives its processes."""
        if actor.name not in self._disks:
            self._disks[actor.name] = SimulatedDisk(self.simulation, actor.name)
        return self._disks[actor.name]

    def clock_of(self, actor: Actor) -> VirtualClock:
        """The clock of an actor's machine."""
        if actor.name not in self._clocks:
            self._clocks[actor.name] = VirtualClock(self.simulation.scheduler)
        return self._clocks[actor.name]

    def machine_of(self, actor: Actor) -> Machine:
        """The Machine of an actor's current process."""
        assert actor.process is not None
        files = self.disk_of(actor).files(actor.process)
        return Machine(
            clock=self.clock_of(actor),
            random=actor.process.random,
            files=files,
            sockets=self.network.sockets(actor.process),
            host_name=actor.name.replace(" ", "-"),
            process_id=actor.starts,
            databases=ModelDatabases(files),
        )

    def target(self, machine: Machine) -> Target:
        """The cluster, for clients on a machine."""
        return Remote(self.address, machine)

    def watch_lock(self, broker: Broker) -> None:
        """Measure how long the broker's lock is held."""
        lock = broker.lock
        assert isinstance(lock, SimulatedRLock)
        lock.name = "broker"
        self._locks.append(lock)

    def is_calm(self, for_ms: int) -> bool:
        """Whether all faults have been over for a while."""
        now_ms = self.simulation.scheduler.now_us // 1_000
        return now_ms > self.scenario.faults_end_ms + for_ms

    def report(self, violation: Violation) -> None:
        """Store the first violation."""
        if self.violation is None:
            self.violation = violation
            self.simulation.history.add("VIOLATION", str(violation))

    # --- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the scenario to its end, or to the first violation."""
        simulation, scenario = self.simulation, self.scenario
        self.actors["broker"].start()
        simulation.start(self._world, "director", self._run_phases)
        for number, fault in enumerate(scenario.faults):
            simulation.start(self._world, f"fault {number}", partial(self._at, fault))
        end_ms = CALM_BEFORE_MS + scenario.work_ms + RECOVERY_MS
        while self.violation is None and not self._is_over:
            if simulation.scheduler.now_us >= end_ms * 1_000:
                self.report(Violation("everything works again", self._unfinished_actors()))
                break
            try:
                simulation.run(for_ms=1_000)
            except NoProgress as error:
                self.report(Violation(NO_SPIN, str(error)))
            self._check_always()
            self._collect_garbage()
        if self.violation is None:
            self._check_work()

    def _collect_garbage(self) -> None:
        """Collect garbage at times that follow from the seed, not while a lock is held."""
        if self.simulation.scheduler.now_us // 1_000 % GARBAGE_MS < MINUTE_MS // 60:
            gc.collect(1)

    def _at(self, fault: Fault) -> None:
        self.simulation.scheduler.sleep(fault.at_ms * 1_000)
        self._faults.apply(fault)

    def _run_phases(self) -> None:
        """Start the actors, stop them after the faults, and check."""
        sleep = self.simulation.scheduler.sleep
        creator = Creator("creator", self)
        creator.start()
        self._await(creator)
        names = [name for name in self.actors if name != "broker"]
        for name in names:
            self.actors[name].start()
        self._supervise_until((CALM_BEFORE_MS + self.scenario.work_ms) * 1_000)
        self._supervise_until(self.scenario.faults_end_ms * 1_000 + 1_000_000)
        applications = [name for name in names if "application" in name]
        servers = [name for name in names if self.actors[name].works_until_checked]
        readers = [name for name in names if "reader" in name]
        writers = [name for name in names if name not in {*applications, *servers, *readers}]
        self._stop_all(writers)
        for _ in range(CATCH_UP_SECONDS_MAX):
            if self._has_caught_up():
                break
            sleep(1_000_000)
        self._stop_all(readers)
        self._checker.start()
        self._await(self._checker)
        self._stop_all([*applications, *servers])
        if applications:
            self._state_checker.start()
            self._await(self._state_checker)
        sleep(SETTLED_US)
        self._broker_invariants.check_leftovers()
        checkers = (self._checker, self._state_checker) if applications else (self._checker,)
        self._is_over = all(each.has_finished for each in checkers)

    def _stop_all(self, names: list[str]) -> None:
        for name in names:
            self.actors[name].stop()
        for name in names:
            self._await(self.actors[name])

    def _has_caught_up(self) -> bool:
        """Whether the groups have read all acknowledged records."""
        return all(
            offsets.keys() <= partitions[tp]
            for partitions in self.observations.delivered.values()
            for tp, offsets in self.observations.acknowledged.items()
        )

    def _await(self, actor: Actor) -> None:
        while not actor.is_done:
            self._restart_broker()
            self.simulation.scheduler.sleep(250_000)

    def _supervise_until(self, end_us: int) -> None:
        """Restart the broker after an error, until a time."""
        while self.simulation.scheduler.now_us < end_us:
            self._restart_broker()
            self.simulation.scheduler.sleep(500_000)

    def _restart_broker(self) -> None:
        broker = self.actors["broker"]
        if broker.is_done:
            self.restart(broker)

    def restart(self, actor: Actor) -> None:
        """Start a new process of an actor, unless it has one."""
        if not actor.is_alive:
            actor.start()

    def _unfinished_actors(self) -> str:
        alive = [name for name, actor in self.actors.items() if actor.is_alive]
        return f"after {RECOVERY_MS // MINUTE_MS} minutes without faults, still at work: {alive}"

    # --- invariants -----------------------------------------------------------------------------

    def _check_always(self) -> None:
        self._broker_invariants.check()
        for actor in self.actors.values():
            try:
                actor.check_invariants()
            except Violation as violation:
                self.report(violation)
        for task, error in self.simulation.scheduler.crashed:
            self.report(Violation("no thread ends with an exception", f"{task}: {error!r}"))
        turns, thread = self.simulation.scheduler.busiest
        if turns > TURNS_A_SECOND_MAX:
            self.report(Violation(NO_SPIN, f"{thread}: {turns} turns in a second"))
        for name, held_us in self.simulation.context.longest_virtual.items():
            if held_us > LONG_US and self.violation is None:
                held = f"the lock of the {name} was held for {held_us / 1_000:.0f} virtual ms"
                self.report(Violation("no lock is held for long", held))
                stack = self.simulation.context.longest_stack.get(name, ())
                self.simulation.history.detail("".join(stack))

    def _check_work(self) -> None:
        """Check how long locks are held by processor time.

        It depends on the machine. So it does not end a run, and is not an event of its history.
        """
        for name, held_s in self.simulation.context.longest_real.items():
            if held_s > LONG_REAL_S:
                held = f"the lock of the {name} was held for {held_s * 1_000:.0f} ms of real time"
                self.violation = Violation("no lock is held for long", held)
                self.simulation.history.detail(f"VIOLATION {self.violation}")


class Creator(Actor):
    """Creates the topics that actors use."""

    def run(self) -> None:
        """Create the topics, with retries."""
        with admin(self.target, default_api_timeout_ms=20_000) as cluster:
            new = [NewTopic(name, PARTITIONS) for name in (PLAIN, LEDGER, *OUTPUTS)]
            while True:
                try:
                    errors = cluster.create_topics(new).errors.values()
                except MillstreamError:
                    continue
                if all(error.code == ErrorCode.TOPIC_ALREADY_EXISTS for error in errors):
                    return


def run_scenario(scenario: Scenario) -> "Outcome":
    """Simulate a scenario."""
    with Simulation(scenario.seed) as simulation:
        platform = SimulatedPlatform(simulation, scenario)
        collects = gc.isenabled()
        gc.disable()
        try:
            platform.run()
        finally:
            if collects:
                gc.enable()
        return Outcome(scenario, platform)


class Outcome:
    """The result of a simulation."""

    def __init__(self, scenario: Scenario, platform: SimulatedPlatform) -> None:
        simulation = platform.simulation
        self.scenario = scenario
        self.violation = platform.violation
        self.digest = simulation.history.digest()
        self.lines = simulation.history.last()
        self.virtual_ms = simulation.scheduler.now_us // 1_000
        self.steps = simulation.scheduler.steps
        self.acknowledged = sum(map(len, platform.observations.acknowledged.values()))
        self.busiest = simulation.scheduler.busiest
