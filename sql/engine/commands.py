"""Commands: statements that change something are checked, logged, and executed from the log.

    prepare   plan in a sandbox (preparing.py)
    execute   take over the log, read the commands of others, create topics, append, apply
    apply     change the state as in the logged plan, start and stop queries

A statement is planned once, and its plan is logged with the settings that its query keeps. Replay
executes plans, so another configuration, planner or registry does not change what runs. Commands of
version 1 have no plan: they are prepared again, and their new plan is pinned in the log.

Every logged command was valid when it was written. A command that can no longer be executed gets
the status ERROR, and the rest continues. While the cluster does not respond, commands that were
read wait: the next read executes them in order. If the log is damaged, the state is that of the
commands before the damage: the server is degraded, and refuses commands.
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
)
from sql.engine.changes import CommandStatement, EngineState, Preparation, QueryInfo, StateChange
from sql.engine.entities import CommandStatus, CurrentStatus, Entity, WarningEntity
from sql.engine.launching import LoweredQuery, QueryLauncher
from sql.engine.logged_plans import change_of, sized
from sql.engine.preparing import CommandPreparer, PreparedCommand, Sandbox, command_of
from sql.engine.registered_schemas import StatementSchemas, register_schemas
from sql.engine.settings import SqlConfig
from sql.engine.topic_rules import matches_any
from sql.engine.topics import Topics, TopicShape
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.parse import parse
from sql.queries import QueryRuntime
from sql.syntax.statements import SourceKind

logger = logging.getLogger(__name__)

OFFSETS_PER_COMMAND = 2  # its record, and the marker of its transaction
TRIES = 20  # for servers that write at the same time
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
    state: EngineState = field(default_factory=EngineState)
    running: dict[str, LaunchedQuery] = field(default_factory=dict)
    statuses: dict[str, CommandStatus] = field(default_factory=dict)
    degraded: str | None = None
    _lock: concurrency.RLock = field(default_factory=lambda: concurrency.RLock())
    _by_offset: dict[int, CommandStatus] = field(default_factory=dict)
    _unapplied: deque[LoggedCommand] = field(default_factory=deque)  # read, not executed yet
    # Commands without a plan, with the plan that this server has created for them.
    _unpinned: dict[int, Command] = field(default_factory=dict)
    _replaying: bool = False
    _ended: list[str] = field(default_factory=list)  # during a replay: queries that were dropped
    _next_number: int = 0

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Replay the log, then start the remaining queries."""
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
            self.launcher.discard(ended)  # of servers that died while dropping a query
            self._ended.clear()
            self._start_queries()

    def start_with(
        self, state: EngineState, next_number: int, lowered: Mapping[str, LoweredQuery]
    ) -> None:
        """Start the queries of a state that is not from the log."""
        with self._lock:
            self.state = state
            self._next_number = next_number
            self._start_queries(lowered)

    def _start_queries(self, lowered: Mapping[str, LoweredQuery] | None = None) -> None:
        for query in list(self.state.queries.values()):
            self.launcher.begin(query)  # if a server died after logging it
            self._launch(query, (lowered or {}).get(query.id))

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
        """Execute the commands of other servers."""
        with self._lock:
            if self.log is not None and self.degraded is None:
                self._read_on()
                self._by_offset.clear()

    def terminate_cluster(self, delete_topics: Sequence[str]) -> None:
        """Terminate all queries, delete the topics of matching sources, and the log."""
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
            self.state = EngineState()
            self.degraded = "the cluster was terminated"

    # --- statements ---------------------------------------------------------------------------

    def sandbox(self) -> Sandbox:
        """A copy of the state, for preparing the commands of a request."""
        state = self.state
        number, step = self._following
        return Sandbox(state.copy(), self.config, self.topics, number, step, state, self._tap_of)

    @property
    def _following(self) -> tuple[int, int]:
        """The number of the next command, and the distance to the one after it."""
        if self.log is None:
            return self._next_number, 1
        return self.log.next_offset, OFFSETS_PER_COMMAND

    def prepared(
        self,
        sandbox: Sandbox,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> PreparedCommand:
        """The command of a statement; only the sandbox changes."""
        topic = None if self.log is None else self.log.topic
        preparer = CommandPreparer(self.functions, self.registry, self.launcher, topic)
        return preparer.prepared(sandbox, statement, text, properties)

    def _tap_of(self, query_id: str) -> Tap:
        running = self.running.get(query_id)
        return Tap() if running is None else running.tap

    def execute(self, prepared: PreparedCommand) -> Entity:
        """Log and apply a command; it is prepared again if something has changed since."""
        with self._lock:
            if self.degraded is not None:
                raise Degraded(
                    "The server has detected corruption in the command topic due to modifications "
                    f"performed on it: {self.degraded}",
                    hint="repair the topic, then restart the server",
                )
            if self.log is None:
                return self._execute_unlogged(prepared)
            for _ in range(TRIES):
                try:
                    return self._execute(self.log, prepared)
                except TakenOver:
                    continue
            raise StatementFailed(
                "Could not write the statement into the command topic: other servers wrote at the "
                "same time",
                hint="send it again",
            )

    def _execute(self, log: CommandLog, given: PreparedCommand) -> Entity:
        prepared = self._current(log, given)
        change, command = prepared.change, prepared.command
        if command is None:
            return WarningEntity(prepared.text, change.warning or "")
        shape = self.provide(change)
        offset = log.append(command)
        self._by_offset.clear()
        self._apply(LoggedCommand(offset, command), sized(change, shape), prepared.lowered)
        self._clean_up(change)
        if prepared is given:
            given.sandbox.expected = self.state
        return CurrentStatus(prepared.text, change.command_id, self._by_offset.pop(offset), offset)

    def _current(self, log: CommandLog, prepared: PreparedCommand) -> PreparedCommand:
        """The command, prepared for the current state of the log."""
        is_known = log.is_writer and not self._unapplied and prepared.change.warning is None
        if is_known and prepared.is_current(self.state, log.next_offset):
            # If another server has written since, this command is refused and retried.
            return prepared
        log.take_over()
        try:
            self._read_on()
        except MillstreamError:
            log.resign()  # so that all commands are read before anything is written
            raise
        if prepared.is_current(self.state, log.next_offset):
            return prepared
        return self._prepared_again(prepared)

    def _prepared_again(self, prepared: PreparedCommand) -> PreparedCommand:
        return self.prepared(self.sandbox(), prepared.statement, prepared.text, prepared.properties)

    def _execute_unlogged(self, given: PreparedCommand) -> Entity:
        prepared = given
        if not given.is_current(self.state, self._next_number):
            prepared = self._prepared_again(given)
        change = prepared.change
        if change.warning is not None:
            return WarningEntity(prepared.text, change.warning)
        shape = self.provide(change)
        number, self._next_number = self._next_number, self._next_number + 1
        status = self._carry_out(sized(change, shape), prepared.lowered)
        self._clean_up(change)
        if prepared is given:
            given.sandbox.expected = self.state
        return CurrentStatus(prepared.text, change.command_id, status, number)

    # --- around a change ----------------------------------------------------------------------

    def provide(self, change: StateChange) -> TopicShape | None:
        """Create the topic and the schemas that a change needs; returns the size of the topic."""
        made = change.made
        if made is None:
            return None
        shape = self.topics.ensure(
            made.topic,
            partitions=made.partitions,
            replicas=made.replicas,
            configs=_topic_configs(made),
        )
        register_schemas(made, self.registry)
        return shape

    def shape(self, change: StateChange) -> TopicShape | None:
        """The size of the topic of a change's new source; None if there is none."""
        return None if change.made is None else self.topics.shape(change.made.topic)

    def _clean_up(self, change: StateChange) -> None:
        if change.dropped is not None and change.delete_topic:
            self.topics.delete(change.dropped.topic)

    # --- from the log -------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Execute commands that were read before, and those that follow in the log."""
        assert self.log is not None, "there is a log"
        waiting = self._unapplied
        try:
            waiting.extend(self.log.unread())  # keeps commands that were read before an error
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
        """Also read the commands that the last server was committing when it died."""
        try:
            if self.degraded is None and log.has_unfinished():
                log.take_over()
                self._read_on()
        except MillstreamError as error:
            # The next statement, or the follower, reads them.
            logger.warning("could not read the command topic to its end: %s", error)

    def _pin(self, log: CommandLog) -> None:
        """Log the plans of commands without one, so that settings do not change them again."""
        if not self._unpinned or self.degraded is not None:
            return
        try:
            log.take_over()
            self._read_on()  # another server may have pinned them, or written
            if self._unpinned and self.degraded is None:
                log.append_all(list(self._unpinned.values()))
        except MillstreamError as error:
            # The next start retries it; until then the server works as before plans were logged.
            logger.warning("could not log the plans of old commands: %s", error)
        else:
            logger.info("logged the plans of %d old commands", len(self._unpinned))

    def _apply(
        self,
        logged: LoggedCommand,
        change: StateChange | None = None,
        lowered: LoweredQuery | None = None,
    ) -> None:
        """Execute a command; an outage of the cluster is raised before anything is changed."""
        command = logged.command
        try:
            change = change or self._replayed(logged)
        except Exception as error:
            if _is_outage(error):
                raise
            status = _failed(logged, error)
        else:
            try:
                status = self._carry_out(change, lowered)
            except Exception as error:  # whatever it is, later commands must be executed
                status = _failed(logged, error)
        self._by_offset[logged.offset] = status
        self.statuses[command.id] = status

    def _replayed(self, logged: LoggedCommand) -> StateChange:
        if logged.command.plan is None:
            return self._planned_again(logged)
        change = change_of(logged.command, self.functions)
        return sized(change, self.shape(change))

    def _planned_again(self, logged: LoggedCommand) -> StateChange:
        """The change of a command of version 1, with the settings of this server."""
        command = logged.command
        [parsed] = parse(command.statement)
        schemas = StatementSchemas(self.registry, logged=command.schemas)
        # It was checked before it was logged to be a statement that changes something.
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
            rules=(),  # its stores and internal topics contain whole rows
        )
        change = preparation.prepare(statement, command.statement, logged.offset)
        if change.warning is None and self._replaying:
            planned = command_of(
                change, command.statement, command.properties, schemas, self.config
            )
            self._unpinned[logged.offset] = replace(planned, pins=logged.offset)
        return change

    def _carry_out(self, change: StateChange, lowered: LoweredQuery | None = None) -> CommandStatus:
        # Readers keep their state: it is never modified, only replaced.
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
            else:  # it could not be started at all
                self.launcher.discard([query_id])
        if change.query is not None and not self._replaying:
            self.launcher.begin(change.query)
            self._launch(change.query, lowered)
        for query_id in change.paused:
            if query_id in self.running:
                self.running[query_id].runtime.pause()
        for query_id in change.resumed:
            if query_id in self.running:
                self.running[query_id].runtime.resume()
        made = None if change.query is None else change.query.id
        return CommandStatus(SUCCESS, change.message, made)

    def _launch(self, query: QueryInfo, lowered: LoweredQuery | None = None) -> None:
        """Start a query, replacing one with the same id; state and offsets are kept."""
        replaced = self.running.pop(query.id, None)
        if replaced is not None:
            replaced.runtime.stop()
        tap = Tap() if replaced is None else replaced.tap
        if lowered is None or (replaced is not None and lowered.tap is not tap):
            lowered = self.launcher.lowered_if_possible(query, tap)
        runtime = self.launcher.runtime(query, lowered)
        self.running[query.id] = LaunchedQuery(query, runtime, lowered.where, lowered.tap)
        if query.id in self.state.paused:
            runtime.pause()
        runtime.start()


