"""QueriesFile: the statements of a headless server, planned once and pinned.

    read the pins -> plan all statements -> create topics -> write new pins -> start the queries

A pinned statement whose sources and SET properties are unchanged runs its pinned plan, whatever the
settings and the planner of the server. If it or its sources were edited, it is planned again with
the pinned settings, and its query continues if the new plan can use its state, as with CREATE OR
REPLACE. A new statement is planned with the current settings. No query starts before all plans are
pinned.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sql.backends.native.tap import Tap
from sql.command_log import Command, decode, encode
from sql.engine.changes import CommandStatement, EngineState, Preparation, QueryInfo, StateChange
from sql.engine.commands import TRIES, Commands
from sql.engine.launching import LoweredQuery
from sql.engine.logged_plans import change_of, change_to_json, sized
from sql.engine.pinned_plans import PinMatch, PinnedPlans
from sql.engine.preparing import with_engine
from sql.engine.registered_schemas import StatementSchemas
from sql.engine.settings import NATIVE
from sql.errors import StatementFailed, of_statement
from sql.planner.plan_json import from_json, to_json
from sql.planner.upgrades import check_upgrade, upgraded
from sql.rewrite import RULES, Rule
from sql.syntax import statements as st

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileStatement:
    """A statement of the file, and the SET properties before it."""

    statement: CommandStatement
    text: str
    properties: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class QueriesFile:
    """Executes the file of a headless server once, at startup."""

    commands: Commands
    pinned: PinnedPlans

    def run(self, statements: Sequence[FileStatement]) -> None:
        """Plan and pin new statements, and start all queries of the file."""
        self.pinned.open()
        for _ in range(TRIES):
            matches = self.pinned.matched([each.statement for each in statements])
            # Queries of versions without pinned plans have stored whole rows.
            rules = () if self.pinned.is_empty else RULES
            planned = _PlannedFile(self.commands, self.pinned.next_number, rules)
            planned.add_all(statements, matches)
            state = planned.provided()
            if self.pinned.write(planned.pins.items()):
                self.commands.start_with(state, planned.next_number, planned.lowered)
                return
            self.pinned.read()
        raise StatementFailed(
            "the plans of the queries file could not be written: other servers wrote at the same "
            "time",
            hint="start the server again",
        )


class _PlannedFile:
    """The changes of all statements, planned one after the other in a separate state."""

    def __init__(self, commands: Commands, next_number: int, rules: Sequence[Rule]) -> None:
        self.next_number = next_number
        self._rules = rules
        self.pins: dict[int, Command] = {}  # plans that are not pinned yet, by number
        self.lowered: dict[str, LoweredQuery] = {}
        self._commands = commands
        self._state = EngineState()
        self._changes: list[tuple[str, StateChange]] = []

    def add_all(
        self, statements: Sequence[FileStatement], matches: Sequence[PinMatch | None]
    ) -> None:
        """Plan statements, or use their pinned plans."""
        for each, match in zip(statements, matches, strict=True):
            with of_statement(each.text):
                change = self._pinned(each, match) or self._planned(each, match)
                if change.warning is None:
                    self._changes.append((each.text, change))
                    self._state.apply(sized(change, self._commands.shape(change)))

    def provided(self) -> EngineState:
        """The state after all changes; topics and schemas are created for it."""
        state = EngineState()
        for text, change in self._changes:
            with of_statement(text):
                state.apply(sized(change, self._commands.provide(change)))
        return state

    def _pinned(self, given: FileStatement, match: PinMatch | None) -> StateChange | None:
        """The change of a statement's plan; None if it does not match the current state."""
        if match is None or not match.is_same:
            return None
        command, commands = match.pin.command, self._commands
        change = change_of(command, commands.functions)
        basis = from_json((command.plan or {}).get("basis"), commands.functions)
        if basis != self._basis(given, change):
            return None
        is_missing = change.made is not None and commands.topics.shape(change.made.topic) is None
        if is_missing and isinstance(given.statement, st.CreateSource):
            return None  # as at the first time: it is created or refused
        return change

    def _planned(self, given: FileStatement, match: PinMatch | None) -> StateChange:
        if match is None:
            properties = with_engine(given.properties, self._commands.config)
            return self._new(given, properties, self._commands.config.kept)
        pinned = match.pin.command
        before = change_of(pinned, self._commands.functions).query
        properties = {**_engine_of(pinned), **given.properties}
        schemas = StatementSchemas(
            self._commands.registry, logged=pinned.schemas if match.is_same else {}
        )
        change = self._prepared(given, properties, pinned.original, schemas, match.pin.number)
        if before is not None and change.query is not None:
            try:
                change = _continued(before, change, change.query)
            except StatementFailed as error:
                logger.warning(
                    "query %s ends and a new one starts: its statement or its sources were "
                    "edited, and its state cannot be used: %s",
                    before.id,
                    error.message,
                )
                properties = with_engine(given.properties, self._commands.config)
                return self._new(given, properties, pinned.original)
        return self._to_pin(given, change, properties, pinned.original, schemas, match.pin.number)

    def _new(
        self,
        given: FileStatement,
        properties: Mapping[str, object],
        original: Mapping[str, object],
    ) -> StateChange:
        """The change of a statement with the next number."""
        schemas = StatementSchemas(self._commands.registry)
        number = self.next_number
        change = self._prepared(given, properties, original, schemas, number)
        if change.warning is not None:
            return change
        self.next_number += 1
        return self._to_pin(given, change, properties, original, schemas, number)

    def _prepared(
        self,
        given: FileStatement,
        properties: Mapping[str, object],
        original: Mapping[str, object],
        schemas: StatementSchemas,
        number: int,
    ) -> StateChange:
        commands = self._commands
        preparation = Preparation(
            self._state,
            commands.functions,
            commands.config.with_kept(original, properties),
            properties,
            schemas,
            commands.topics,
            original,
            rules=self._rules,
        )
        return preparation.prepare(given.statement, given.text, number)

    def _to_pin(
        self,
        given: FileStatement,
        change: StateChange,
        properties: Mapping[str, object],
        original: Mapping[str, object],
        schemas: StatementSchemas,
        number: int,
    ) -> StateChange:
        """Add a plan that must be pinned; returns the change as all servers will read it."""
        if change.warning is not None:
            return change
        command = Command(
            change.command_id,
            given.text,
            properties,
            schemas.answers or schemas.logged,
            original=original,
            plan={**change_to_json(change), "basis": to_json(self._basis(given, change))},
        )
        command = decode(*encode(command), "configs", number)
        self.pins[number] = command
        change = change_of(command, self._commands.functions)
        if change.query is not None:
            self.lowered[change.query.id] = self._commands.launcher.lowered(change.query, Tap())
        return change

    def _basis(self, given: FileStatement, change: StateChange) -> dict[str, object]:
        """The dependencies of a plan, besides its statement and the kept settings."""
        query, catalog = change.query, self._state.catalog
        names = {change.made.name} if change.made is not None else set()
        if query is not None:
            names |= {*query.planned.sources}
            names |= {query.sink.name} if query.sink is not None else set()
        sources = {
            name: replace(
                catalog.sources[name], query_id=None, statement="", partitions=None, replicas=None
            )
            for name in sorted(names & catalog.sources.keys())
        }
        words = {each.upper() for each in re.findall(r"\w+", given.text)}
        types = {name: catalog.types[name] for name in sorted(catalog.types) if name in words}
        return {"sources": sources, "types": types, "properties": dict(given.properties)}


def _engine_of(command: Command) -> dict[str, object]:
    """The engine of a query, on which it stays, because state and offsets belong to it."""
    return {name: value for name, value in command.properties.items() if name == "engine"}


def _continued(before: QueryInfo, change: StateChange, query: QueryInfo) -> StateChange:
    """A change whose query continues with the state of another; refused if it cannot."""
    planned = query.planned
    if query.id != before.id or _on(query) != _on(before):
        raise StatementFailed(f"query {query.id} runs on {_on(query)}, unlike {before.id} before")
    if planned.plan == before.planned.plan:
        return change
    check_upgrade(before.planned.plan, planned.plan)
    plan = upgraded(before.planned.plan, planned.plan)
    return replace(change, query=replace(query, planned=replace(planned, plan=plan)))


def _on(query: QueryInfo) -> object:
    return query.properties.get("engine", NATIVE)
