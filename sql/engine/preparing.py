"""Prepared commands: a statement is planned and lowered once, and its plan is logged and applied.

    Sandbox -> plan -> JSON of the log and back -> topology -> PreparedCommand -> log -> applied

A request is planned in a sandbox, statement by statement, before any of it is executed. Executing a
prepared command neither plans nor lowers again, unless another session or another server has
changed the catalog since.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.tap import Tap
from sql.command_log import Command, decode, encode
from sql.engine.changes import CommandStatement, EngineState, Preparation, StateChange, TopicShapes
from sql.engine.launching import LoweredQuery, QueryLauncher
from sql.engine.logged_plans import change_of, change_to_json
from sql.engine.registered_schemas import StatementSchemas
from sql.engine.settings import NATIVE, SqlConfig
from sql.engine.topics import TopicShape
from sql.functions.registry import FunctionRegistry


@dataclass(slots=True)
class Sandbox:
    """A copy of the catalog, the queries and the settings, on which a request is planned."""

    state: EngineState
    config: SqlConfig
    topics: TopicShapes
    # The number of the next command, and the distance to the one after it.
    number: int
    step: int
    # The state that the engine is in when the next command of the sandbox is executed.
    expected: EngineState
    # The tap of a running query, or a new one.
    tap_of: Callable[[str], Tap]
    _taps: dict[str, Tap] = field(default_factory=dict)
    _deleted: set[str] = field(default_factory=set)

    def shape(self, name: str) -> TopicShape | None:
        """The size of a topic; None if there is none, or a command of the sandbox deletes it."""
        return None if name in self._deleted else self.topics.shape(name)

    def tap(self, query_id: str) -> Tap:
        """The tap of a query; one that replaces another keeps its tap."""
        return self._taps.setdefault(query_id, self.tap_of(query_id))

    def apply(self, change: StateChange) -> None:
        """Apply a change; what comes next is planned after it."""
        self.state.apply(change)
        self.number += self.step
        if change.setting is not None:
            name, value = change.setting
            self.config = self.config.with_session({name: value})
        if change.dropped is not None and change.delete_topic:
            self._deleted.add(change.dropped.topic)


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """A command as it is logged and applied, and the sandbox that it was prepared in."""

    statement: CommandStatement
    text: str
    properties: Mapping[str, object]
    sandbox: Sandbox
    number: int
    # As all servers read it from the log; with a warning nothing happens.
    change: StateChange
    # None: it has no effect, or nothing is logged.
    command: Command | None = None
    lowered: LoweredQuery | None = None

    def is_current(self, state: EngineState, number: int) -> bool:
        """Whether it was prepared for the state and the number that it meets."""
        return self.sandbox.expected is state and self.number == number


@dataclass(frozen=True, slots=True)
class CommandPreparer:
    """Prepares commands; only the sandbox changes."""

    functions: FunctionRegistry
    registry: SchemaRegistry | None
    launcher: QueryLauncher
    # The topic of commands; None: nothing is logged.
    log_topic: str | None

    def prepared(
        self,
        sandbox: Sandbox,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> PreparedCommand:
        """The command of a statement, which is checked; the sandbox is as if it were executed."""
        config, number = sandbox.config, sandbox.number
        properties = with_engine(properties, config)
        schemas = StatementSchemas(self.registry)
        preparation = Preparation(
            sandbox.state,
            self.functions,
            config.with_session(properties),
            properties,
            schemas,
            sandbox,
            config.kept,
        )
        change = preparation.prepare(statement, text, number)
        if change.warning is not None:
            return PreparedCommand(statement, text, properties, sandbox, number, change)
        command = None
        if self.log_topic is not None:
            command = command_of(change, text, properties, schemas, config)
            # What cannot be read again must not be logged, and what is logged is what is executed.
            command = decode(*encode(command), self.log_topic, number)
            change = change_of(command, self.functions)
        lowered = None
        if change.query is not None:
            lowered = self.launcher.lowered(change.query, sandbox.tap(change.query.id))
        sandbox.apply(change)
        return PreparedCommand(
            statement, text, properties, sandbox, number, change, command, lowered
        )


def command_of(
    change: StateChange,
    text: str,
    properties: Mapping[str, object],
    schemas: StatementSchemas,
    config: SqlConfig,
) -> Command:
    """The command of a change, with its plan and the settings that had an influence on it."""
    makes = change.made is not None or change.query is not None
    return Command(
        change.command_id,
        text,
        properties,
        schemas.answers or schemas.logged,
        original=config.kept if makes else {},
        plan=change_to_json(change),
    )


def with_engine(properties: Mapping[str, object], config: SqlConfig) -> Mapping[str, object]:
    """The settings of a statement, with the engine that its query stays on.

    State and offsets are the engine's: a server that is started with another one must not take
    queries along. The native engine is what a statement without a word of it means.
    """
    if "engine" in properties or config["engine"] == NATIVE:
        return properties
    return {**properties, "engine": config["engine"]}
