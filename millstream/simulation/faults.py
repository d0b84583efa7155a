"""Faults: applies the faults of a scenario to the platform."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from broker import concurrency
from broker.storage.checkpoints import RECOVERY_POINTS
from broker.storage.segment import DELETED, LOG, SWAP
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.broker import BrokerActor
from millstream.simulation.actors.producers import LEDGER, PARTITIONS
from millstream.simulation.actors.sql_server import SqlServerActor
from millstream.simulation.disk import SimulatedDisk
from millstream.simulation.scenario import (
    AFTER_A_COMMIT,
    AFTER_AN_ANSWER,
    FAILING_PARTITION,
    FREEZE,
    IN_A_SWAP,
    NO_RESTART,
    OVERDUE,
    POWER_AFTER_A_CHECKPOINT,
    POWER_AFTER_A_STOP,
    POWER_AFTER_AN_ANSWER,
    POWER_IN_A_REMOVAL,
    POWER_IN_A_ROLL,
    Fault,
)

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

JUMP_MS = 3_600_000
POLL_US = 100_000
AROUND_A_COMMIT_US = 20_000
SLOW_CLIENT = 20.0  # the factor by which the latency of a client grows
RESTARTS_US = 10_000_000  # in this time a failed query is started several times
OPEN_WAIT_MS = FULL_MS = 20_000  # longer than transactions may last


class Faults:
    """Applies faults, each in its own thread, and ends them."""

    def __init__(self, platform: "SimulatedPlatform") -> None:
        self._platform = platform
        self._random = platform.simulation.random("faults")
        self._kinds: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "stop": self._stop,
            "power loss": self._lose_power,
            "end in a write": self._kill_in_a_write,
            AFTER_A_COMMIT: self._kill_after_a_commit,
            AFTER_AN_ANSWER: self._kill_after_an_answer,
            IN_A_SWAP: self._end_in_a_swap,
            POWER_IN_A_REMOVAL: self._lose_power_in_a_removal,
            POWER_AFTER_AN_ANSWER: self._lose_power_after_an_answer,
            POWER_IN_A_ROLL: self._lose_power_in_a_roll,
            POWER_AFTER_A_CHECKPOINT: self._lose_power_after_a_checkpoint,
            POWER_AFTER_A_STOP: self._lose_power_after_a_stop,
            "full disk": self._fill_disk,
            "failing fsync": self._fail_fsyncs,
            FAILING_PARTITION: self._fail_partition,
            "slow disk": self._slow_disk,
            "no descriptors": self._use_up_descriptors,
            NO_RESTART: self._fail_restart,
            "scarce descriptors": self._keep_descriptors_scarce,
            "bad record": self._write_bad_record,
            "long absence": self._kill,
            FREEZE: self._freeze,
            OVERDUE: self._leave_transaction_open,
            "disconnect": self._disconnect,
            "partition": self._partition,
            "slow network": self._slow_network,
            "clock back": lambda fault: self._move_clock(fault, -JUMP_MS),
            "clock forward": lambda fault: self._move_clock(fault, JUMP_MS),
        }

    def apply(self, fault: Fault) -> None:
        """Apply a fault; returns when it is over."""
        self._platform.simulation.history.add("world", str(fault))
        self._kinds[fault.kind](fault)

    def _wait(self, fault: Fault) -> None:
        self._platform.simulation.scheduler.sleep(fault.for_ms * 1_000)

    # --- processes ------------------------------------------------------------------------------

    def _kill(self, fault: Fault) -> None:
        actor = self._platform.actors[fault.target]
        actor.kill()
        self._wait(fault)
        self._platform.restart(actor)

    def _stop(self, fault: Fault) -> None:
        actor = self._platform.actors[fault.target]
        actor.stop()
        self._wait(fault)
        actor.kill()  # if it has not stopped by then
        self._platform.restart(actor)

    def _freeze(self, fault: Fault) -> None:
        """Suspend all threads of a process for a while."""
        process = self._platform.actors[fault.target].process
        if process is None or not process.is_alive:
            return
        scheduler = self._platform.simulation.scheduler
        scheduler.freeze(process)
        self._wait(fault)
        scheduler.thaw(process)

    def _leave_transaction_open(self, fault: Fault) -> None:
        """Kill a producer in a transaction, which times out while the broker's disk is full."""
        broker, actor = self._platform.actors["broker"], self._platform.actors[fault.target]
        scheduler = self._platform.simulation.scheduler
        end_us = scheduler.now_us + fault.for_ms * 1_000
        for _ in range(OPEN_WAIT_MS * 1_000 // POLL_US):
            if isinstance(broker, BrokerActor) and broker.has_open(actor.name):
                break
            scheduler.sleep(POLL_US)
        else:
            return
        actor.kill()
        disk = self._platform.disk_of(broker)
        disk.fill()
        scheduler.sleep(FULL_MS * 1_000)
        disk.heal()
        scheduler.sleep(end_us - scheduler.now_us)
        self._platform.restart(actor)

    def _lose_power(self, fault: Fault) -> None:
        actor = self._platform.actors[fault.target]
        if actor.process is not None and actor.process.is_alive:
            self._platform.network.lose_power(actor.process)
        self._platform.disk_of(actor).power_loss()
        actor.kill()
        self._wait(fault)
        self._platform.restart(actor)

    def _kill_in_a_write(self, fault: Fault) -> None:
        """Kill the process, or cut the power, during a file operation."""
        actor, disk = self._disk_of(fault)
        process = actor.process
        if process is None or not process.is_alive:
            return
        operations = self._random.randrange(1, 40)
        if self._platform.scenario.is_durable and self._random.random() < 0.5:
            disk.stop_after(process, operations, disk.power_loss)
        else:
            disk.stop_after(process, operations)
        self._wait(fault)
        actor.kill()
        self._platform.restart(actor)

    def _end_in_a_swap(self, fault: Fault) -> None:
        """Kill the process, or cut the power, while a compacted segment has no final name."""
        actor, disk = self._disk_of(fault)
        process = actor.process
        if process is None or not process.is_alive:
            return
        stop = None
        if self._platform.scenario.is_durable and self._random.random() < 0.5:
            stop = partial(self._cut_power, actor)
        operations = self._random.randrange(2, 8)  # names of the files of a segment change
        disk.stop_after(process, operations, stop, only=lambda: _has_swap(disk))
        self._restart_when_ended(actor, fault)

    def _lose_power_in_a_removal(self, fault: Fault) -> None:
        """Cut the power when two segments were removed and their names may reappear."""
        _, disk = self._disk_of(fault)
        self._lose_power_when(fault, only=lambda: _removed_segments(disk) > 1)

    def _lose_power_in_a_roll(self, fault: Fault) -> None:
        """Cut the power while neither the end of a segment nor the next segment is on disk."""
        broker, disk = self._platform.broker, self._platform.disk_of(self._platform.broker)
        disk.slow_down()
        self._lose_power_when(fault, only=broker.has_rolled_unflushed)

    def _lose_power_after_a_checkpoint(self, fault: Fault) -> None:
        """The same, right after a checkpoint of the log."""
        broker, disk = self._platform.broker, self._platform.disk_of(self._platform.broker)
        disk.slow_down(suffix=LOG)
        self._lose_power_when(fault, only=broker.has_rolled_unflushed, suffix=RECOVERY_POINTS)

    def _lose_power_after_a_stop(self, fault: Fault) -> None:
        """Cut the power of a machine whose process has just stopped cleanly."""
        actor, _ = self._disk_of(fault)
        actor.stop()
        for _ in range(fault.for_ms * 1_000 // POLL_US):
            if not actor.is_alive:
                break
            self._platform.simulation.scheduler.sleep(POLL_US)
        self._cut_power(actor)
        actor.kill()
        self._platform.restart(actor)

    def _lose_power_after_an_answer(self, fault: Fault) -> None:
        """Cut the power of the broker right after an acknowledgement to the fault's target.

        The disk is slow, so that other data has not reached it: an acknowledged record among it
        would be lost.
        """
        broker, disk = self._platform.broker, self._platform.disk_of(self._platform.broker)
        disk.slow_down()
        count = self._random.randrange(1, 10) if "producer" in fault.target else 1
        broker.stop_after_acknowledgements(fault.target, count, partial(self._cut_power, broker))
        self._restart_when_ended(broker, fault)

    def _lose_power_when(self, fault: Fault, *, only: Callable[[], bool], suffix: str = "") -> None:
        """Cut the power in one of the next file operations for which `only` returns true."""
        actor, disk = self._disk_of(fault)
        process = actor.process
        if process is None or not process.is_alive:
            disk.heal()
            return
        operations = 1 if suffix else self._random.randrange(1, 4)
        stop = partial(self._cut_power, actor)
        disk.stop_after(process, operations, stop, suffix=suffix, only=only)
        self._restart_when_ended(actor, fault)

    def _cut_power(self, actor: Actor) -> None:
        if actor.process is not None and actor.process.is_alive:
            self._platform.network.lose_power(actor.process)
        self._platform.disk_of(actor).power_loss(whole=True)

    def _restart_when_ended(self, actor: Actor, fault: Fault) -> None:
        self._wait_until_ended(actor, fault)
        self._platform.disk_of(actor).heal()
        actor.kill()
        self._platform.restart(actor)

    def _kill_after_an_answer(self, fault: Fault) -> None:
        """Kill a server immediately after it has acknowledged a request."""
        actor = self._platform.actors[fault.target]
        actor.ends_after_acknowledgement = True
        if fault.target == "broker":
            self._wait_until_ended(actor, fault)
        else:
            self._wait(fault)
        actor.kill()
        self._platform.restart(actor)

    def _kill_after_a_commit(self, fault: Fault) -> None:
        """Kill a client at about the time when its commit is acknowledged."""
        actor, scheduler = self._platform.actors[fault.target], self._platform.simulation.scheduler
        reached = concurrency.Event()
        self._platform.broker.after_commits(fault.target, self._random.randrange(1, 6), reached.set)
        if self._random.random() < 0.5:
            self._platform.network.slow_down(SLOW_CLIENT, of=fault.target)
        if reached.wait(fault.for_ms / 1_000):
            scheduler.sleep(int(AROUND_A_COMMIT_US * self._random.random() ** 2))
            actor.kill()
            scheduler.sleep(2_000_000)
        self._platform.network.heal()
        self._platform.restart(actor)

    def _wait_until_ended(self, actor: Actor, fault: Fault) -> None:
        for _ in range(fault.for_ms // 1_000):
            if not actor.is_alive:
                return
            self._platform.simulation.scheduler.sleep(1_000_000)

    # --- the disk -------------------------------------------------------------------------------

    def _disk_of(self, fault: Fault) -> tuple[Actor, SimulatedDisk]:
        actor = self._platform.actors[fault.target]
        return actor, self._platform.disk_of(actor)

    def _fill_disk(self, fault: Fault) -> None:
        _, disk = self._disk_of(fault)
        disk.fill(self._random.choice((0, 1_000, 50_000)))
        self._wait(fault)
        disk.heal()

    def _fail_fsyncs(self, fault: Fault) -> None:
        part = self._random.choice(("/", "/", "/ledger-", "/plain-"))  # possibly of one topic only
        self._fail_fsyncs_of(part, self._random.choice((1, 3)), fault)

    def _fail_partition(self, fault: Fault) -> None:
        """Make one partition of a transaction refuse markers."""
        self._fail_fsyncs_of(f"/{LEDGER}-{self._random.randrange(PARTITIONS)}/", 1, fault)

    def _fail_fsyncs_of(self, part: str, times: int, fault: Fault) -> None:
        actor, disk = self._disk_of(fault)
        disk.fail_fsyncs(times=times, only=lambda path: part in path)
        self._wait(fault)
        disk.heal()
        # A partition whose fsync failed refuses appends until the broker is restarted.
        actor.stop()
        self._wait(fault)
        actor.kill()
        self._platform.restart(actor)

    def _slow_disk(self, fault: Fault) -> None:
        _, disk = self._disk_of(fault)
        disk.slow_down()
        self._wait(fault)
        disk.heal()

    def _use_up_descriptors(self, fault: Fault) -> None:
        _, disk = self._disk_of(fault)
        disk.limit_descriptors(self._random.choice((0, 8)))
        self._wait(fault)
        disk.heal()

    def _fail_restart(self, fault: Fault) -> None:
        """Make a query fail because of a full disk, and its restart for lack of descriptors."""
        server, disk = self._disk_of(fault)
        assert isinstance(server, SqlServerActor)
        scheduler = self._platform.simulation.scheduler
        end_us = scheduler.now_us + fault.for_ms * 1_000
        disk.fill()
        while not server.has_failed_query and scheduler.now_us < end_us - RESTARTS_US:
            scheduler.sleep(POLL_US)
        disk.heal()
        disk.limit_descriptors(0)
        scheduler.sleep(RESTARTS_US)
        disk.heal()

    def _keep_descriptors_scarce(self, fault: Fault) -> None:
        """Leave no descriptors for short times, as when many connections are opened and closed."""
        _, disk = self._disk_of(fault)
        scheduler = self._platform.simulation.scheduler
        end_us = scheduler.now_us + fault.for_ms * 1_000
        while scheduler.now_us < end_us:
            disk.limit_descriptors(0)
            scheduler.sleep(self._random.randrange(40_000))
            disk.limit_descriptors(None)
            scheduler.sleep(self._random.randrange(40_000))

    def _write_bad_record(self, fault: Fault) -> None:
        """Write a record that coordinators cannot read, as another version or a defect might."""
        broker = self._platform.actors["broker"]
        if isinstance(broker, BrokerActor) and broker.is_alive:
            broker.write_bad_record()

    # --- the network ----------------------------------------------------------------------------

    def _disconnect(self, fault: Fault) -> None:
        network = self._platform.network
        network.disconnect_some(among=fault.target)
        network.keep_disconnecting(0.05)
        self._wait(fault)
        network.heal()

    def _partition(self, fault: Fault) -> None:
        self._platform.network.partition(fault.target)
        self._wait(fault)
        self._platform.network.heal()

    def _slow_network(self, fault: Fault) -> None:
        self._platform.network.slow_down(self._random.choice((10, 200)))
        self._wait(fault)
        self._platform.network.heal()

    # --- clocks ---------------------------------------------------------------------------------

    def _move_clock(self, fault: Fault, by_ms: int) -> None:
        """Make the wall clock jump permanently."""
        clock = self._platform.clock_of(self._platform.actors[fault.target])
        clock.jump(by_ms)


def _removed_segments(disk: SimulatedDisk) -> int:
    """The number of removed segments whose names may reappear after a power loss."""
    added = (change.added for change in disk.names.changes)
    return sum(each is not None and each[1].endswith(LOG + DELETED) for each in added)


def _has_swap(disk: SimulatedDisk) -> bool:
    """Whether a compacted segment does not have its final name yet."""
    return disk.has_name_with_end(LOG + SWAP)
