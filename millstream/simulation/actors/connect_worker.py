"""ConnectWorkerActor and RivalWorkerActor: Connect workers of one group on the remote broker."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from broker.errors import MillstreamError
from broker.machine import Machine
from connect.config.worker_config import WorkerConfig
from connect.plugins import Plugins
from connect.server import ConnectServer
from millstream.simulation.actors.actor import Actor
from millstream.simulation.observations import Violation
from millstream.simulation.workloads.connect import PLUGINS, SINK, ConnectWorkload, Step, partitions
from millstream.simulation.workloads.topic_reading import TopicReading

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

T = TypeVar("T")

CALM_MS = 60_000  # how long after the last fault operations may be slow
EXPLAINED_MS = 400_000  # how long after a fault a task may fail because of it
INACTIVE_MS = 20_000  # how long a paused or deleted connector may still be active
RESTARTED_MS = 60_000  # in which a restarted connector must run
TOGETHER_MS = 30_000  # how long after a fault two workers may run the connectors
SAME_NAME = 0.5  # the share of workers that keep their member id after a restart
RIVAL = "rival worker"


class ConnectWorkerActor(Actor):
    """Runs a worker, and changes its connectors as users do; see ConnectWorkload."""

    works_until_checked = True

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        scheduler = platform.simulation.scheduler
        self.workload = ConnectWorkload(
            self.random, platform.scenario.work_ms, lambda: scheduler.now_us
        )
        self.running: ConnectServer | None = None
        self._keeps_name = self.random.random() < SAME_NAME
        self._rest_ms = max(2_000, platform.scenario.work_ms // 8)  # the longest time between steps
        self._unfinished = "its script"
        self._pause_ms = 0  # how long the next worker changes nothing
        self._is_prepared = False
        self._has_started_calmly = False
        self._together_ms: int | None = None  # since when two workers run

    def unfinished_work(self) -> str:
        return self._unfinished

    @property
    def _now_ms(self) -> int:
        return self.platform.simulation.scheduler.now_us // 1_000

    @property
    def owns(self) -> bool:
        """Whether its worker runs the connectors."""
        return self.is_alive and owns(self.running)

    def run(self) -> None:
        """Run workers until stopped; start the next one after an error."""
        assert self.machine is not None
        self.running = None
        machine = replace(self.machine, process_id=1) if self._keeps_name else self.machine
        while not self.must_stop:
            try:
                if not self._is_prepared:
                    self.workload.prepare(self.target)
                    self._is_prepared = True
                with (
                    worker(self, self.workload, machine) as server,
                    TopicReading(self.target) as reading,
                ):
                    self.running = server
                    self.note("runs")
                    self._serve(server, reading)
            except MillstreamError as error:
                self.note("starts again after", type(error).__name__, error.message[:200])
                self.sleep(500, 2_000)
            except Stopped:
                pass
            finally:
                self.running = None

    def _wait(self, server: ConnectServer, milliseconds: int) -> None:
        if not self.sleep(milliseconds, milliseconds):
            raise Stopped
        if server.failure is not None:
            raise server.failure

    def _serve(self, server: ConnectServer, reading: TopicReading) -> None:
        workload = self.workload
        workload.check_known(server.herder)
        pause_ms, self._pause_ms = self._pause_ms, 0
        self._wait(server, pause_ms)
        while not workload.is_over:
            self._wait(server, self.random.randrange(200, self._rest_ms))
            step = self._attempt(server, lambda: self._step(server))
            if step is not None and step.restarts:
                self._pause_ms = step.pause_ms
                return  # the next worker must not change the connector at first
            self._wait(server, step.pause_ms if step is not None else 0)
        while not self.platform.is_calm(CALM_MS):
            self._wait(server, 3_000)
            self._attempt(server, lambda: self._repair(server))
        if not self._has_started_calmly:
            self._await_running(server)
            self._has_started_calmly = True
            return  # the next worker continues from here
        while self._unfinished:
            self._wait(server, 1_000)
            self._attempt(server, lambda: self._finish(server, reading))
        while True:
            self._wait(server, 5_000)

    def _attempt(self, server: ConnectServer, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except MillstreamError as error:
            if server.failure is not None:
                raise server.failure from error
            self.note("could not go on", type(error).__name__, error.message[:300])
            return None

    def _step(self, server: ConnectServer) -> Step:
        self._repair(server)
        step = self.workload.run_next(server.herder, self.note)
        self.on_acknowledged()
        return step

    def _repair(self, server: ConnectServer) -> None:
        begun = [each.end_ms for each in self.platform.scenario.faults if each.at_ms < self._now_ms]
        explained = self._now_ms - max(begun, default=-EXPLAINED_MS) < EXPLAINED_MS
        rival = self.platform.actors.get(RIVAL)
        if isinstance(rival, RivalWorkerActor):
            explained = explained or rival.took_over_within(EXPLAINED_MS)
        self.workload.repair(server.herder, self.target, self.note, explained=explained)

    def _await_running(self, server: ConnectServer) -> None:
        """Wait until all connectors run; a restart of the worker would start them anyway."""
        for _ in range(RESTARTED_MS // 1_000):
            self._wait(server, 1_000)
            self._attempt(server, lambda: self._repair(server))
            stopped = self._attempt(server, lambda: self._not_running(server))
            if stopped == []:
                return
        raise Violation(
            "a restarted connector runs", "; ".join(stopped or ["the worker does not respond"])
        )

    def _not_running(self, server: ConnectServer) -> list[str]:
        return self.workload.not_running(server.herder)

    def _finish(self, server: ConnectServer, reading: TopicReading) -> None:
        self._repair(server)
        self.workload.check_known(server.herder)
        missing = self.workload.missing(server.herder, reading)
        if not missing:
            self.note("has", dict(self.workload.external.puts), "puts")
        self._unfinished = missing

    # --- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Check without waiting: no simulated thread calls this."""
        self._check_inactive()
        self._check_commits()
        self._check_single_worker()

    def _quiet_since_ms(self) -> int | None:
        """The end of the last fault and of the rival worker; None while there is one."""
        now_ms = self._now_ms
        ends = [each.end_ms for each in self.platform.scenario.faults if each.at_ms <= now_ms]
        rival = self.platform.actors.get(RIVAL)
        if isinstance(rival, RivalWorkerActor):
            ends.append(now_ms if rival.running is not None else rival.last_ms)
        last_ms = max(ends, default=0)
        return last_ms if last_ms < now_ms else None

    def _check_inactive(self) -> None:
        """Check that paused, stopped and deleted connectors do nothing."""
        quiet_ms = self._quiet_since_ms()
        if quiet_ms is None:
            return
        for name, since_ms in self.workload.inactive_ms.items():
            touched_ms = self.workload.external.touched_ms.get(name, 0)
            if touched_ms > max(since_ms, quiet_ms) + INACTIVE_MS:
                known = self.workload.known[name]
                raise Violation(
                    "a paused or deleted connector does nothing",
                    f"{name} is {'deleted' if known is None else known.state.value} since "
                    f"{since_ms} ms, and did something at {touched_ms} ms",
                )

    def _check_commits(self) -> None:
        """Check that no offset is committed before the sink has flushed."""
        broker = self.platform.broker.running
        if broker is None:
            return
        offsets = broker.state.groups._store  # noqa: SLF001 - a request would have to wait
        for tp in partitions():
            committed = offsets.get(f"connect-{SINK}", tp)
            flushed = self.workload.external.offered.get((SINK, tp), 0)
            if committed is not None and committed.offset > flushed:
                raise Violation(
                    "a sink commits only flushed offsets",
                    f"{tp}: {committed.offset} is committed, and {flushed} was flushed",
                )

    def _check_single_worker(self) -> None:
        """Check that two workers do not run the connectors at the same time without a fault."""
        rival = self.platform.actors.get(RIVAL)
        if not isinstance(rival, RivalWorkerActor) or not (self.owns and rival.owns):
            self._together_ms = None
            return
        now_ms = self._now_ms
        if self._together_ms is None or not self.has_no_recent_fault(now_ms):
            self._together_ms = now_ms
        if now_ms - self._together_ms > TOGETHER_MS // 3:
            raise Violation(
                "one worker runs the connectors of a group",
                f"two run since {self._together_ms} ms",
            )

    def has_no_recent_fault(self, now_ms: int) -> bool:
        """Whether there is no current or recent fault."""
        return not any(
            each.at_ms <= now_ms <= each.end_ms + TOGETHER_MS
            for each in self.platform.scenario.faults
        )


