"""DESCRIBE and EXPLAIN: details of sources and queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sql.catalog import SourceInfo
from sql.engine import entities as en
from sql.engine.changes import EngineState, QueryInfo
from sql.engine.fields import column_fields, schema_fields
from sql.engine.pushing import PushQuery
from sql.engine.spark_progress import SparkProgress
from sql.engine.spark_runtime import SparkRuntime
from sql.engine.topic_statistics import Statistics, TopicStatistics, of_host
from sql.engine.topics import Topics
from sql.errors import StatementFailed
from sql.plan import topics_read
from sql.planner import PlannedQuery
from sql.planner.explaining import explain_text
from sql.queries import QueryRuntime, shown_state

PERSISTENT = "PERSISTENT"
PUSH = "PUSH"
RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Describes sources and queries."""

    state: EngineState
    topics: Topics
    runtimes: Mapping[str, QueryRuntime]
    push_queries: Mapping[str, PushQuery]
    host: str
    statistics: Statistics

    # --- queries ------------------------------------------------------------------------------

    def queries(self) -> tuple[en.RunningQuery, ...]:
        """All running queries of this server."""
        return (
            *(self.running(each) for _, each in sorted(self.state.queries.items())),
            *(self.running_push(each) for _, each in sorted(self.push_queries.items())),
        )

    def running(self, query: QueryInfo) -> en.RunningQuery:
        """A persistent query in a list."""
        state, sink = self._state_of(query.id), query.sink
        return en.RunningQuery(
            query.text,
            () if sink is None else (sink.name,),
            () if sink is None else (sink.topic,),
            query.id,
            {state: 1},
            PERSISTENT,
            state,
            self._progress_of(query.id),
        )

    def running_push(self, query: PushQuery) -> en.RunningQuery:
        """A push query in a list."""
        return en.RunningQuery(query.text, (), (), query.query_id, {RUNNING: 1}, PUSH, RUNNING)

    def _state_of(self, query_id: str) -> str:
        runtime = self.runtimes.get(query_id)
        return RUNNING if runtime is None else shown_state(runtime.state)

    def _progress_of(self, query_id: str) -> SparkProgress | None:
        runtime = self.runtimes.get(query_id)
        return runtime.progress if isinstance(runtime, SparkRuntime) else None

    def all_details(self) -> tuple[en.QueryDetails, ...]:
        """The details of all queries."""
        return (
            *(self.details(each) for _, each in sorted(self.state.queries.items())),
            *(self.push_details(each) for _, each in sorted(self.push_queries.items())),
        )

    def details(self, query: QueryInfo) -> en.QueryDetails:
        """The details of a persistent query."""
        runtime = self.runtimes.get(query.id)
        state, sink = self._state_of(query.id), query.sink
        failures = () if runtime is None else runtime.failures
        return en.QueryDetails(
            query.id,
            query.text,
            window_type(sink),
            schema_fields(query.planned.schema),
            query.planned.sources,
            () if sink is None else (sink.name,),
            "" if runtime is None else runtime.describe(),
            explain_text(query.planned.plan, query.planned.rules),
            dict(query.properties),
            {self.host: state},
            PERSISTENT,
            tuple(
                en.QueryFailure(each.timestamp_ms, each.message, each.type.value)
                for each in failures
            ),
            state=state,
            progress=self._progress_of(query.id),
        )

    def push_details(self, query: PushQuery) -> en.QueryDetails:
        """The details of a push query."""
        found = self.planned_details(query.query_id, query.text, query.planned, "", {})
        return _running_details(found, self.host)

    def planned_details(
        self,
        query_id: str,
        text: str,
        planned: PlannedQuery,
        topology: str,
        properties: Mapping[str, object],
    ) -> en.QueryDetails:
        """The details of a query that is not running."""
        sink = planned.sink
        fields = (
            column_fields(planned.plan.shape.row) if sink is None else schema_fields(planned.schema)
        )
        return en.QueryDetails(
            query_id,
            text,
            window_type(sink),
            fields,
            planned.sources,
            () if sink is None else (sink.name,),
            topology,
            explain_text(planned.plan, planned.rules),
            dict(properties),
            {},
            PUSH if sink is None else PERSISTENT,
        )

    # --- sources ------------------------------------------------------------------------------

    def source(self, name: str, *, extended: bool) -> en.SourceDetails:
        """The details of a stream or table."""
        source = self.state.catalog.sources.get(name)
        if source is None:
            raise StatementFailed(f"Could not find STREAM/TABLE '{name}' in the Metastore")
        return self.source_details(source, extended=extended)

    def source_details(self, source: SourceInfo, *, extended: bool) -> en.SourceDetails:
        """The details of an existing source."""
        read = self._queries(self.state.readers(source.name))
        write = self._queries(self.state.writers(source.name))
        shape = self.topics.shape(source.topic) if extended else None
        measured = self._measured(source) if extended else TopicStatistics()
        derived = [name for name, origins in self.state.origins.items() if source.name in origins]
        return en.SourceDetails(
            name=source.name,
            window_type=window_type(source),
            read_queries=read,
            write_queries=write,
            fields=schema_fields(source.schema),
            type=source.kind.value,
            timestamp="" if source.timestamp is None else source.timestamp.name,
            statistics=measured.text,
            error_stats=measured.failures_text,
            extended=extended,
            key_format=source.key_format.name,
            value_format=source.value_format.name,
            topic=source.topic,
            partitions=0 if shape is None else shape.partitions,
            replication=0 if shape is None else shape.replicas,
            statement=source.statement,
            query_offset_summaries=self._offsets(write) if extended else (),
            source_constraints=tuple(sorted(derived)),
            cluster_statistics=of_host(measured.messages, self.host),
            cluster_error_stats=of_host(measured.failures, self.host),
        )

    def _measured(self, source: SourceInfo) -> TopicStatistics:
        ids = {*self.state.readers(source.name), *self.state.writers(source.name)}
        running = {each: self.runtimes[each] for each in sorted(ids) if each in self.runtimes}
        self.statistics.keep(self.runtimes)
        return self.statistics.of(source.topic, running)

    def _queries(self, ids: Iterable[str]) -> tuple[en.RunningQuery, ...]:
        return tuple(self.running(self.state.queries[each]) for each in sorted(ids))

    def _offsets(self, queries: Iterable[en.RunningQuery]) -> tuple[en.GroupOffsets, ...]:
        found = []
        for each in queries:
            runtime = self.runtimes.get(each.id)
            if runtime is None:
                continue
            group = runtime.application_id
            topics = topics_read(self.state.queries[each.id].planned.plan)
            found.append(en.GroupOffsets(group, tuple(self._topic(group, name) for name in topics)))
        return tuple(found)

    def _topic(self, group: str, topic: str) -> en.TopicOffsets:
        places = self.topics.offsets(group, topic)
        return en.TopicOffsets(topic, tuple(en.PartitionOffsets(*each) for each in places))


def _running_details(details: en.QueryDetails, host: str) -> en.QueryDetails:
    return replace(details, ksql_host_query_status={host: RUNNING}, state=RUNNING)


def window_type(source: SourceInfo | None) -> str | None:
    """The kind of a source's windows."""
    return None if source is None or source.window is None else source.window.kind.value
