"""Prepared commands: a statement is planned and lowered once, and its plan is logged and applied.

    sandbox -> plan -> JSON of the log and back -> topology -> PreparedCommand -> log -> applied

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
    """A copy of the catalog, the queries and the settings, for planning a request."""

    state: EngineState
    config: SqlConfig
    topics: TopicShapes
    # The number of the next command, and the distance to the one after it.
    number: int
    step: int
    # The expected state of the engine when the next command of the sandbox is executed.
    expected: EngineState
    # The tap of a running query, or a new one.
    tap_of: Callable[[str], Tap]
    _taps: dict[str, Tap] = field(default_factory=dict)
    _deleted: set[str] = field(default_factory=set)

    def shape(self, name: str) -> TopicShape | None:
        """The size of a topic; None if it does not exist, or the sandbox deletes it."""
        return None if name in self._deleted else self.topics.shape(name)

    def tap(self, query_id: str) -> Tap:
        """The tap of a query; a query that replaces another keeps its tap."""
        return self._taps.setdefault(query_id, self.tap_of(query_id))

    def apply(self, change: StateChange) -> None:
        """Apply a change; later statements are planned after it."""
        self.state.apply(change)
        self.number += self.step
        if change.setting is not None:
            name, value = change.setting
            self.config = self.config.with_session({name: value})
        if change.dropped is not None and change.delete_topic:
            self._deleted.add(change.dropped.topic)


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """A command as it will be logged and applied, and the sandbox in which it was prepared."""

    statement: CommandStatement
    text: str
    properties: Mapping[str, object]
    sandbox: Sandbox
    number: int
    # As all servers read it from the log; with a warning it has no effect.
    change: StateChange
    # None: it has no effect, or nothing is logged.
    command: Command | None = None
    lowered: LoweredQuery | None = None

    def is_current(self, state: EngineState, number: int) -> bool:
        """Whether it was prepared for this state and number."""
        return self.sandbox.expected is state and self.number == number


@dataclass(frozen=True, slots=True)
class CommandPreparer:
    """Prepares commands; only the sandbox changes."""

    functions: FunctionRegistry
    registry: SchemaRegistry | None
    launcher: QueryLauncher
    # The command topic; None: nothing is logged.
    log_topic: str | None

    def prepared(
        self,
        sandbox: Sandbox,
        statement: CommandStatement,
        text: str,
        properties: Mapping[str, object],
    ) -> PreparedCommand:
        """The command of a valid statement; the sandbox then contains its effect."""
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
            # Only a change that can be read back is logged, and the one read back is executed.
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
    """The command of a change, with its plan and the settings that affect it."""
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
    """The settings of a statement, including the engine on which its query stays.

    State and offsets belong to an engine: a server that is started with another engine must not
    move existing queries. A statement without the setting runs on the native engine.
    """
    if "engine" in properties or config["engine"] == NATIVE:
        return properties
    return {**properties, "engine": config["engine"]}
