"""SqlServerActor: a SQL server against the remote broker, with other settings at each start."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from typing import TYPE_CHECKING

from broker.client.opening import admin
from broker.client.record_consumer import Consumer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from broker.registry.registry import Registry
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from millstream.simulation.actors.actor import Actor
from millstream.simulation.observations import Violation
from millstream.simulation.scenario import Scenario
from millstream.simulation.workloads.sql import FRAGILE, SqlWorkload
from millstream.simulation.workloads.statements import ScriptServer
from millstream.simulation.workloads.topic_reading import TopicReading
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.queries import AppRuntime, FailureType, QueryState

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

SETTINGS: Mapping[str, object] = {
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.streams.processing.guarantee": "exactly_once_v2",
    "ksql.query.retry.backoff.initial.ms": 1_000,
    "ksql.query.retry.backoff.max.ms": 10_000,
}
# Settings of successive starts: they must not change running queries.
OTHER_SETTINGS: Sequence[Mapping[str, object]] = (
    {"ksql.persistence.default.format.value": "JSON", "ksql.streams.commit.interval.ms": 1_000},
    {
        "ksql.output.topic.name.prefix": "other_",
        "ksql.persistence.default.format.value": "DELIMITED",
        "ksql.streams.commit.interval.ms": 500,
    },
    {
        "ksql.output.topic.name.prefix": "third_",
        "ksql.persistence.default.format.value": "JSON",
        "ksql.streams.commit.interval.ms": 2_000,
    },
)
DATA = "/data"
SCHEMAS_SHARE = 0.3  # of the single servers
FOLLOWING = 0.5  # the share of servers that follow commands of others
SOON_CALM_MS = 1_000  # after the last fault the script continues faster
CALM_MS = 90_000  # how long after the last fault operations may be slow
PROMPT_MS = 8_000  # for the results of a row, without faults
PROBES = 3
EXPLAINED_MS = 400_000  # how long after a fault a query may fail because of it
SECOND = "second sql"
PAUSED_MS = 5_000  # how long a paused query may still fetch


class SqlServerActor(Actor):
    """Runs a script of statements, and checks the results; see SqlWorkload."""

    works_until_checked = True

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self._has_schemas = has_schemas(platform.scenario)
        self.workload = SqlWorkload(self.random, has_schemas=self._has_schemas)
        self.engine: Engine | None = None
        self._first = self.random.randrange(len(OTHER_SETTINGS))
        self._follows = self.random.random() < FOLLOWING  # as expensive as a query
        self._is_one_of_two = SECOND in platform.scenario.actors
        self.others_have_same_state: Callable[[], bool] = lambda: (
            True
        )  # whether the other server has the same state
        self.other_engine: Callable[[], Engine | None] = lambda: None
        self._unfinished = "its script"
        self._has_started_calmly = False
        # Positions of paused queries: since when, and the offset.
        self._positions: dict[str, dict[tuple[int, TopicPartition], tuple[int, int]]] = {}

    def unfinished_work(self) -> str:
        return self._unfinished

    @property
    def has_failed_query(self) -> bool:
        """Whether a query waits to be restarted; called outside of its threads."""
        if self.engine is None or not self.is_alive:
            return False
        running = list(self.engine.commands.running.values())
        return any(each.runtime.state is QueryState.ERROR for each in running)

    def run(self) -> None:
        """Run engines until stopped; start the next one after an error."""
        assert self.machine is not None
        self.engine = None
        while not self.must_stop:
            settings = OTHER_SETTINGS[(self.starts + self._first) % len(OTHER_SETTINGS)]
            registry = Registry(self.target) if self._has_schemas else None
            engine = Engine(
                self.target,
                data_directory=DATA,
                registry=registry,
                config=SqlConfig({**SETTINGS, **settings}),
                machine=self.machine,
                follow=self._follows or self._is_one_of_two,
            )
            try:
                with registry or nullcontext(), engine, TopicReading(self.target) as reading:
                    if registry is not None:  # an added column is not compatible
                        registry.set_level(None, CompatibilityLevel.NONE)
                    self.engine = engine
                    self.note("runs")
                    self._serve(
                        ScriptServer(
                            engine,
                            reading,
                            self.note,
                            self._wait,
                            self.on_acknowledged,
                            self.other_engine,
                        )
                    )
            except MillstreamError as error:
                self.note("starts again after", type(error).__name__, error.message[:200])
                self.sleep(500, 2_000)
            except Stopped:
                pass
            except Violation:
                raise
            except Exception as error:
                self.platform.simulation.history.detail(_trace(error))
                raise Violation("no statement fails unexpectedly", repr(error)) from error
            finally:
                self.engine = None

    def _wait(self, milliseconds: int) -> None:
        if not self.sleep(milliseconds, milliseconds):
            raise Stopped

    def _serve(self, server: ScriptServer) -> None:
        script = self.workload.script
        self._check_topics(server.engine)
        while not script.is_over:
            calm = self.platform.is_calm(SOON_CALM_MS)
            self._wait(self.random.randrange(200, 2_500 if calm else 12_000))
            while not self.others_have_same_state():
                self._wait(1_000)
            self._try(server)
        while not self.platform.is_calm(CALM_MS):
            self._wait(5_000)
        if not self._has_started_calmly:
            self._has_started_calmly = True
            return  # the next engine deletes what this one could not delete
        while self._unfinished:
            self._finish(server)
        while self.sleep(5_000, 5_000):
            pass

    def _try(self, server: ScriptServer) -> None:
        try:
            self.workload.script.run_next(server)
        except MillstreamError as error:
            step = self.workload.script.steps[self.workload.script.next]
            self.note("could not do", step.name, type(error).__name__, error.message[:300])

    # --- invariants -----------------------------------------------------------------------------

    def _check_topics(self, engine: Engine) -> None:
        """Check that topics and formats have not changed with the settings of this start."""
        for name, created in self.workload.created.items():
            source = engine.state.catalog.sources.get(name)
            if source is not None and (source.topic, source.value_format.name) != (
                created.topic,
                created.value_format,
            ):
                raise Violation(
                    "a restart changes no query",
                    f"{name} was in {created.topic} as {created.value_format}, and is in "
                    f"{source.topic} as {source.value_format.name}",
                )

    def _finish(self, server: ScriptServer) -> None:
        """Check without faults that all queries run, and that results are complete and prompt."""
        try:
            self._complete(server)
            for _ in range(PROBES):
                self._unfinished = "prompt results"
                for step in self.workload.insert_at_once():
                    step.run(server)
                differences = self._differences_within(PROMPT_MS, server)
                if differences:
                    raise Violation("no work waits while all threads are idle", _shown(differences))
            if not self._is_one_of_two:  # otherwise each has a part of a table
                self.workload.check_pull(server)
            self._check_nothing_left(server)
            if server.engine.registry is not None:
                self.workload.check_schemas(server.reading, server.engine.registry)
            with TopicReading(self.target) as again:
                self._unfinished = _shown(self.workload.differences(again))
        except MillstreamError as error:
            self.note("could not check", type(error).__name__, error.message[:300])
            self._wait(1_000)

    def _differences_within(self, limit_ms: int, server: ScriptServer) -> Mapping[str, str]:
        """Wait until there are no differences; returns those that remain after the limit."""
        waited_ms, wait_ms = 0, 1_000
        while True:
            wait_ms = min(wait_ms, limit_ms - waited_ms)
            self._wait(wait_ms)
            waited_ms += wait_ms
            differences = self.workload.differences(server.reading)
            if not differences or waited_ms >= limit_ms:
                return differences
            wait_ms *= 2

    def _complete(self, server: ScriptServer) -> None:
        while True:
            states = {
                name: each.runtime.state for name, each in server.engine.commands.running.items()
            }
            bad = {name: state.value for name, state in states.items() if state is QueryState.ERROR}
            missing = set(server.engine.state.queries) - set(states)
            self._unfinished = _shown(self.workload.differences(server.reading))
            if bad or missing:
                self._unfinished += f" queries {bad} do not run, {missing} were not launched"
            if not self._unfinished:
                return
            self._wait(1_000)

    def _check_nothing_left(self, server: ScriptServer) -> None:
        """Check that dropped queries have left no state, internal topic or group."""
        engine = server.engine
        known = {engine.commands.launcher.application_id(each) for each in engine.state.queries}
        with admin(engine.commands.launcher.clients) as cluster:
            topics = cluster.list_topics()
            groups = [each.group_id for each in cluster.list_groups()]
        folders = engine.machine.files.list_folder(f"{DATA}/state")
        left = [
            each
            for each in (*topics, *groups, *folders)
            if "_query_" in each and not any(_is_of(each, query) for query in known)
        ]
        if left:
            raise Violation("a dropped query leaves nothing behind", str(sorted(left)))

    def check_invariants(self) -> None:
        """Check without waiting: no simulated thread calls this."""
        if self.engine is None or not self.is_alive:
            return
        check_failures(self.platform, self.engine)
        for query_id, query in list(self.engine.commands.running.items()):
            if isinstance(query.runtime, AppRuntime):
                self._check_paused(query_id, query.runtime)

    def _check_paused(self, query_id: str, runtime: AppRuntime) -> None:
        """Check that a paused query does not fetch."""
        app = runtime._app  # noqa: SLF001 - read outside of all threads
        if app is None or runtime.state is not QueryState.PAUSED:
            self._positions.pop(query_id, None)
            return
        now_ms = self.platform.simulation.scheduler.now_us // 1_000
        for runner in app.runners:
            consumer = runner.consumer
            if consumer is None:
                continue
            for tp, position in positions(consumer).items():
                known, key = self._positions.setdefault(query_id, {}), (id(consumer), tp)
                since_ms, before = known.setdefault(key, (now_ms, position))
                if now_ms - since_ms < PAUSED_MS or position < before:
                    known[key] = (since_ms, position)
                elif position > before:
                    raise Violation(
                        "a paused query does nothing",
                        f"{query_id} has fetched {tp} from {before} to {position}",
                    )


def has_schemas(scenario: Scenario) -> bool:
    """Whether the server has a registry in its process, and its rows have schemas.

    Such a registry must be the only writer of the schemas topic.
    """
    share = Random(f"{scenario.seed}/schemas").random()
    return share < SCHEMAS_SHARE and not {SECOND, "registry"} & set(scenario.actors)


def positions(consumer: Consumer) -> dict[TopicPartition, int]:
    """The fetch positions of a consumer."""
    # Without the lock, because no thread runs.
    states = consumer._positions._states  # noqa: SLF001
    return {tp: each.fetch_offset for tp, each in states.items()}


def check_failures(platform: "SimulatedPlatform", engine: Engine) -> None:
    """Check that queries have failed only because of faults."""
    now_ms = platform.simulation.scheduler.now_us // 1_000
    faults = platform.scenario.faults
    last_ms = max((each.end_ms for each in faults if each.at_ms <= now_ms), default=0)
    is_explained = bool(last_ms) and now_ms - last_ms < EXPLAINED_MS
    for query_id, query in list(engine.commands.running.items()):
        if not isinstance(query.runtime, AppRuntime) or FRAGILE in query_id:
            continue
        for failure in query.runtime.failures:
            if failure.type is not FailureType.SYSTEM or not is_explained:
                raise Violation(
                    "a query fails only because of a fault",
                    f"{query_id}: {failure.type.value}: {failure.message}",
                )


class Stopped(Exception):
    """The server must stop during its script."""


def _is_of(name: str, application_id: str) -> bool:
    return name == application_id or name.startswith(f"{application_id}-")


def _shown(differences: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {each}" for name, each in differences.items())


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error))
