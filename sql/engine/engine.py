"""Engine: executes statements, and runs the queries that they create.

    with Engine(broker, data_directory=path) as engine:
        engine.execute("CREATE STREAM orders (id INT KEY, total DOUBLE) WITH (...);")
        for row in engine.query("SELECT * FROM orders EMIT CHANGES LIMIT 2;").rows():
            print(row.values)

The life of a statement: split and substituted, parsed, prepared with the whole request in a sandbox
(preparing.py), then executed: commands through the log (commands.py), others directly.
"""

import errno
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from broker import concurrency
from broker.client.opening import Target, producer
from broker.client.record_producer import Producer
from broker.clock import Clock
from broker.errors import MillstreamError
from broker.files import FileSystem
from broker.machine import Machine, on_clock
from broker.serde.registry.api import SchemaRegistry
from connect.client import ConnectClient
from sql.command_log import CommandLog, command_topic, config_topic
from sql.connector_masks import masked
from sql.engine import entities as en
from sql.engine.asserting import schema_problem, topic_problem, wait_until_holds
from sql.engine.bounded import OnProgress, Wait, run_bounded
from sql.engine.changes import COMMANDS, CommandStatement, EngineState, named
from sql.engine.commands import Commands
from sql.engine.connectors import Connectors
from sql.engine.entities import Entity
from sql.engine.follower import Follower
from sql.engine.insert_records import InsertedRecord, RecordBuilder, RowEncoders
from sql.engine.launching import QueryLauncher
from sql.engine.local_endpoints import LocalEndpoints
from sql.engine.pinned_plans import PinnedPlans
from sql.engine.preparing import PreparedCommand
from sql.engine.printed_topic import PrintedTopic
from sql.engine.processing_log import COLUMNS, LogTopic, ProcessingLog
from sql.engine.queries_file import FileStatement, QueriesFile
from sql.engine.read_only_statements import ReadOnlyStatements
from sql.engine.results import QueryResult
from sql.engine.session import SESSION_STATEMENTS, SqlSession
from sql.engine.settings import SPARK, SqlConfig
from sql.engine.spark_launching import SparkLauncher
from sql.engine.spark_runtime import SparkRuntime
from sql.engine.topic_statistics import Statistics
from sql.engine.topics import Topics
from sql.engine.transient_queries import PullPeers, TransientQueries
from sql.engine.trial import Trial, WrongEndpoint, check_headless
from sql.errors import SqlError, StatementFailed, of_statement
from sql.functions.builtin import builtin_functions
from sql.functions.registry import FunctionRegistry
from sql.parse import ParsedStatement, parse
from sql.properties import duration_ms
from sql.queries import Supervisor
from sql.syntax import statements as st
from sql.syntax.queries import EmitClause
from sql.variables import split_statements
from streams.runtime.shared_runtime import SharedRuntime

INSERT_TIMEOUT_MS = 30_000
SCRIPT_DEPTH_MAX = 10
logger = logging.getLogger(__name__)

