"""Changes: the effects of statements on the catalog and on queries, computed before execution.

`Preparation.prepare` checks a statement against an EngineState and returns a StateChange. Applying
it only changes the EngineState, so that a whole request can be prepared in a sandbox first. The
engine then creates topics and schemas and starts and stops queries accordingly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from sql.analyse.replacement import altered, check_drop_type, created_type, dropped
from sql.analyse.sources import SchemaSource, SourceAnalyser
from sql.catalog import Catalog, SourceInfo
from sql.datatypes import DataType
from sql.engine.settings import NATIVE, SqlConfig, converted
from sql.engine.topics import TopicShape, check_size
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.planner import PlannedQuery, Planner
from sql.planner.upgrades import check_upgrade, upgraded
from sql.rewrite import RULES, Rule, rewritten
from sql.syntax import statements as st

Q = TypeVar("Q")

OR_REPLACE = "ksql.create.or.replace.enabled"
ACTIVE_LIMIT = "ksql.query.persistent.active.limit"

CommandStatement = (
    st.CreateSource
    | st.CreateAsSelect
    | st.InsertSelect
    | st.AlterSource
    | st.DropSource
    | st.CreateType
    | st.DropType
    | st.ControlQuery
    | st.AlterSystem
)
COMMANDS = CommandStatement.__args__


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A persistent query, as its statement created it."""

    id: str
    text: str
    planned: PlannedQuery
    properties: Mapping[str, object]
    # The server's settings at that time that it keeps.
    original: Mapping[str, object] = field(default_factory=dict)
    # Why it cannot run at all, or an empty string.
    unavailable: str = ""

    @property
    def sink(self) -> SourceInfo | None:
        """The sink; None for a SOURCE TABLE, which is only materialized."""
        return self.planned.sink

    def check_available(self) -> None:
        """Refuse to run if a required object, such as a function, is missing."""
        if self.unavailable:
            raise StatementFailed(
                self.unavailable,
                hint="install them and restart the server, or DROP the query's stream or table",
            )


def named(queries: Mapping[str, Q], query_id: str) -> Q | None:
    """The query with an id, ignoring case."""
    if query_id in queries:
        return queries[query_id]
    wanted = query_id.upper()
    return next((each for name, each in queries.items() if name.upper() == wanted), None)


@dataclass(slots=True)
class EngineState:
    """The catalog and the queries that commands have created."""

    catalog: Catalog = field(default_factory=Catalog)
    queries: dict[str, QueryInfo] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    # The sources from which a stream or table was created; kept when its query is terminated.
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def copy(self) -> "EngineState":
        """A copy, for preparing changes."""
        catalog = Catalog(dict(self.catalog.sources), dict(self.catalog.types))
        return EngineState(catalog, dict(self.queries), set(self.paused), dict(self.origins))

    def query_named(self, query_id: str) -> QueryInfo | None:
        """The query with an id, ignoring case: ids are written without quotes."""
        return named(self.queries, query_id)

    def readers(self, source: str) -> list[str]:
        """The queries that read a source."""
        return [each.id for each in self.queries.values() if source in each.planned.sources]

    def writers(self, source: str) -> list[str]:
        """The queries that write to a source."""
        return [
            each.id
            for each in self.queries.values()
            if each.sink is not None and each.sink.name == source
        ]

    def apply(self, change: "StateChange") -> None:
        """Apply a change."""
        for query_id in change.ended:
            self.queries.pop(query_id, None)
            self.paused.discard(query_id)
        if change.dropped is not None:
            self.catalog.sources.pop(change.dropped.name, None)
            self.origins.pop(change.dropped.name, None)
        if change.made is not None:
            self.catalog.sources[change.made.name] = change.made
            self.origins[change.made.name] = change.origins
        if change.query is not None:
            self.queries[change.query.id] = change.query
        if change.new_type is not None:
            self.catalog.types[change.new_type[0]] = change.new_type[1]
        if change.dropped_type is not None:
            self.catalog.types.pop(change.dropped_type, None)
        self.paused |= set(change.paused)
        self.paused -= set(change.resumed)


