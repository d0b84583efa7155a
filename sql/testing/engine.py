"""TestEngine: executes statements without a broker, with a catalog and topics in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sql.catalog import Catalog
from sql.engine.changes import COMMANDS, EngineState, Preparation, StateChange
from sql.engine.registered_schemas import StatementSchemas, register_schemas
from sql.engine.settings import SqlConfig
from sql.engine.topics import TopicShape
from sql.errors import SqlError, StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.parse import ParsedStatement
from sql.plan import Sink
from sql.planner.upgrades import check_upgrade
from sql.rewrite import RULES, Rule
from sql.syntax import statements as st
from sql.testing.inserting import inserted
from sql.testing.memory_registry import MemoryRegistry
from sql.testing.query_runs import TopicRecord

PARTITIONS = 4


@dataclass(slots=True)
class Topic:
    """A topic in memory: all its records in one order."""

    name: str
    partitions: int = PARTITIONS
    records: list[TopicRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BuiltQuery:
    """A persistent query, with its plan."""

    query_id: str
    plan: Sink
    settings: Mapping[str, object]


class NoTopicShapes:
    """Accepts any topics of statements: the size is that in the statement."""

    def shape(self, name: str) -> TopicShape | None:
        """Always unknown."""
        return None


class TestEngine:
    """Executes statements; queries are only planned, and the caller runs them."""

    __test__ = False  # the name begins with Test, but it is not a test

    def __init__(
        self,
        functions: FunctionRegistry,
        settings: Mapping[str, object],
        rules: Sequence[Rule] = RULES,
    ) -> None:
        """`rules` rewrite the plans."""
        self.functions = functions
        self.settings = dict(settings)
        self.rules = tuple(rules)
        self.registry = MemoryRegistry()
        self.topics: dict[str, Topic] = {}
        self.queries: dict[str, BuiltQuery] = {}
        self.now_ms = 0
        self._state = EngineState()
        self._next_query = 0

    @property
    def catalog(self) -> Catalog:
        """The streams, tables and types."""
        return self._state.catalog

    def topic(self, name: str, partitions: int = PARTITIONS) -> Topic:
        """The topic with a name, which is created if it does not exist."""
        return self.topics.setdefault(name, Topic(name, partitions))

    def append(self, topic: str, record: TopicRecord) -> None:
        """Write a record to a topic."""
        self.topic(topic).records.append(record)

    def execute(self, parsed: ParsedStatement) -> None:
        """Execute one statement."""
        statement = parsed.statement
        match statement:
            case st.InsertValues():
                topic, record = inserted(
                    statement, self.catalog, self.functions, self.registry, self.now_ms
                )
                self.append(topic, record)
            case st.SetProperty():
                self.settings[statement.name] = statement.value
            case st.UnsetProperty():
                self.settings.pop(statement.name, None)
            case st.AssertTopic() | st.AssertSchema():
                self._assert(statement)
            case _ if isinstance(statement, COMMANDS):
                preparation = self._preparation()
                self._apply(preparation.prepare(statement, parsed.text, self._next_query))
            case _:
                raise StatementFailed(f"{type(statement).__name__} cannot be tested")

    def _preparation(self) -> Preparation:
        return Preparation(
            self._state,
            self.functions,
            SqlConfig(known_settings(self.settings)),
            dict(self.settings),
            StatementSchemas(self.registry),
            NoTopicShapes(),
            replayed=True,
            rules=self.rules,
        )

    def _apply(self, change: StateChange) -> None:
        query = change.query
        if query is not None:
            before = self._state.queries.get(query.id)
            if before is None:
                self._next_query += 1
            else:
                check_upgrade(before.planned.plan, query.planned.plan)
        if change.made is not None:
            partitions = PARTITIONS if query is not None else change.made.partitions
            self.topic(change.made.topic, partitions or PARTITIONS)
            register_schemas(change.made, self.registry)
        self._state.apply(change)
        for query_id in change.ended:
            self.queries.pop(query_id, None)
        if query is not None and isinstance(query.planned.plan, Sink):
            self.queries[query.id] = BuiltQuery(query.id, query.planned.plan, query.properties)
        if change.dropped is not None and change.delete_topic:
            self.topics.pop(change.dropped.topic, None)

    def _assert(self, statement: st.AssertTopic | st.AssertSchema) -> None:
        if isinstance(statement, st.AssertTopic):
            found = statement.topic in self.topics
            what = f"Topic {statement.topic}"
        else:
            subject = statement.subject
            found = subject is not None and self.registry.has_subject(subject)
            what = f"Schema with subject name {subject}"
        if found is not statement.exists:
            raise StatementFailed(f"{what} {'exists' if found else 'does not exist'}")


def known_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that a server has; cases may contain settings of ksqlDB's test runner."""
    result: dict[str, object] = {}
    for name, value in settings.items():
        try:
            SqlConfig({name: value})
        except SqlError:
            continue
        result[name] = value
    return result