def _is_outage(error: Exception) -> bool:
    """Whether the cluster did not respond: then the command itself may be valid."""
    return is_retriable(error) or isinstance(error, BrokersUnreachable)


def _failed(logged: LoggedCommand, error: Exception) -> CommandStatus:
    if isinstance(error, MillstreamError):
        logger.error("command %s at %d failed: %s", logged.command.id, logged.offset, error)
        return CommandStatus(ERROR, error.message)
    logger.exception("command %s at %d failed", logged.command.id, logged.offset, exc_info=error)
    return CommandStatus(ERROR, repr(error))


def _pinned(logged: LoggedCommand, pin: Command | None) -> LoggedCommand:
    """A command without a plan, with the plan that was pinned later."""
    command = logged.command
    if pin is None or command.plan is not None or pin.statement != command.statement:
        return logged
    return LoggedCommand(logged.offset, replace(pin, pins=None))


def _topic_configs(source: SourceInfo) -> dict[str, str]:
    """The settings of a new topic: tables are compacted, windows are deleted when they expire."""
    configs = {}
    if source.kind is SourceKind.TABLE:
        configs["cleanup.policy"] = "compact" if source.window is None else "compact,delete"
    if source.retention_ms is not None:
        configs["retention.ms"] = str(source.retention_ms)
    return configs
