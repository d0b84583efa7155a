"""Commands: statements that change something are checked, logged, and executed from the log.

    execute   take over the log, read what others wrote, prepare, make topics, append, apply
    apply     change the state as the logged plan says, start and stop queries

A statement is planned once, and its plan is logged with the settings that its query keeps. Replay
executes plans, so another configuration, planner or registry does not change what runs. Commands
of version 1 have no plan: they are prepared again, and their new plan is pinned in the log.

Everything that is logged was possible when it was written. What cannot be executed again later
becomes a command with the status ERROR, and the rest continues. While the cluster does not answer,
commands that were read wait: they are executed in order, by the next read. A log that is damaged
leaves the state as far as it could be read: the server is degraded, and refuses commands.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from broker import concurrency
from broker.client.retry import is_retriable
from broker.errors import BrokersUnreachable, MillstreamError
from broker.serde.registry.api import SchemaRegistry
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
from sql.engine.logged_plans import change_of, change_to_json, sized
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

TRIES = 20  # of servers that write at the same time
SUCCESS = "SUCCESS"
ERROR = "ERROR"


class Degraded(StatementFailed):
    """The log is damaged: nothing can be changed until it is repaired."""


@dataclass(slots=True)
class LaunchedQuery:
    """A persistent query that was launched."""

    info: QueryInfo
    runtime: QueryRuntime
    where: Materialized | None
    tap: Tap


@dataclass(slots=True)
class Commands:
    """The state that commands create, and its running queries. Thread-safe."""

    config: SqlConfig
    functions: FunctionRegistry
    registry: SchemaRegistry | None
    topics: Topics
    launcher: QueryLauncher
    # None: nothing is logged, as in headless mode.
    log: CommandLog | None
    state: State = field(default_factory=State)
    running: dict[str, LaunchedQuery] = field(default_factory=dict)
    statuses: dict[str, CommandStatus] = field(default_factory=dict)
    degraded: str | None = None
    _lock: concurrency.RLock = field(default_factory=lambda: concurrency.RLock())
    _by_offset: dict[int, CommandStatus] = field(default_factory=dict)
    _unapplied: deque[LoggedCommand] = field(default_factory=deque)  # read, not executed yet
    # Commands without a plan, with the plan that this server has made of them.
    _unpinned: dict[int, Command] = field(default_factory=dict)
    _replaying: bool = False
    _ended: list[str] = field(default_factory=list)  # during a replay: queries that were dropped
    _next_number: int = 0
    # The statement that was tried just now, which need not be tried again to be executed.
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
                    self._finish(self.log)
                    self._pin(self.log)
                finally:
                    self._replaying = False
                    self._by_offset.clear()
                    self._unpinned.clear()
            ended = [each for each in self._ended if each not in self.state.queries]
            self.launcher.discard(ended)  # for those whose server died as they were dropped
            self._ended.clear()
            self._start_queries()

    def start_with(self, state: State, next_number: int) -> None:
        """Start the queries of a state that did not come from the log."""
        with self._lock:
            self.state = state
            self._next_number = next_number
            self._start_queries()

    def _start_queries(self) -> None:
        for query in list(self.state.queries.values()):
            self.launcher.begin(query)  # for one whose server died as it was logged
            self._launch(query)

    def close(self) -> None:
        """Stop the queries; they continue after the next start."""
        with self._lock:
            running = list(self.running.values())
            self.running.clear()
            if self.log is not None:
                self.log.close()
        for each in running:
            each.runtime.stop()

    def follow(self) -> None:
        """Execute what other servers have written."""
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
            for topic in dict.fromkeys(each.topic for each in self.state.catalog.sources.values()):
                if matches_any(topic, patterns):
                    self.topics.delete(topic)
            if self.log is not None:
                self.log.close()
                self.topics.delete(self.log.topic)
            self._unapplied.clear()
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
        """Log a statement and execute it."""
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
                "Could not write the statement into the command topic: other servers wrote at the "
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
        self.provide(change)
        command = self._command(change, text, properties, schemas)
        command = decode(*encode(command), log.topic, log.next_offset)  # as all servers read it
        # What cannot be read again must not be logged, and what is logged is executed at once.
        logged = sized(change_of(command, self.functions), self.topics)
        offset = log.append(command)
        self._by_offset.clear()
        self._apply(LoggedCommand(offset, command), logged)
        self._clean_up(change)
        return CurrentStatus(text, change.command_id, self._by_offset.pop(offset), offset)

    def _command(
        self,
        change: Change,
        text: str,
        properties: Mapping[str, object],
        schemas: StatementSchemas,
    ) -> Command:
        """The command of a change, with its plan and the settings that had an influence on it."""
        makes = change.made is not None or change.query is not None
        return Command(
            change.command_id,
            text,
            properties,
            schemas.answers or schemas.logged,
            original=self.config.kept if makes else {},
            plan=change_to_json(change),
        )

    def _prepared_to_log(
        self,
        log: CommandLog,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> tuple[Change, StatementSchemas]:
        """The change of a statement, after all that was logged before it."""
        if log.is_writer and not self._unapplied:
            # If another server has written since, our command will be refused, and tried again. So
            # what we know is good enough to carry a statement out, but not to refuse it.
            schemas = StatementSchemas(self.registry)
            try:
                change = self._prepared(self.state, statement, text, properties, schemas)
            except MillstreamError as error:
                logger.debug("%s is checked again: %s", text, error)
            else:
                if change.warning is None:
                    return change, schemas
        log.take_over()
        try:
            self._read_on()
        except MillstreamError:
            log.resign()  # so that all is read before anything is written
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
        self.provide(change)
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
            self.config.kept,
            replayed=bool(schemas.logged) or self._replaying,
        )
        following = self._next_number if self.log is None else self.log.next_offset
        following += len(state.queries) - len(self.state.queries)  # of statements tried before it
        change = preparation.prepare(statement, text, following if number is None else number)
        made, self._topology_made = self._topology_made, ""
        if change.query is not None and number is None and made != text:
            self.launcher.check(change.query)
            self._topology_made = text
        return change

    # --- around a change ----------------------------------------------------------------------

    def provide(self, change: Change) -> None:
        """Create the topic and the schemas that a change needs."""
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
        """Execute what was read and not executed before, and what follows in the log."""
        assert self.log is not None, "there is a log"
        waiting = self._unapplied
        try:
            waiting.extend(self.log.unread())  # keeps what was read before an error
        except DamagedCommand as error:
            self.degraded = str(error)
            logger.error("commands can no longer be executed: %s", error)
        pins = {
            each.command.pins: each.command for each in waiting if each.command.pins is not None
        }
        while waiting:
            logged = waiting[0]
            if logged.command.pins is not None:
                self._unpinned.pop(logged.command.pins, None)
            else:
                self._apply(_pinned(logged, pins.get(logged.offset)))
            waiting.popleft()

    def _finish(self, log: CommandLog) -> None:
        """Also read what the last server was about to commit when it died."""
        try:
            if self.degraded is None and log.has_unfinished():
                log.take_over()
                self._read_on()
        except MillstreamError as error:
            # The next statement, or the follower, comes to it.
            logger.warning("could not read the command topic to its end: %s", error)

    def _pin(self, log: CommandLog) -> None:
        """Log the plans that were made of commands without one: no setting changes them again."""
        if not self._unpinned or self.degraded is not None:
            return
        try:
            log.take_over()
            self._read_on()  # another server may have pinned them, or written
            if self._unpinned and self.degraded is None:
                log.append_all(list(self._unpinned.values()))
        except MillstreamError as error:
            # The next start does it; until then all is as it was before there were plans.
            logger.warning("could not log the plans of old commands: %s", error)
        else:
            logger.info("logged the plans of %d old commands", len(self._unpinned))

    def _apply(self, logged: LoggedCommand, change: Change | None = None) -> None:
        """Execute a command; raises an outage of the cluster, before anything is changed."""
        command = logged.command
        try:
            change = change or self._replayed(logged)
        except Exception as error:
            if _is_outage(error):
                raise
            status = _failed(logged, error)
        else:
            try:
                status = self._carry_out(change)
            except Exception as error:  # whatever it is, the commands after it must be executed
                status = _failed(logged, error)
        self._by_offset[logged.offset] = status
        self.statuses[command.id] = status

    def _replayed(self, logged: LoggedCommand) -> Change:
        if logged.command.plan is None:
            return self._planned_again(logged)
        return sized(change_of(logged.command, self.functions), self.topics)

    def _planned_again(self, logged: LoggedCommand) -> Change:
        """What a command of version 1 does, under the settings of this server."""
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
            self.config.kept,
            replayed=True,
        )
        change = preparation.prepare(statement, command.statement, logged.offset)
        if change.warning is None and self._replaying:
            planned = self._command(change, command.statement, command.properties, schemas)
            self._unpinned[logged.offset] = replace(planned, pins=logged.offset)
        return change

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
            elif self._replaying:
                self._ended.append(query_id)
            else:  # it could not even be made to run
                self.launcher.discard([query_id])
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
        where = self._where(query)
        tap = Tap() if replaced is None else replaced.tap
        runtime = self.launcher.runtime(query, tap)
        self.running[query.id] = LaunchedQuery(query, runtime, where, tap)
        if query.id in self.state.paused:
            runtime.pause()
        runtime.start()

    def _where(self, query: QueryInfo) -> Materialized | None:
        try:
            return self.launcher.where(query)
        except Exception as error:  # the query fails on its own, and its failures say why
            logger.warning("cannot find the rows of query %s: %s", query.id, error)
            return None


def _is_outage(error: Exception) -> bool:
    """Whether the cluster did not answer: then a command says nothing about itself."""
    return is_retriable(error) or isinstance(error, BrokersUnreachable)


def _failed(logged: LoggedCommand, error: Exception) -> CommandStatus:
    if isinstance(error, MillstreamError):
        logger.error("command %s at %d failed: %s", logged.command.id, logged.offset, error)
        return CommandStatus(ERROR, error.message)
    logger.exception("command %s at %d failed", logged.command.id, logged.offset, exc_info=error)
    return CommandStatus(ERROR, repr(error))


def _pinned(logged: LoggedCommand, pin: Command | None) -> LoggedCommand:
    """A command without a plan, with the plan that was logged for it later."""
    command = logged.command
    if pin is None or command.plan is not None or pin.statement != command.statement:
        return logged
    return LoggedCommand(logged.offset, replace(pin, pins=None))


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