@dataclass(frozen=True, slots=True)
class StateChange:
    """The effect of a statement. With a warning it has none, which is not an error."""

    command_id: str
    message: str = ""
    warning: str | None = None
    made: SourceInfo | None = None
    origins: tuple[str, ...] = ()
    dropped: SourceInfo | None = None
    delete_topic: bool = False
    query: QueryInfo | None = None
    ended: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    new_type: tuple[str, DataType] | None = None
    dropped_type: str | None = None
    setting: tuple[str, str] | None = None  # of the server


class TopicShapes(Protocol):
    """The sizes of topics."""

    def shape(self, name: str) -> TopicShape | None:
        """The size of a topic; None if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class Preparation:
    """Computes the change of one statement, with the settings of its session."""

    state: EngineState
    functions: FunctionRegistry
    config: SqlConfig
    properties: Mapping[str, object]
    schemas: SchemaSource
    topics: TopicShapes
    # The server's settings that a query keeps.
    original: Mapping[str, object] = field(default_factory=dict)
    # A replayed statement was checked before: its topics may have changed since.
    replayed: bool = False
    rules: Sequence[Rule] = RULES

    def prepare(self, statement: CommandStatement, text: str, number: int) -> StateChange:
        """The change of a statement, as the command with a number; StatementFailed if invalid."""
        match statement:
            case st.CreateSource():
                return self._create(statement, text, number)
            case st.CreateAsSelect():
                return self._create_as(statement, text, number)
            case st.InsertSelect():
                return self._insert(statement, text, number)
            case st.AlterSource():
                made = altered(statement, self.state.catalog)
                return StateChange(
                    _command_id(statement.kind.value.lower(), statement.name, "alter"),
                    f"{statement.kind.value.capitalize()} altered",
                    made=made,
                    origins=self.state.origins.get(made.name, ()),
                )
            case st.DropSource():
                return self._drop(statement)
            case st.CreateType():
                return self._create_type(statement)
            case st.DropType():
                return self._drop_type(statement)
            case st.ControlQuery():
                return self._control(statement)
            case st.AlterSystem(name=name, value=value):
                self.config.check_override(name)
                converted(name, value)  # refuses an invalid value
                message = f"System property {name} was set to {value}."
                return StateChange(f"cluster/{name}/alter", message, setting=(name, value))

    # --- streams and tables -------------------------------------------------------------------

    def _create(self, statement: st.CreateSource, text: str, number: int) -> StateChange:
        self._check_or_replace(or_replace=statement.or_replace)
        kind = statement.kind.value.lower()
        command_id = _command_id(kind, statement.name, "create")
        analyser = SourceAnalyser(self.state.catalog, self.config, self.schemas)
        info = analyser.create(statement, text)
        if info is None:
            return StateChange(command_id, warning=self._exists(statement.name, kind))
        info = self._sized(info, needed=True)
        change = StateChange(command_id, f"{statement.kind.value.capitalize()} created", made=info)
        if not info.is_source or info.kind is not st.SourceKind.TABLE:
            return change
        return self._with_source_query(change, info, text, number)

    def _with_source_query(
        self, change: StateChange, info: SourceInfo, text: str, number: int
    ) -> StateChange:
        """The query that materializes a SOURCE TABLE, so that pull queries can read it."""
        query_id = f"CST_{info.name}_{number}"
        info = replace(info, query_id=query_id)
        tried = self.state.copy()
        tried.catalog.sources[info.name] = info
        planned = self._planner(tried.catalog).source_table(info.name)
        query = QueryInfo(query_id, text, planned, self.properties, self.original)
        self._check_limit()
        return replace(change, made=info, query=query, message=f"Created query with ID {query_id}")

    def _create_as(self, statement: st.CreateAsSelect, text: str, number: int) -> StateChange:
        self._check_or_replace(or_replace=statement.or_replace)
        kind = statement.kind.value.lower()
        command_id = _command_id(kind, statement.name, "create")
        planned = self._plan(statement, text)
        if planned is None:
            return StateChange(command_id, warning=self._exists(statement.name, kind))
        sink = planned.sink
        assert sink is not None, "its results are written"
        existing = self.state.catalog.sources.get(statement.name)
        replaced = None if existing is None else existing.query_id
        prefix = "CSAS" if statement.kind is st.SourceKind.STREAM else "CTAS"
        query_id = replaced or f"{prefix}_{statement.name}_{number}"
        before = self.state.queries.get(query_id)
        if before is None:
            self._check_limit()
        else:
            if not self.replayed:
                self._check_engine(before)
                check_upgrade(before.planned.plan, planned.plan)
            planned = replace(planned, plan=upgraded(before.planned.plan, planned.plan))
        info = replace(self._sized(sink, needed=False), query_id=query_id)
        planned = replace(planned, sink=info)
        return StateChange(
            command_id,
            f"Created query with ID {query_id}",
            made=info,
            origins=planned.sources,
            query=QueryInfo(query_id, text, planned, self.properties, self.original),
        )

    def _check_engine(self, before: QueryInfo) -> None:
        """Refuse to replace a query on another engine, which cannot use its state."""
        was, wanted = (each.get("engine", NATIVE) for each in (before.properties, self.properties))
        if was != wanted:
            raise StatementFailed(
                f"Cannot replace query '{before.id}': it runs on the {was} engine, and its state "
                f"would be lost on the {wanted} engine",
                hint=f"SET 'engine'='{was}', or DROP its stream or table and CREATE it again",
            )

    def _insert(self, statement: st.InsertSelect, text: str, number: int) -> StateChange:
        planned = self._plan(statement, text)
        assert planned is not None, "there is no IF NOT EXISTS"
        self._check_limit()
        query_id = planned.query_id or f"INSERTQUERY_{number}"
        if query_id in self.state.queries:
            raise StatementFailed(f"Query ID '{query_id}' already exists.")
        return StateChange(
            _command_id("stream", statement.target, "create"),
            f"Created query with ID {query_id}",
            query=QueryInfo(query_id, text, planned, self.properties, self.original),
        )

    def _plan(
        self, statement: st.CreateAsSelect | st.InsertSelect, text: str
    ) -> PlannedQuery | None:
        planned = self._planner(self.state.catalog).plan(statement, text)
        return None if planned is None else rewritten(planned, self.rules)

    def _planner(self, catalog: Catalog) -> Planner:
        return Planner(catalog, self.functions, self.config, self.schemas)

    def _sized(self, info: SourceInfo, *, needed: bool) -> SourceInfo:
        """The source with the size of its topic; refused if the topic must exist and does not."""
        found = self.topics.shape(info.topic)
        if found is None:
            if needed and info.partitions is None and not self.replayed:
                raise StatementFailed(
                    f"Topic '{info.topic}' does not exist. If you want to create a new topic for "
                    "the stream/table please re-run the statement providing the required "
                    "'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS'). "
                    f"For example: CREATE {info.kind.value} {info.name} ... "
                    f"WITH (KAFKA_TOPIC='{info.topic}', PARTITIONS=1);"
                )
            return info
        if not self.replayed:
            check_size(info.topic, found, partitions=info.partitions, replicas=info.replicas)
        return replace(info, partitions=found.partitions, replicas=found.replicas)

    def _check_or_replace(self, *, or_replace: bool) -> None:
        if or_replace and not self.config.flag(OR_REPLACE):
            raise StatementFailed(f"Cannot CREATE OR REPLACE: it is disabled by '{OR_REPLACE}'")

    def _check_limit(self) -> None:
        limit = self.config.whole(ACTIVE_LIMIT)
        if len(self.state.queries) >= limit:
            raise StatementFailed(
                f"Not executing statement(s) as it would cause the number of active, persistent "
                f"queries to exceed the configured limit. Use the TERMINATE command to terminate "
                f"existing queries. If you need to increase the limit, change the "
                f"`{ACTIVE_LIMIT}` configuration. Current persistent query count: "
                f"{len(self.state.queries)}. Configured limit: {limit}."
            )

    def _exists(self, name: str, kind: str) -> str:
        existing = self.state.catalog.sources[name]
        return (
            f"Cannot add {kind} `{name}`: A {existing.shown_kind} with the same name already "
            "exists."
        )

    def _drop(self, statement: st.DropSource) -> StateChange:
        name = statement.name
        command_id = _command_id(statement.kind.value.lower(), name, "drop")
        source = self.state.catalog.sources.get(name)
        own = None if source is None else source.query_id
        self._check_origins(name)
        found = dropped(
            statement,
            self.state.catalog,
            [each for each in self.state.readers(name) if each != own],
            [each for each in self.state.writers(name) if each != own],
        )
        if found is None:
            return StateChange(command_id, warning=f"Source `{name}` does not exist.")
        if statement.delete_topic:
            self._check_topic_unshared(found)
        return StateChange(
            command_id,
            f"Source `{name}` (topic: {found.topic}) was dropped.",
            dropped=found,
            delete_topic=statement.delete_topic,
            ended=() if own is None else (own,),
        )

    def _check_origins(self, name: str) -> None:
        made_of_it = [
            each for each, origins in self.state.origins.items() if name in origins and each != name
        ]
        if made_of_it:
            raise StatementFailed(
                f"Cannot drop {name}.\n"
                "The following streams and/or tables read from this source: "
                f"[{', '.join(sorted(made_of_it))}].\n"
                f"You need to drop them before dropping {name}."
            )

    def _check_topic_unshared(self, source: SourceInfo) -> None:
        others = [
            each.name
            for each in self.state.catalog.sources.values()
            if each.topic == source.topic and each.name != source.name
        ]
        if others:
            raise StatementFailed(
                f"Refusing to delete topic. Found other data sources ({', '.join(sorted(others))}) "
                f"using topic {source.topic}"
            )

    # --- types and queries --------------------------------------------------------------------

    def _create_type(self, statement: st.CreateType) -> StateChange:
        command_id = f"type/{statement.name}/create"
        made = created_type(statement, self.state.catalog)
        if made is None:
            return StateChange(command_id, warning=f"{statement.name} is already registered")
        return StateChange(
            command_id,
            f"Registered custom type with name '{statement.name}' and SQL type {made}",
            new_type=(statement.name, made),
        )

    def _drop_type(self, statement: st.DropType) -> StateChange:
        command_id = f"type/{statement.name}/drop"
        if not check_drop_type(statement, self.state.catalog):
            return StateChange(command_id, warning=f"Type '{statement.name}' does not exist")
        return StateChange(
            command_id, f"Dropped type '{statement.name}'", dropped_type=statement.name
        )

    def _control(self, statement: st.ControlQuery) -> StateChange:
        given, action = statement.query_id, statement.action
        command_id = f"{action.value.lower()}/{given or 'ALL'}/execute"
        found = None if given is None else self.state.query_named(given)
        if given is not None and found is None:
            raise StatementFailed(f"Unknown queryId: {given}")
        if action is st.QueryAction.TERMINATE and found is not None and found.sink is None:
            raise StatementFailed(
                f"Cannot terminate query '{found.id}' as it is linked to a source table.",
                hint="DROP the table instead",
            )
        ids = tuple(self.state.queries) if found is None else (found.id,)
        match action:
            case st.QueryAction.TERMINATE:
                ended = tuple(each for each in ids if self.state.queries[each].sink is not None)
                return StateChange(command_id, "Query terminated.", ended=ended)
            case st.QueryAction.PAUSE:
                return StateChange(command_id, "Query paused.", paused=ids)
            case st.QueryAction.RESUME:
                return StateChange(command_id, "Query resumed.", resumed=ids)


def _command_id(kind: str, name: str, action: str) -> str:
    return f"{kind}/`{name}`/{action}"
