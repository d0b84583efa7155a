"""StreamsApp: runs a topology on a broker, in threads of this process or in several processes."""

from collections.abc import Callable
from pathlib import Path
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

    `broker` is an embedded Broker, "host:port,host:port", or a SharedRuntime for several
    applications. Settings are Kafka Streams' with underscores; see StreamsConfig.

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
        """`fault` is called at named points of a commit, for tests.

        `machine` provides time, random numbers, files and databases; `clock` is for tests that
        replace only the clock.
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
        """The broker's address for child processes; an embedded broker gets a server."""
        if isinstance(self._broker, str):
            return self._broker
        if self._server is None:
            if not isinstance(self._broker, embedded.Broker):
                raise StreamsError(
                    f"processes cannot reach a {type(self._broker).__name__}",
                    hint='pass the address of a broker, "host:port", or an embedded Broker',
                )
            served = embedded.Server(self._broker, listeners=("PLAINTEXT://127.0.0.1:0",))
            self._server = served.start()
        return self._server.bootstrap

    @property
    def _runtime(self) -> Instance | Processes:
        return self._processes or self._instance

    def _local_instance(self) -> Instance:
        """The instance of this process; raises if the application runs in child processes."""
        if self._processes is not None:
            raise StreamsError(
                "the application runs in processes: its runners and stores are in child processes",
                hint="use threads, or several instances with a QueryServer each",
            )
        return self._instance

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Check schemas, create internal topics, load global stores, start the runners."""
        if self._states.state is not AppState.CREATED:
            raise StreamsError(
                f"the application cannot start: it is {self._states.state.value}",
                hint="an application starts only once; create a new StreamsApp to run it again",
            )
        check_schemas(self.topology)
        self._runtime.start()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, *, commit: bool = True) -> bool:
        """Commit, leave the group and stop; returns False on timeout.

        `commit=False` is for an application that will be deleted: it discards uncommitted changes
        and does not wait for topics that no longer exist. Child processes commit nevertheless.
        """
        done = self._runtime.close(timeout_ms, commit=commit)
        server, self._server = self._server, None
        if server is not None:
            server.close()
        return done

    def wait(self, timeout_ms: int | None = None) -> bool:
        """Wait until the application has ended; raises the error that ended it."""
        ended = self._states.wait_for(ENDED, timeout_ms)
        if ended and self._states.state is AppState.ERROR and self.error is not None:
            raise self.error
        return ended

    def wait_for(self, *states: AppState, timeout_ms: int | None = None) -> bool:
        """Wait for one of these states; False on timeout."""
        return self._states.wait_for(frozenset(states), timeout_ms)

    def pause(self) -> None:
        """Pause processing until `resume`; the instance stays in its group."""
        self._runtime.pause()

    def resume(self) -> None:
        """Resume processing."""
        self._runtime.resume()

    @property
    def paused(self) -> bool:
        """Whether processing is paused."""
        return self._runtime.paused

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

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- state and runners --------------------------------------------------------------------

    @property
    def state(self) -> AppState:
        """The state of the application."""
        return self._states.state

    @property
    def error(self) -> BaseException | None:
        """The error that ended the application, if any."""
        return self._runtime.error

    def on_state_change(self, listener: StateListener) -> None:
        """Call a function of (new state, old state) at each change."""
        self._states.listen(listener)

    def on_uncaught_exception(self, handler: FailureHandler) -> None:
        """Set a function that decides what to do after an uncaught error of a runner."""
        self._runtime.on_failure = handler

    def add_runner(self) -> str:
        """Start one more runner; returns its name."""
        instance = self._local_instance()
        instance.check_running()
        return instance.add_runner()

    @property
    def child_pids(self) -> list[int]:
        """Process ids of the children, if the application runs in processes."""
        return [] if self._processes is None else self._processes.pids()

    def remove_runner(self) -> str | None:
        """Stop a runner; returns its name, or None."""
        return self._local_instance().remove_runner()

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

    # Any: only the caller knows the kind of the store.
    def store(
        self,
        name: str,
        *,
        partition: int | None = None,
        stale: bool = False,
        timestamped: bool = False,
    ) -> Any:
        """A read-only view of a store, over all local partitions, or one.

        The store of a table returns plain values, or (value, timestamp_ms) with `timestamped`. With
        `stale`, it also reads standbys and stores that are being restored.
        """
        return self._local_instance().store(
            name, partition=partition, stale=stale, timestamped=timestamped
        )

    def lags(self) -> list[StoreLag]:
        """How far the local copies of stores are behind their changelogs."""
        return store_lags(self._local_instance())

    def metadata(self, store: str | None = None) -> list[HostMetadata]:
        """The hosts of all stores, or of one, and the partitions that each host has."""
        return hosts_of(self._local_instance().check_running(), store)

    def metadata_for_key(self, store: str, key: object) -> tuple[HostMetadata | None, int]:
        """The instance that has a key of a store, and the key's partition."""
        return key_host(self._local_instance().check_running(), store, key)

    @property
    def state_directory(self) -> Path:
        """The directory of local state."""
        return self._instance.directories.folder


def check_schemas(topology: Topology) -> None:
    """Check the schemas of output topics with the schema registry of their serdes.

    A schema that the registry refuses is then reported at the start, not at the first record.
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
