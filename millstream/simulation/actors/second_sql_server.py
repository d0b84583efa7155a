"""SecondSqlServerActor: another server of the same service, which follows the first one.

It has the same service id and shares the queries. From time to time it executes its own
statements, which the first one must follow.
"""

from typing import TYPE_CHECKING

from broker.errors import MillstreamError
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.sql_server import (
    DATA,
    OTHER_SETTINGS,
    SETTINGS,
    SqlServerActor,
    check_failures,
)
from millstream.simulation.observations import Violation
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.queries import QueryState

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

FIRST = "sql"
APART_MS = 40_000  # how long the states of two servers may differ without faults
AFTER_FAULTS_MS = 60_000  # how long after a fault they may still wait for responses
STATEMENT_SHARE = 0.2  # chance of a statement, each time
STATEMENTS_MAX = 3


class SecondSqlServerActor(Actor):
    """Runs an engine of the service, and compares its state with that of the first one."""

    works_until_checked = True

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self.engine: Engine | None = None
        self.created: dict[str, bool] = {}  # streams to create: whether they were acknowledged
        self._apart_ms: int | None = None  # since when their states differ

    @property
    def first(self) -> SqlServerActor | None:
        """The server that runs the script."""
        actor = self.platform.actors.get(FIRST)
        return actor if isinstance(actor, SqlServerActor) else None

    @property
    def server_state(self) -> object:
        """Its state; None while it does not run."""
        return state_of(self.engine) if self.is_alive else None

    def run(self) -> None:
        """Run engines until stopped; start the next one after an error."""
        assert self.machine is not None
        self.engine = None
        if self.first is not None:
            self.first.others_have_same_state = self.has_same_state
            self.first.other_engine = lambda: self.engine if self.is_alive else None
        while not self.must_stop:
            settings = OTHER_SETTINGS[self.starts % len(OTHER_SETTINGS)]
            engine = Engine(
                self.target,
                data_directory=DATA,
                config=SqlConfig({**SETTINGS, **settings}),
                machine=self.machine,
                follow=True,
            )
            try:
                with engine:
                    self._check_created(engine)
                    self.engine = engine
                    self.note("runs")
                    self._serve(engine)
            except MillstreamError as error:
                self.note("starts again after", type(error).__name__, error.message[:200])
                self.sleep(500, 2_000)
            finally:
                self.engine = None

    def _serve(self, engine: Engine) -> None:
        while self.sleep(1_000, 10_000):
            if len(self.created) < STATEMENTS_MAX and self.random.random() < STATEMENT_SHARE:
                self._create_stream(engine, f"NOTES_{len(self.created)}")

    def _create_stream(self, engine: Engine, name: str) -> None:
        self.created[name] = False
        text = (
            f"CREATE STREAM {name} (id STRING KEY, n INT) "
            f"WITH (kafka_topic='{name}', partitions=1, value_format='JSON');"
        )
        try:
            engine.execute(text)
        except MillstreamError as error:
            self.note("could not make", name, type(error).__name__, error.message[:200])
            return
        self.created[name] = True
        self.note("has made", name)
        self.on_acknowledged()

    def _check_created(self, engine: Engine) -> None:
        """Check that acknowledged statements still exist after a start."""
        lost = [n for n, done in self.created.items() if done and n not in sources(engine)]
        if lost:
            raise Violation("no acknowledged statement is lost", f"{lost} after a start")

    # --- called by the platform -----------------------------------------------------------------

    def has_same_state(self) -> bool:
        """Whether both servers have the same state, if both run."""
        first, mine = self.first, self.server_state
        theirs = None if first is None else state_of(first.engine) if first.is_alive else None
        return mine is None or theirs is None or mine == theirs

    def unfinished_work(self) -> str:
        engine = self.engine
        if not self.is_alive or engine is None:
            return "a second server that runs"
        running = engine.commands.running
        bad = [name for name, each in running.items() if each.runtime.state is QueryState.ERROR]
        missing = set(engine.state.queries) - set(running)
        if bad or missing:
            return f"queries {bad} do not run, {missing} were not launched"
        first = self.first
        if first is not None and not (self.has_same_state() and first.is_alive and first.engine):
            return "the same catalog on both servers"
        return ""

    def check_invariants(self) -> None:
        """Check without waiting: no simulated thread calls this."""
        now_ms = self.platform.simulation.scheduler.now_us // 1_000
        if self.engine is not None and self.is_alive:
            check_failures(self.platform, self.engine)
        faults = self.platform.scenario.faults
        has_no_fault = not any(f.at_ms <= now_ms <= f.end_ms + AFTER_FAULTS_MS for f in faults)
        if not has_no_fault or self.has_same_state():
            self._apart_ms = None
            return
        self._apart_ms = now_ms if self._apart_ms is None else self._apart_ms
        if now_ms - self._apart_ms > APART_MS:
            first = self.first
            assert first is not None
            raise Violation(
                "servers of a service have the same state",
                f"since {self._apart_ms} ms {self.name} has {self.server_state}, and {first.name} "
                f"{state_of(first.engine)}",
            )


def sources(engine: Engine) -> list[str]:
    """The names of streams and tables."""
    return sorted(engine.state.catalog.sources)


def state_of(engine: Engine | None) -> object:
    """Streams and tables with their statements, queries, and paused queries."""
    if engine is None:
        return None
    state = engine.state
    catalog = {name: each.statement for name, each in state.catalog.sources.items()}
    return catalog, sorted(state.queries), sorted(state.paused)