class RivalWorkerActor(Actor):
    """A worker with the same group.id, started by mistake: it must be refused.

    If the first worker is down, this one runs the connectors until it is stopped.
    """

    works_until_checked = True

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self.running: ConnectServer | None = None
        self.last_ms = 0  # when it last ran
        self._attempts = self.random.choice((1, 3))
        self._has_same_host = self.random.random() < 0.2  # the host name of the first worker
        self._is_starting = False

    @property
    def owns(self) -> bool:
        """Whether its worker runs the connectors."""
        return self.is_alive and owns(self.running)

    def took_over_within(self, duration_ms: int) -> bool:
        """Whether it may have replaced the first worker as the same member: tasks are fenced."""
        now_ms = self.platform.simulation.scheduler.now_us // 1_000
        ended_ms = now_ms if self._is_starting else self.last_ms
        return self._has_same_host and ended_ms > max(0, now_ms - duration_ms)

    def run(self) -> None:
        """Try to run, a few times."""
        assert self.machine is not None
        self.running, self._is_starting = None, False
        first = self.platform.actors.get("connect")
        machine = replace(self.machine, host_name="connect", process_id=1)
        while self._attempts and isinstance(first, ConnectWorkerActor):
            if not self.sleep(1_000, 40_000):
                return
            self._attempts -= 1
            try:
                used = machine if self._has_same_host else self.machine
                self._is_starting = True
                with worker(self, first.workload, used) as server:
                    self.running = server
                    self.note("runs")
                    self._run(server)
            except MillstreamError as error:
                self.note("is refused:", type(error).__name__, error.message[:200])
            finally:
                self.running, self._is_starting = None, False
                self.last_ms = self.platform.simulation.scheduler.now_us // 1_000
        while self.sleep(60_000, 60_000):
            pass

    def _run(self, server: ConnectServer) -> None:
        end_us = self.platform.simulation.scheduler.now_us + self.random.randrange(20_000_000)
        while server.failure is None and self.platform.simulation.scheduler.now_us < end_us:
            if not self.sleep(1_000, 1_000):
                return


class Stopped(Exception):
    """The worker must stop."""


def owns(server: ConnectServer | None) -> bool:
    """Whether a worker runs the connectors."""
    return server is not None and server.failure is None


def worker(actor: Actor, workload: ConnectWorkload, machine: Machine) -> ConnectServer:
    """Create a worker of the group."""
    config = WorkerConfig.parse(workload.worker_settings)
    plugins = Plugins(entries=(), modules=[PLUGINS])
    return ConnectServer(actor.target, config, plugins=plugins, machine=machine)
