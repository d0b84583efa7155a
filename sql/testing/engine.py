"""TestEngine: statements without a broker: a catalog, topics in memory, queries that are built."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from broker.client.serde.rows.formats import format_of
from sql.analyse.replacement import altered, check_drop_type, created_type, dropped
from sql.analyse.sources import SourceAnalyser
from sql.backends.native.rows import row_options
from sql.catalog import Catalog, FormatInfo, SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.formats import abilities
from sql.functions.registry import FunctionRegistry
from sql.parse import ParsedStatement
from sql.plan import Sink
from sql.planner import PlannedQuery, Planner
from sql.syntax import statements as st
from sql.testing.inserting import inserted
from sql.testing.memory_registry import MemoryRegistry
from sql.testing.query_runs import TopicRecord
from sql.testing.registry_schemas import RegistrySchemas

PARTITIONS = 4


@dataclass(slots=True)
class Topic:
    """A topic in memory: all its records in one order."""

    name: str
    partitions: int = PARTITIONS
    records: list[TopicRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Query:
    """A persistent query that was built."""

    query_id: str
    plan: Sink
    sink: str
    settings: Mapping[str, object]


class TestEngine:
    """Carries out statements; queries are only built, whoever has the engine runs them."""

    __test__ = False  # the name begins with Test, but it is none

    def __init__(self, functions: FunctionRegistry, settings: Mapping[str, object]) -> None:
        """Nothing exists yet."""
        self.functions = functions
        self.settings = dict(settings)
        self.catalog = Catalog()
        self.registry = MemoryRegistry()
        self.topics: dict[str, Topic] = {}
        self.queries: dict[str, Query] = {}
        self.now_ms = 0
        self._next_query = 0

    def topic(self, name: str, partitions: int = PARTITIONS) -> Topic:
        """The topic of a name, which is made if there is none."""
        return self.topics.setdefault(name, Topic(name, partitions))

    def execute(self, parsed: ParsedStatement) -> None:
        """Carry out one statement."""
        statement = parsed.statement
        match statement:
            case st.CreateSource():
                self._create(statement, parsed.text)
            case st.CreateAsSelect() | st.InsertSelect():
                self._add_query(statement, parsed.text)
            case st.InsertValues():
                source, record = inserted(
                    statement, self.catalog, self.functions, self.registry, self.now_ms
                )
                self.append(source.topic, record)
            case st.SetProperty():
                self.settings[statement.name] = statement.value
            case st.UnsetProperty():
                self.settings.pop(statement.name, None)
            case _:
                self._change(statement)

    def append(self, topic: str, record: TopicRecord) -> None:
        """Write a record to a topic."""
        self.topic(topic).records.append(record)

    def _change(self, statement: st.Statement) -> None:
        match statement:
            case st.CreateType():
                made = created_type(statement, self.catalog)
                if made is not None:
                    self.catalog.types[statement.name] = made
            case st.DropType():
                if check_drop_type(statement, self.catalog):
                    del self.catalog.types[statement.name]
            case st.AlterSource():
                self.catalog.sources[statement.name] = altered(statement, self.catalog)
            case st.DropSource():
                self._drop(statement)
            case st.AssertTopic() | st.AssertSchema():
                self._assert(statement)
            case _:
                raise StatementFailed(f"{type(statement).__name__} cannot be tested")

    def _create(self, statement: st.CreateSource, text: str) -> None:
        analyser = SourceAnalyser(self.catalog, self.settings, RegistrySchemas(self.registry))
        info = analyser.create(statement, text)
        if info is None:
            return
        self.topic(info.topic, info.partitions or PARTITIONS)
        self.register_columns(info)
        self.catalog.sources[info.name] = info

    def register_columns(self, info: SourceInfo) -> None:
        """Schemas of columns that a statement names, unless the topic has some already."""
        for format_, columns, is_key in (
            (info.key_format, info.schema.key, True),
            (info.value_format, info.schema.value, False),
        ):
            self.register(info.topic, format_, columns, is_key=is_key)

    def register(
        self, topic: str, format_: FormatInfo, columns: tuple[Column, ...], *, is_key: bool
    ) -> None:
        """Register the schema of columns, unless there is one already."""
        subject = f"{topic}-{'key' if is_key else 'value'}"
        if not columns or not abilities(format_.name).inferred or format_.schema_id is not None:
            return
        if not self.registry.has_subject(subject):
            options = row_options(format_, is_key=is_key)
            self.registry.register(subject, format_of(format_.name).schema_of(columns, options))

    def _add_query(self, statement: st.CreateAsSelect | st.InsertSelect, text: str) -> None:
        planned = self._planned(statement, text)
        if planned is None:
            return
        info, plan = planned.sink, planned.plan
        assert info is not None
        assert isinstance(plan, Sink)
        query_id = self._query_id(statement, planned)
        if planned.creates_sink:
            info = replace(info, query_id=query_id)
        self.queries[query_id] = Query(query_id, plan, info.name, dict(self.settings))
        self.topic(info.topic, PARTITIONS)
        self.register_columns(info)
        self.catalog.sources[info.name] = info

    def _planned(
        self, statement: st.CreateAsSelect | st.InsertSelect, text: str
    ) -> PlannedQuery | None:
        planner = Planner(
            self.catalog, self.functions, self.settings, RegistrySchemas(self.registry)
        )
        return planner.plan(statement, text)

    def _query_id(
        self, statement: st.CreateAsSelect | st.InsertSelect, planned: PlannedQuery
    ) -> str:
        """The id of a new query; one that replaces another keeps its id."""
        if planned.query_id is not None:
            return planned.query_id
        number = self._next_query
        if isinstance(statement, st.InsertSelect):
            self._next_query += 1
            return f"INSERTQUERY_{number}"
        existing = self.catalog.sources.get(statement.name)
        if existing is not None and existing.query_id is not None:
            return existing.query_id
        self._next_query += 1
        return f"C{statement.kind.value[0]}AS_{statement.name}_{number}"

    def _drop(self, statement: st.DropSource) -> None:
        name = statement.name
        source = self.catalog.sources.get(name)
        own = None if source is None else source.query_id
        readers = [
            query.query_id
            for query in self.queries.values()
            if source is not None and name in sources_of(query.plan)
        ]
        writers = [
            query.query_id
            for query in self.queries.values()
            if query.sink == name and query.query_id != own
        ]
        found = dropped(statement, self.catalog, readers, writers)
        if found is None:
            return
        del self.catalog.sources[name]
        if own is not None:
            self.queries.pop(own, None)
        if statement.delete_topic:
            self.topics.pop(found.topic, None)

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


def sources_of(step: object) -> set[str]:
    """The names of the sources that a plan reads."""
    found = {step.source} if hasattr(step, "source") else set()
    for part in ("input", "left", "right"):
        if hasattr(step, part):
            found |= sources_of(getattr(step, part))
    return found