LOG_TOPIC = "ksql.logging.processing.topic.name"


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Whether the engine is healthy."""

    is_healthy: bool
    degraded: str | None


class Engine:
    """Executes ksqlDB's statements on a broker. Thread-safe."""

    def __init__(  # noqa: PLR0913 - what an engine stands on
        self,
        target: Target,
        *,
        data_directory: Path | str,
        registry: SchemaRegistry | None = None,
        config: SqlConfig | None = None,
        machine: Machine | None = None,
        clock: Clock | None = None,
        functions: FunctionRegistry | None = None,
        connect: ConnectClient | None = None,
        peers: PullPeers | None = None,
        headless: bool = False,
        follow: bool = False,
        backend: str | None = None,
    ) -> None:
        """Nothing runs before `start`; with `follow`, commands of other servers are executed, too.

        Time, random numbers and files are those of the machine; `clock` replaces its clock.
        `backend` is the default engine of new queries, "native" or "spark": the setting "engine".
        """
        self.config = config or SqlConfig()
        if backend is not None:
            self.config = self.config.with_session({"engine": backend})
        self.machine = machine or on_clock(clock)
        self.clock = self.machine.clock
        self.functions = functions or builtin_functions()
        if machine is not None or clock is not None:
            self.functions = self.functions.on(self.machine)
        self.registry = registry
        self.headless = headless
        # A server disables it: users who send requests must not read its files.
        self.runs_scripts = True
        self._target = target
        self._topics = Topics(target)
        self._log_topic = self._open_log_topic()
        self._supervisor = Supervisor(self.clock)
        self._shared = self._open_shared_runtime()
        self._reachable = LocalEndpoints(target, registry)
        self._launcher = self._open_launcher(Path(data_directory))
        log = None if headless else CommandLog(target, self.command_topic)
        self.commands = Commands(
            self.config, self.functions, registry, self._topics, self._launcher, log
        )
        self._connectors = Connectors(connect or self._connect_client())
        self.transient_queries = TransientQueries(
            target,
            registry=registry,
            config=self.config,
            clock=self.clock,
            functions=self.functions,
            commands=self.commands,
            launcher=self._launcher,
            peers=peers,
        )
        self._answering = self._open_answering()
        self._encoders = RowEncoders(registry)
        self._lock = concurrency.Lock()
        self._producer: Producer | None = None
        self._follower = Follower(self.commands, self.clock) if follow else None

    @property
    def command_topic(self) -> str:
        """The command topic."""
        return command_topic(self.config.text("ksql.service.id"))

    @property
    def config_topic(self) -> str:
        """The topic in which a headless server pins the plans of its file."""
        return config_topic(self.config.text("ksql.service.id"))

    def _open_answering(self) -> ReadOnlyStatements:
        return ReadOnlyStatements(
            self.config,
            self.functions,
            self._topics,
            self.commands,
            self.transient_queries,
            self._launcher,
            self._connectors,
            Statistics(self.clock),
        )

    def _open_shared_runtime(self) -> SharedRuntime | None:
        if not self.config.flag("ksql.runtime.feature.shared.enabled"):
            return None
        threads = self.config.whole("ksql.runtime.threads")
        return SharedRuntime(self._target, threads=threads, clock=self.clock)

    def _open_launcher(self, data_directory: Path) -> QueryLauncher:
        return QueryLauncher(
            self._target,
            self.registry,
            self.config,
            self.machine,
            data_directory,
            self._processing_log(),
            self._supervisor,
            self._open_spark_launcher(data_directory),
            self._shared,
        )

    def _open_spark_launcher(self, data_directory: Path) -> SparkLauncher:
        return SparkLauncher(
            self._target if self._shared is None else self._shared.clients,
            self.registry,
            self.config,
            self.machine,
            data_directory,
            self._supervisor,
            self._reachable,
            self.functions.places,
        )

    def _connect_client(self) -> ConnectClient | None:
        url = self.config.text("ksql.connect.url")
        return ConnectClient(url) if url else None

    def _open_log_topic(self) -> LogTopic | None:
        if not self.config.flag("ksql.logging.processing.topic.auto.create"):
            return None
        name = self.config.text(LOG_TOPIC)
        name = name or f"{self.config.text('ksql.service.id')}ksql_processing_log"
        self._topics.ensure(
            name,
            partitions=self.config.whole("ksql.logging.processing.topic.partitions"),
            replicas=None,
        )
        return LogTopic(self._target, name)

    def _processing_log(self) -> ProcessingLog:
        return ProcessingLog(
            self.clock,
            rows=self.config.flag("ksql.logging.processing.rows.include"),
            write=None if self._log_topic is None else self._log_topic.write,
        )

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> Self:
        """Replay the log, or run the file of a headless server, and start the queries."""
        if self.config["engine"] == SPARK:
            self._launcher.spark.check()
        for name, instead in self.config.without_effect.items():
            logger.warning('setting "%s" has no effect: %s', name, instead)
        self.commands.start()
        if self.headless and self.config["ksql.queries.file"]:
            text = script_text(self.machine.files, self.config.text("ksql.queries.file"))
            pinned = PinnedPlans(self._target, self.config_topic)
            QueriesFile(self.commands, pinned).run(list(self._file_statements(text)))
        self._make_log_stream()
        if self._follower is not None:
            self._follower.start()
        return self

    def _file_statements(self, text: str) -> Iterator[FileStatement]:
        """The statements of a headless server's file, with the SET properties before each."""
        session = SqlSession.of(self.config)
        for parsed in self._parsed(text, session):
            with of_statement(parsed.text):
                check_headless(parsed)
                if isinstance(parsed.statement, SESSION_STATEMENTS):
                    session.change(self.config, parsed.statement)
            if isinstance(parsed.statement, COMMANDS):
                yield FileStatement(parsed.statement, parsed.text, dict(session.properties))

    def _make_log_stream(self) -> None:
        """Create the stream of the processing log, if it is enabled."""
        wanted = self.config.flag("ksql.logging.processing.stream.auto.create")
        name = self.config.text("ksql.logging.processing.stream.name").upper()
        if wanted and self._log_topic is not None and name not in self.state.catalog.sources:
            self.execute(
                f"CREATE STREAM {name} ({COLUMNS}) "
                f"WITH (kafka_topic='{self._log_topic.topic}', value_format='JSON');"
            )

    def close(self) -> None:
        """Stop everything; a new engine of the same service continues from here."""
        if self._follower is not None:
            self._follower.close()
        self.transient_queries.close()
        self.commands.close()
        self._supervisor.close()
        with self._lock:
            closing, self._producer = self._producer, None
        if closing is not None:
            closing.close()
        if self._log_topic is not None:
            self._log_topic.close()
        if self._shared is not None:
            self._shared.close()
        self._reachable.close()
        self._topics.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> EngineState:
        """The current catalog and queries."""
        return self.commands.state

    @property
    def status(self) -> EngineStatus:
        """Whether the engine is healthy."""
        following = None if self._follower is None else self._follower.failure
        degraded = self.commands.degraded or following or self._supervisor.failure
        return EngineStatus(degraded is None, degraded)

    # --- statements ---------------------------------------------------------------------------

    def execute(
        self,
        text: str,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, object] | None = None,
    ) -> list[Entity]:
        """Execute the statements of a request, in a separate session."""
        return self.execute_in(SqlSession.of(self.config, properties, variables), text)

    def execute_in(self, session: SqlSession, text: str) -> list[Entity]:
        """Execute statements in a session; all of them are prepared in a sandbox first."""
        if self._follower is not None:
            self.commands.follow()  # includes recent commands of other servers
        trial = Trial(
            self.commands,
            session.copy(),
            self.commands.sandbox(),
            self.transient_queries.push_queries,
            self.record_builder,
            self.headless,
        )
        tried: list[tuple[ParsedStatement, PreparedCommand | None]] = []
        for parsed in self._parsed(text, trial.session):
            with of_statement(parsed.text):
                tried.append((parsed, trial.run(parsed)))
        result: list[Entity] = []
        try:
            for parsed, prepared in tried:
                with of_statement(parsed.text):
                    entity = self._run(session, parsed, prepared)
                if entity is not None:
                    result.append(entity)
        except SqlError as error:
            error.answers = tuple(result)
            raise
        return result

    def _parsed(self, text: str, session: SqlSession, depth: int = 0) -> Iterator[ParsedStatement]:
        """Parse statement by statement: a variable may be defined by an earlier one."""
        for part in split_statements(text):
            with of_statement(part.text):
                statement = session.substituted(self.config, part.text, part.position)
                parsed = parse(statement, testing=True, start=part.position)
            for each in parsed:
                if not isinstance(each.statement, st.RunScript):
                    yield ParsedStatement(each.statement, masked(f"{each.text};"))
                    continue
                if not self.runs_scripts:
                    raise StatementFailed("RUN SCRIPT is not supported here: send its statements")
                if depth >= SCRIPT_DEPTH_MAX:
                    raise StatementFailed("the scripts run each other in a loop")
                script = script_text(self.machine.files, each.statement.path)
                yield from self._parsed(script, session, depth + 1)

    def _run(
        self, session: SqlSession, parsed: ParsedStatement, prepared: PreparedCommand | None
    ) -> Entity | None:
        statement, text = parsed.statement, parsed.text
        if isinstance(statement, COMMANDS):
            return self._command(session, statement, text, prepared)
        if isinstance(statement, SESSION_STATEMENTS):
            session.change(self.config, statement)
            return None
        match statement:
            case st.InsertValues():
                self._insert(
                    self.record_builder(self.state, session).record(statement, self.clock.now_ms())
                )
                return None
            case st.AssertTopic() | st.AssertSchema():
                return self._assert(statement, text)
            case st.CreateConnector():
                return self._connectors.create(statement, text)
            case st.DropConnector():
                return self._connectors.drop(statement, text)
            case _:
                return self._answering.answer(session, statement, text)

    def _command(
        self,
        session: SqlSession,
        statement: CommandStatement,
        text: str,
        prepared: PreparedCommand | None,
    ) -> Entity:
        if isinstance(statement, st.ControlQuery) and statement.query_id is not None:
            pushed = named(self.transient_queries.push_queries, statement.query_id)
            if pushed is not None:
                if statement.action is not st.QueryAction.TERMINATE:
                    raise StatementFailed(f"Unknown queryId: {statement.query_id}")
                pushed.close()
                return en.TerminatedQuery(text, pushed.query_id, was_terminated=True)
        if prepared is None:  # the push query to terminate has already ended
            sandbox = self.commands.sandbox()
            prepared = self.commands.prepared(sandbox, statement, text, dict(session.properties))
        return self.commands.execute(prepared)

    def record_builder(self, state: EngineState, session: SqlSession) -> RecordBuilder:
        """A builder of records for INSERT statements, for a state."""
        config = self.config.with_session(session.properties)
        return RecordBuilder(state.catalog, self.functions, config, self.registry, self._encoders)

    def insert_row(self, target: str, values: Mapping[str, object]) -> None:
        """Write one row of values by column name, which already have their columns' types."""
        record_builder = self.record_builder(self.state, SqlSession())
        self._insert(
            record_builder.encoded(record_builder.target(target), values, self.clock.now_ms())
        )

    def _insert(self, record: InsertedRecord) -> None:
        with self._lock:
            if self._producer is None:
                self._producer = producer(
                    self._target, client_id="millstream-sql-insert", linger_ms=0
                )
            out = self._producer
        try:
            out.send(
                record.topic, record.value, record.key, timestamp_ms=record.timestamp_ms
            ).result(INSERT_TIMEOUT_MS)
        except MillstreamError as error:
            raise StatementFailed(
                f"Failed to insert values into topic '{record.topic}'. {error.message}",
                hint=error.hint,
            ) from error

    def _assert(self, statement: st.AssertTopic | st.AssertSchema, text: str) -> Entity:
        if isinstance(statement, st.AssertTopic):
            timeout_ms = self.config.whole("ksql.assert.topic.default.timeout.ms")
        else:
            timeout_ms = self.config.whole("ksql.assert.schema.default.timeout.ms")
        if statement.timeout is not None:
            timeout_ms = duration_ms(statement.timeout.count, statement.timeout.unit)
        if isinstance(statement, st.AssertTopic):
            asked = statement
            wait_until_holds(lambda: topic_problem(asked, self._topics), self.clock, timeout_ms)
            return en.AssertedTopic(text, statement.topic, statement.exists)
        registry, schema = self.registry, statement
        if registry is None:
            raise StatementFailed("KSQL is not configured to use a schema registry.")
        wait_until_holds(lambda: schema_problem(schema, registry), self.clock, timeout_ms)
        return en.AssertedSchema(text, schema.subject, schema.schema_id, schema.exists)

    def spark_queries(self) -> dict[str, SparkRuntime]:
        """The persistent queries that run on Spark, in the order of their creation."""
        running = dict(self.commands.running)
        found = ((name, running[name].runtime) for name in self.state.queries if name in running)
        return {name: each for name, each in found if isinstance(each, SparkRuntime)}

    def run_bounded(self, on_progress: OnProgress | None = None, wait: Wait | None = None) -> bool:
        """With spark.bounded: let all queries on Spark process their topics to the end.

        `on_progress` is called repeatedly with the id of a query, its progress, and whether it has
        read its topics to the end; `wait` waits for milliseconds and returns whether to give up.
        Returns False if `wait` gave up.
        """
        queries = {name: each for name, each in self.spark_queries().items() if each.is_bounded}
        return run_bounded(
            queries,
            self._launcher.clients,
            on_progress=on_progress or (lambda query_id, progress, done: None),
            wait=wait or self._wait,
        )

    def _wait(self, wait_ms: int) -> bool:
        never = concurrency.Condition()
        with never:
            self.clock.wait(never, wait_ms)
        return False

    # --- queries ------------------------------------------------------------------------------

    def query(
        self,
        text: str,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, object] | None = None,
        *,
        local: bool = False,
    ) -> QueryResult:
        """Start the only SELECT of a request; the caller closes the result.

        A `local` pull query is not sent to other servers.
        """
        session = SqlSession.of(self.config, properties, variables)
        statement, shown = self._single(session, text)
        if not isinstance(statement, st.Select):
            raise WrongEndpoint(
                "The endpoint only runs queries: SELECT and PRINT statements.",
                hint="send other statements to /ksql",
            )
        # As in ksqlDB, errors of a push query do not contain its text.
        is_pull = statement.query.emit is EmitClause.NOTHING
        with of_statement(shown if is_pull else ""):
            return self.transient_queries.begin(session, statement, shown, local=local)

    def print_topic(self, text: str, variables: Mapping[str, object] | None = None) -> PrintedTopic:
        """Start the only PRINT of a request; the caller closes it."""
        session = SqlSession.of(self.config, None, variables)
        statement, _ = self._single(session, text)
        if not isinstance(statement, st.Print):
            raise WrongEndpoint("this is not a PRINT statement")
        return PrintedTopic(
            statement, target=self._target, topics=self._topics, registry=self.registry
        )

    def _single(self, session: SqlSession, text: str) -> tuple[st.Statement, str]:
        found = list(self._parsed(text, session))
        if len(found) != 1:
            raise StatementFailed(
                f"Expected exactly one KSQL statement; found {len(found)} instead"
            )
        return found[0].statement, found[0].text


def script_text(files: FileSystem, path: str) -> str:
    """The text of a file of statements."""
    try:
        data = files.read_file(path)
        if data is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StatementFailed(f"Failed to read file: {path}: {error}") from error
