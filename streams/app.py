"""StreamsApp: runs a topology on a broker, in threads of this process or in several processes."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import broker as embedded  # its broker is imported when it is used: most applications are remote
from broker.client.opening import Target
from broker.client.shared_clients import SharedClients
from broker.clock import Clock
from broker.machine import Machine, on_clock
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.runtime.app_state import ENDED, AppState, StateListener, StateMachine
from streams.runtime.instance import CLOSE_TIMEOUT_MS, FailureHandler, Instance
from streams.runtime.metadata import HostMetadata, StoreLag, hosts_of, key_host, store_lags
from streams.runtime.metrics import metrics_text
from streams.runtime.processes import Processes
from streams.runtime.runner import TaskRunner
from streams.runtime.runner_state import OnFailure
from streams.runtime.shared_runtime import SharedRuntime
from streams.topology import SinkNode, Topology

__all__ = ["AppState", "OnFailure", "SharedRuntime", "StreamsApp"]


class StreamsApp:
    """An application: a topology, a broker to run it on, and settings.

    `broker` is an embedded Broker or "host:port,host:port", or what several applications share: a
    SharedRuntime. Settings are Kafka Streams' with underscores; see StreamsConfig.

    >>> with StreamsApp(topology, application_id="shop", broker="localhost:9092") as app:
    ...     app.wait()
    """

    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str,
        broker: Target | SharedRuntime,
        machine: Machine | None = None,
        clock: Clock | None = None,
        fault: Callable[[str], None] = lambda point: None,
        **settings: object,
    ) -> None:
        """Nothing runs before `start`. `fault` is called at named points of a commit, for tests.

        `machine` is where time, randomness, files and databases come from; `clock` is for tests
        that need only another clock.
        """
        self.config = StreamsConfig.of(application_id=application_id, **settings)
        self.topology = topology
        shared = broker if isinstance(broker, SharedRuntime) else None
        target = broker.clients if isinstance(broker, SharedRuntime) else broker
        self._broker = target.target if isinstance(target, SharedClients) else target
        self._server: embedded.Server | None = None
        machine = machine or on_clock(clock)
        self._states = StateMachine(machine.clock)
        self._instance = Instance(
            topology,
            self.config,
            target,
            machine=machine,
            states=self._states,
            fault=fault,
            runner_threads=None if shared is None else shared.runner_threads,
        )
        self._processes: Processes | None = None
        if self.config.processes:
            self._processes = Processes(
                topology,
                self.config,
                states=self._states,
                bootstrap=self._bootstrap,
                fault=fault,
            )

    def _bootstrap(self) -> str:
        """Where child processes reach the broker; an embedded one is served for them."""
        if isinstance(self._broker, str):
            return self._broker
        if self._server is None:
            if not isinstance(self._broker, embedded.Broker):
                raise StreamsError(
                    f"processes cannot reach a {type(self._broker).__name__}",
                    hint='give the address of a broker, "host:port", or an embedded Broker',
                )
            served = embedded.Server(self._broker, listeners=("PLAINTEXT://127.0.0.1:0",))
            self._server = served.start()
        return self._server.bootstrap

    @property
    def _runs(self) -> Instance | Processes:
        return self._processes or self._instance

    def _here(self) -> Instance:
        """The instance of this process, if it is the one that runs."""
        if self._processes is not None:
            raise StreamsError(
                "the application runs in processes: its runners and stores are in child processes",
                hint="use threads, or several instances with a QueryServer each",
            )
        return self._instance

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Check schemas and topics, make internal ones, load global stores, start the runners."""
        if self._states.state is not AppState.CREATED:
            raise StreamsError(
                f"the application cannot start: it is {self._states.state.value}",
                hint="an application starts only once; create a new StreamsApp to run it again",
            )
        check_schemas(self.topology)
        self._runs.start()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, *, commit: bool = True) -> bool:
        """Commit, leave the group and stop; False when the time was up first.

        With `commit=False` an application that will be deleted drops what it has not committed, and
        does not wait for topics that exist no longer. Child processes commit nevertheless.
        """
        done = self._runs.close(timeout_ms, commit=commit)
        server, self._server = self._server, None
        if server is not None:
            server.close()
        return done

    def wait(self, timeout_ms: int | None = None) -> bool:
        """Wait until the application has ended; an error that ended it is raised."""
        ended = self._states.wait_for(ENDED, timeout_ms)
        if ended and self._states.state is AppState.ERROR and self.error is not None:
            raise self.error
        return ended

    def wait_for(self, *states: AppState, timeout_ms: int | None = None) -> bool:
        """Wait for one of some states; False when the time was up first."""
        return self._states.wait_for(frozenset(states), timeout_ms)

    def pause(self) -> None:
        """Process nothing until resumed; the instance stays in its group."""
        self._runs.pause()

    def resume(self) -> None:
        """Process again."""
        self._runs.resume()

    @property
    def paused(self) -> bool:
        """Whether processing rests."""
        return self._runs.paused

    def clean_up(self) -> None:
        """Delete the local state; only while the application does not run."""
        if self._states.state not in {AppState.CREATED, *ENDED}:
            raise StreamsError(
                f"local state cannot be deleted: the application is {self._states.state.value}",
                hint="close it first",
            )
        self._instance.directories.remove_all()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- watching and steering ----------------------------------------------------------------

    @property
    def state(self) -> AppState:
        """Where the application stands."""
        return self._states.state

    @property
    def error(self) -> BaseException | None:
        """What ended the application, if it was an error."""
        return self._runs.error

    def on_state_change(self, listener: StateListener) -> None:
        """Call a function of (new state, old state) at each change."""
        self._states.listen(listener)

    def on_uncaught_exception(self, handler: FailureHandler) -> None:
        """Let a function of the error decide what follows when a runner dies of it."""
        self._runs.on_failure = handler

    def add_runner(self) -> str:
        """Start one more runner; its name."""
        instance = self._here()
        instance.check_running()
        return instance.add_runner()

    @property
    def child_pids(self) -> list[int]:
        """Process ids of the children, when the application runs in processes."""
        return [] if self._processes is None else self._processes.pids()

    def remove_runner(self) -> str | None:
        """Stop a runner; its name, None when there is none."""
        return self._here().remove_runner()

    @property
    def runners(self) -> tuple[TaskRunner, ...]:
        """The runners of this process."""
        return tuple(self._instance.runners)

    def metrics_text(self) -> str:
        """All metrics in Prometheus' text format."""
        if self._processes is not None:
            return self._processes.metrics_text()
        return metrics_text(self._instance, self._states.state)

    # --- stores -------------------------------------------------------------------------------

    # Any: the caller knows the kind of a store by its name.
    def store(
        self,
        name: str,
        *,
        partition: int | None = None,
        stale: bool = False,
        timestamped: bool = False,
    ) -> Any:
        """Reads of a store, over all partitions that are here, or of one.

        A table's store gives plain values, or (value, timestamp_ms) if `timestamped`. `stale` also
        reads standbys and stores that are being restored.
        """
        return self._here().store(name, partition=partition, stale=stale, timestamped=timestamped)

    def lags(self) -> list[StoreLag]:
        """How far the local copies of stores are behind their changelogs."""
        return store_lags(self._here())

    def metadata(self, store: str | None = None) -> list[HostMetadata]:
        """Which instance has which partitions of which store; of all stores, or of one."""
        return hosts_of(self._here().check_running(), store)

    def metadata_for_key(self, store: str, key: object) -> tuple[HostMetadata | None, int]:
        """The instance that has a key of a store, and the key's partition."""
        return key_host(self._here().check_running(), store, key)

    @property
    def state_directory(self) -> Path:
        """Where local state lies."""
        return self._instance.directories.folder


def check_schemas(topology: Topology) -> None:
    """Let serdes with a schema registry say that the schemas of output topics are as they should.

    A schema that a registry refuses is found here, not by the first record.
    """
    for part in topology.sub_topologies:
        for node in part.nodes:
            if not isinstance(node, SinkNode) or not isinstance(node.topic, str):
                continue
            if node.topic in topology.repartition_topics:
                continue
            for serde in (node.key_serde, node.value_serde):
                check = getattr(serde, "check", None)
                if callable(check):
                    check(node.topic)
