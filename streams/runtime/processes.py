"""Processes: runs an application in several processes of this machine.

The parent forks the processes before any thread of the application starts, and then only monitors
them: a child that dies is replaced; a child that fails with an error ends the application. Each
child has an Instance, which is a member of the group over TCP, and a state directory of its own.
The parent and a child communicate over a pair of sockets, with one JSON object per line. A child
closes when its parent dies, so no signals need to be forwarded.

    child -> parent   {"state": "RUNNING"}   {"error": "..."}   {"metrics": "..."}
    parent -> child   {"do": "stop" | "pause" | "resume" | "metrics"}
"""

import json
import logging
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import IO

from broker import concurrency
from broker.machine import Machine
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.runtime.app_state import ENDED, AppState, StateMachine
from streams.runtime.instance import (
    CLOSE_TIMEOUT_MS,
    FailureHandler,
    Fault,
    Instance,
    stop_this_instance,
)
from streams.runtime.metrics import Page, metrics_text
from streams.state.rocks import has_threads
from streams.topology import Topology

logger = logging.getLogger(__name__)

DEATHS_MAX = 10  # of one child, without reaching RUNNING in between
METRICS_TIMEOUT_S = 5.0
KILLED_TIMEOUT_S = 10.0


@dataclass(slots=True, eq=False)
class _Child:
    """The parent's view of a child."""

    number: int
    pid: int
    channel: socket.socket
    state: AppState = AppState.CREATED
    error: str = ""
    deaths: int = 0
    metrics: str = ""
    reported: concurrency.Condition = field(default_factory=lambda: concurrency.Condition())


