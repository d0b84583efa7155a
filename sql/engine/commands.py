"""Commands: statements that change something are checked, logged, and carried out from the log.

    execute   take over the log, read what others wrote, prepare, make topics, append, apply
    apply     prepare again as the command of its offset, change the state, start and stop queries

Everything that is logged was possible when it was written. What cannot be carried out again later
becomes a command with the status ERROR, and the rest goes on. A log that is damaged leaves the
state as far as it could be read: the server is degraded, and refuses commands.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.client.registry.api import SchemaRegistry
from broker.errors import MillstreamError
from sql.backends.native.materialized import Materialized
from sql.backends.native.tap import Tap
from sql.catalog import SourceInfo
from sql.command_log import (
    Command,
    CommandLog,
    DamagedCommand,
    LoggedCommand,
    TakenOver,
    decode,
    encode,
)
from sql.engine.changes import Change, Preparation, QueryInfo, State
from sql.engine.changes import Command as CommandStatement
from sql.engine.entities import CommandStatus, CurrentStatus, Entity, WarningEntity
from sql.engine.launching import QueryLauncher
from sql.engine.registered_schemas import StatementSchemas, register_schemas
from sql.engine.settings import NATIVE, SqlConfig
from sql.engine.topic_rules import matches_any
from sql.engine.topics import Topics
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.parse import parse
from sql.queries import QueryRuntime
from sql.syntax.statements import SourceKind

logger = logging.getLogger(__name__)

TRIES = 20  # servers that write at the same time take turns
SUCCESS = "SUCCESS"
ERROR = "ERROR"


class Degraded(StatementFailed):
    """The log is damaged: nothing can be changed until it is repaired."""


@dataclass(slots=True)
class RunningQuery:
    """A persistent query that was launched."""

    info: QueryInfo
    runtime: QueryRuntime
    where: Materialized | None
    tap: Tap


@dataclass(slots=True)
class Commands:
    """The state that commands make, and the queries that run because of it. Any thread."""

    config: SqlConfig
    functions: FunctionRegistry
    registry: SchemaRegistry | None
    topics: Topics
    launcher: QueryLauncher
    # None: nothing is logged, as in headless mode.
    log: CommandLog | None
    state: State = field(default_factory=State)
    running: dict[str, RunningQuery] = field(default_factory=dict)
    statuses: dict[str, CommandStatus] = field(default_factory=dict)
    degraded: str | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _by_offset: dict[int, CommandStatus] = field(default_factory=dict)
    _replaying: bool = False
    _next_number: int = 0
    # The statement that was tried just now, which need not be tried again to be carried out.
    _topology_made: str = ""

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Replay the log, then start the queries that are left."""
        with self._lock:
            if self.log is not None:
                self.log.open()
                self._replaying = True
                try:
                    self._read_on()
                finally:
                    self._replaying = False
                    self._by_offset.clear()
            for query in list(self.state.queries.values()):
                self.launcher.begin(query)  # for one whose server died as it was logged
                self._launch(query)

    def close(self) -> None:
        """Stop the queries; they go on where they were after the next start."""
        with self._lock:
            running = list(self.running.values())
            self.running.clear()
            if self.log is not None:
                self.log.close()
        for each in running:
            each.runtime.stop()

    def follow(self) -> None:
        """Carry out what other servers have written."""
        with self._lock:
            if self.log is not None and self.degraded is None:
                self._read_on()
                self._by_offset.clear()

    def terminate_cluster(self, delete_topics: Sequence[str]) -> None:
        """End all queries, delete the topics of sources whose names match, and the log."""
        patterns = ",".join(delete_topics)
        with self._lock:
            running = list(self.running.values())
            self.running.clear()
            for each in running:
                each.runtime.discard()
            for topic in {each.topic for each in self.state.catalog.sources.values()}:
                if matches_any(topic, patterns):
                    self.topics.delete(topic)
            if self.log is not None:
                self.log.close()
                self.topics.delete(self.log.topic)
            self.state = State()
            self.degraded = "the cluster was terminated"

    # --- statements ---------------------------------------------------------------------------

    def tried(
        self,
        state: State,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> Change:
        """What a statement would do to a state, which is changed; nothing else happens."""
        properties = with_engine(properties, self.config)
        change = self._prepared(state, statement, text, properties, StatementSchemas(self.registry))
        if change.warning is None:
            state.apply(change)
        return change

    def execute(
        self, statement: CommandStatement, text: str, properties: Mapping[str, object]
    ) -> Entity:
        """Log a statement and carry it out."""
        properties = with_engine(properties, self.config)
        with self._lock:
            if self.degraded is not None:
                raise Degraded(
                    "The server has detected corruption in the command topic due to modifications "
                    f"performed on it: {self.degraded}",
                    hint="repair the topic, then restart the server",
                )
            if self.log is None:
                return self._execute_unlogged(statement, text, properties)
            for _ in range(TRIES):
                try:
                    return self._execute(self.log, statement, text, properties)
                except TakenOver:
                    continue
            raise StatementFailed(
                "Could not write the statement into the command topic: other servers write at the "
                "same time",
                hint="send it again",
            )

    def _execute(
        self,
        log: CommandLog,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> Entity:
        change, schemas = self._prepared_to_log(log, statement, text, properties)
        if change.warning is not None:
            return WarningEntity(text, change.warning)
        self._provide(change)
        command = Command(change.command_id, text, properties, schemas.answers)
        offset = log.append(command)
        self._by_offset.clear()
        # As all servers read it.
        self._apply(LoggedCommand(offset, decode(*encode(command), log.topic, offset)))
        self._clean_up(change)
        return CurrentStatus(text, change.command_id, self._by_offset.pop(offset), offset)

    def _prepared_to_log(
        self,
        log: CommandLog,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> tuple[Change, StatementSchemas]:
        """The change of a statement, after all that was logged before it."""
        if log.is_writer:
            # If another server has written since, our command will be refused, and tried again. So
            # what we know is good enough to carry a statement out, but not to refuse it.
            schemas = StatementSchemas(self.registry)
            try:
                change = self._prepared(self.state, statement, text, properties, schemas)
            except MillstreamError as error:
                logger.debug("%s is looked at again: %s", text, error)
            else:
                if change.warning is None:
                    return change, schemas
        log.take_over()
        try:
            self._read_on()
        except MillstreamError:
            log.close()  # so that all is read before anything is written
            raise
        schemas = StatementSchemas(self.registry)
        return self._prepared(self.state, statement, text, properties, schemas), schemas

    def _execute_unlogged(
        self, statement: CommandStatement, text: str, properties: Mapping[str, object]
    ) -> Entity:
        schemas = StatementSchemas(self.registry)
        change = self._prepared(self.state, statement, text, properties, schemas)
        if change.warning is not None:
            return WarningEntity(text, change.warning)
        self._provide(change)
        number, self._next_number = self._next_number, self._next_number + 1
        change = self._prepared(self.state, statement, text, properties, schemas, number)
        status = self._carry_out(change)
        self._clean_up(change)
        return CurrentStatus(text, change.command_id, status, number)

    def _prepared(
        self,
        state: State,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
        schemas: StatementSchemas,
        number: int | None = None,
    ) -> Change:
        """The change of a statement; as the command of a number, or as if it were the next one."""
        preparation = Preparation(
            state,
            self.functions,
            self.config.with_session(properties),
            properties,
            schemas,
            self.topics,
            replayed=bool(schemas.logged) or self._replaying,
        )
        following = self._next_number if self.log is None else self.log.next_offset
        change = preparation.prepare(statement, text, following if number is None else number)
        made, self._topology_made = self._topology_made, ""
        if change.query is not None and number is None and made != text:
            self.launcher.check(change.query)
            self._topology_made = text
        return change

    # --- around a change ----------------------------------------------------------------------

    def _provide(self, change: Change) -> None:
        """Make the topic and the schemas that a change needs."""
        made = change.made
        if made is None:
            return
        self.topics.ensure(
            made.topic,
            partitions=made.partitions,
            replicas=made.replicas,
            configs=_topic_configs(made),
        )
        register_schemas(made, self.registry)

    def _clean_up(self, change: Change) -> None:
        if change.dropped is not None and change.delete_topic:
            self.topics.delete(change.dropped.topic)

    # --- from the log -------------------------------------------------------------------------

    def _read_on(self) -> None:
        assert self.log is not None, "there is a log"
        try:
            for each in self.log.unread():
                self._apply(each)
        except DamagedCommand as error:
            self.degraded = str(error)
            logger.error("commands can no longer be carried out: %s", error)

    def _apply(self, logged: LoggedCommand) -> None:
        command = logged.command
        try:
            change = self._replayed(logged)
            status = self._carry_out(change)
        except MillstreamError as error:
            logger.error("command %s at %d failed: %s", command.id, logged.offset, error)
            status = CommandStatus(ERROR, error.message)
        self._by_offset[logged.offset] = status
        self.statuses[command.id] = status

    def _replayed(self, logged: LoggedCommand) -> Change:
        command = logged.command
        [parsed] = parse(command.statement)
        schemas = StatementSchemas(self.registry, logged=command.schemas)
        # Checked before it was logged to be one of the statements that change something.
        statement: CommandStatement = parsed.statement  # type: ignore[assignment]
        preparation = Preparation(
            self.state,
            self.functions,
            self.config.with_session(command.properties),
            command.properties,
            schemas,
            self.topics,
            replayed=True,
        )
        return preparation.prepare(statement, command.statement, logged.offset)

    def _carry_out(self, change: Change) -> CommandStatus:
        # Readers keep the state they have: it is never changed, only replaced.
        following = self.state.copy()
        following.apply(change)
        self.state = following
        if change.setting is not None:
            self.config.alter(*change.setting)
        for query_id in change.ended:
            ended = self.running.pop(query_id, None)
            if ended is not None:
                ended.runtime.discard()
        if change.query is not None and not self._replaying:
            self.launcher.begin(change.query)
            self._launch(change.query)
        for query_id in change.paused:
            if query_id in self.running:
                self.running[query_id].runtime.pause()
        for query_id in change.resumed:
            if query_id in self.running:
                self.running[query_id].runtime.resume()
        made = None if change.query is None else change.query.id
        return CommandStatus(SUCCESS, change.message, made)

    def _launch(self, query: QueryInfo) -> None:
        """Start a query; one of the same id is replaced, and its state and offsets stay."""
        replaced = self.running.pop(query.id, None)
        if replaced is not None:
            replaced.runtime.stop()
        where = self.launcher.where(query)
        tap = Tap() if replaced is None else replaced.tap
        runtime = self.launcher.runtime(query, tap)
        self.running[query.id] = RunningQuery(query, runtime, where, tap)
        if query.id in self.state.paused:
            runtime.pause()
        runtime.start()


def with_engine(properties: Mapping[str, object], config: SqlConfig) -> Mapping[str, object]:
    """The settings of a statement, with the engine that its query stays on.

    State and offsets are the engine's: a server that is started with another one must not take
    queries along. The native engine is what a statement without a word of it means.
    """
    if "engine" in properties or config["engine"] == NATIVE:
        return properties
    return {**properties, "engine": config["engine"]}


def _topic_configs(source: SourceInfo) -> dict[str, str]:
    """How a new topic keeps its records: tables are compacted, windows go when they are old."""
    configs = {}
    if source.kind is SourceKind.TABLE:
        configs["cleanup.policy"] = "compact" if source.window is None else "compact,delete"
    if source.retention_ms is not None:
        configs["retention.ms"] = str(source.retention_ms)
    return configs