class Processes:
    """Starts and monitors the children; any thread may call it."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        *,
        states: StateMachine,
        bootstrap: Callable[[], str],
        fault: Fault,
    ) -> None:
        """`bootstrap` returns the broker's address for children."""
        self._topology = topology
        self._config = config
        self._states = states
        self._bootstrap = bootstrap
        self._fault = fault
        self._lock = concurrency.RLock()
        self._children: dict[int, _Child] = {}
        self._watchers: list[concurrency.Thread] = []
        self._stopping = False
        self.paused = False
        self.on_failure: FailureHandler = stop_this_instance
        self.error: BaseException | None = None

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Fork all children."""
        _check_fork()
        self._states.enter(AppState.REBALANCING)
        for number in range(self._config.processes):
            self._children[number] = self._fork(number)
        for number in self._children:
            watcher = concurrency.Thread(
                target=self._watch,
                args=(number,),
                name=f"{self._config.application_id}-child-{number}",
                daemon=True,
            )
            self._watchers.append(watcher)
            watcher.start()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, *, commit: bool = True) -> bool:
        """Stop all children, which commit first; those that take too long are killed."""
        del commit  # children commit; one that cannot commit in time is killed
        if not self._states.enter(AppState.PENDING_SHUTDOWN):
            return self._states.wait_for(ENDED, timeout_ms)
        done = self._stop(timeout_ms)
        self._states.enter(AppState.NOT_RUNNING)
        return done

    def _stop(self, timeout_ms: int) -> bool:
        with self._lock:
            self._stopping = True
        self.send_to_all("stop")
        done = self._join_watchers(timeout_ms / 1000)
        if not done:
            with self._lock:
                for child in self._children.values():
                    _kill(child.pid)
            self._join_watchers(KILLED_TIMEOUT_S)  # so that none is left as a zombie
        return done

    def _join_watchers(self, timeout_s: float) -> bool:
        others = [each for each in self._watchers if each is not concurrency.current_thread()]
        for watcher in others:
            watcher.join(timeout_s)
        return not any(watcher.is_alive() for watcher in others)

    def pause(self) -> None:
        """Pause all children."""
        self.paused = True
        self.send_to_all("pause")

    def resume(self) -> None:
        """Resume all children."""
        self.paused = False
        self.send_to_all("resume")

    def send_to_all(self, command: str) -> None:
        """Send a command to all children."""
        line = json.dumps({"do": command}).encode() + b"\n"
        with self._lock:
            channels = [child.channel for child in self._children.values()]
        for channel in channels:
            try:
                channel.sendall(line)
            except OSError:
                continue  # the child has died; its watcher notices that

    def pids(self) -> list[int]:
        """Process ids of the children."""
        with self._lock:
            return [child.pid for child in self._children.values()]

    def metrics_text(self) -> str:
        """Metrics of all children, with the label `process` for the child."""
        page = Page()
        with self._lock:
            children = list(self._children.values())
        for child in children:
            with child.reported:
                child.metrics = ""
        self.send_to_all("metrics")
        for child in children:
            with child.reported:
                child.reported.wait_for(lambda child=child: child.metrics, METRICS_TIMEOUT_S)  # type: ignore[misc]
                page.add_page(child.metrics, process=str(child.number))
        return page.text()

    # --- children -----------------------------------------------------------------------------

    def _fork(self, number: int) -> _Child:
        _check_fork()
        ours, theirs = socket.socketpair()
        bootstrap = self._bootstrap()
        with self._lock:
            inherited = [child.channel for child in self._children.values()]
            pid = os.fork()
        if pid == 0:
            for channel in (*inherited, ours):
                channel.close()  # otherwise a sibling would not notice the death of the parent
            self._run_child(number, bootstrap, theirs)
        theirs.close()
        return _Child(number, pid, ours)

    def _run_child(self, number: int, bootstrap: str, channel: socket.socket) -> None:
        code = 1
        try:
            child = _ChildProcess(self._topology, self._config, channel, self._fault)
            code = child.run(number, bootstrap, self.on_failure)
        except BaseException:
            logger.exception("process %d of %s failed", number, self._config.application_id)
        finally:
            # No exit handlers: they belong to the parent.
            os._exit(code)

    def _watch(self, number: int) -> None:
        """Read the messages of a child until it ends; replace it if it has died."""
        while True:
            with self._lock:
                child = self._children[number]
            with child.channel.makefile("r") as lines:
                self._read_messages(child, lines)
            child.channel.close()
            _, status = os.waitpid(child.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            if self._stopping:
                return
            if child.error or child.deaths >= DEATHS_MAX:
                self._fail(StreamsError(child.error or f"process {number} exited with code {code}"))
                return
            logger.warning("process %d exited with code %d and is replaced", number, code)
            with self._lock:
                if self._stopping:
                    return
                try:
                    self._children[number] = self._fork(number)
                except StreamsError as error:
                    self._fail(error)
                    return
                self._children[number].deaths = child.deaths + 1
            self._states.enter(AppState.REBALANCING)

    def _read_messages(self, child: _Child, lines: IO[str]) -> None:
        try:
            for line in lines:
                self._handle_message(child, json.loads(line))
        except (OSError, ValueError):
            return  # the child died in the middle of a line

    def _handle_message(self, child: _Child, message: dict[str, str]) -> None:
        if "metrics" in message:
            with child.reported:
                child.metrics = message["metrics"]
                child.reported.notify_all()
        if "error" in message:
            child.error = message["error"]
        if "state" in message:
            child.state = AppState[message["state"]]
            if child.state is AppState.RUNNING:
                child.deaths = 0
            # Children may report at the same time: the state is computed under the lock.
            self._states.choose(self._state_of_children)

    def _state_of_children(self) -> AppState | None:
        states = [each.state for each in tuple(self._children.values())]
        if all(each is AppState.RUNNING for each in states):
            return AppState.RUNNING
        return AppState.REBALANCING if AppState.REBALANCING in states else None

    def _fail(self, error: BaseException) -> None:
        self.error = error
        if not self._states.enter(AppState.PENDING_ERROR):
            return

        def stop() -> None:
            self._stop(CLOSE_TIMEOUT_MS)
            self._states.enter(AppState.ERROR)

        concurrency.Thread(target=stop, name=f"{self._config.application_id}-stop").start()


def _check_fork() -> None:
    if has_threads():
        raise StreamsError(
            "processes cannot be forked: this process has opened stores in RocksDB itself, whose "
            "threads do not survive a fork",
            hint="run applications with processes=N in a process without other applications",
        )


class _ChildProcess:
    """Runs an instance in a child, and executes the commands of the parent."""

    def __init__(
        self, topology: Topology, config: StreamsConfig, channel: socket.socket, fault: Fault
    ) -> None:
        self._topology = topology
        self._config = replace(config, processes=0)
        self._channel = channel
        self._fault = fault
        self._lock = concurrency.Lock()

    def run(self, number: int, bootstrap: str, on_failure: FailureHandler) -> int:
        """Run an instance until it is stopped or its parent dies; returns the exit code."""
        # Ctrl-C interrupts the children, too; but the parent decides when they stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: self._channel.shutdown(socket.SHUT_RD))
        machine = Machine()
        states = StateMachine(machine.clock)
        instance = Instance(
            self._topology,
            self._config,
            bootstrap,
            machine=machine,
            states=states,
            child=number,
            fault=self._fault,
        )
        instance.on_failure = on_failure
        states.listen(lambda new, old: self._state_changed(instance, new))
        instance.start()
        with self._channel.makefile("r") as lines:
            for line in lines:
                if self._execute(instance, states, json.loads(line)["do"]):
                    break
        instance.close()
        return 0 if states.state is AppState.NOT_RUNNING else 1

    def _execute(self, instance: Instance, states: StateMachine, command: str) -> bool:
        """Execute a command of the parent; returns whether to stop."""
        match command:
            case "pause":
                instance.pause()
            case "resume":
                instance.resume()
            case "metrics":
                self._send({"metrics": metrics_text(instance, states.state)})
        return command == "stop"

    def _state_changed(self, instance: Instance, state: AppState) -> None:
        self._send({"state": state.name})
        if state is AppState.ERROR:
            self._send({"error": str(instance.error)})
            self._channel.shutdown(socket.SHUT_RD)

    def _send(self, message: dict[str, str]) -> None:
        with self._lock:
            try:
                self._channel.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                return  # the parent has died; the reading loop notices that and stops


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
