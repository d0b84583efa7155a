"""Planner: converts statements with a query to plans.

The order of steps is fixed: FROM with joins, WHERE, PARTITION BY, table functions, then optionally
GROUP BY with HAVING, the projection, and the sink.
"""

from dataclasses import dataclass, replace

from sql.analyse.replacement import check_replacement
from sql.analyse.sources import NoSchemas, SchemaSource
from sql.catalog import Catalog, SourceInfo
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.plan import PlanNode, Sink
from sql.planner.context import Destination, QueryPlan
from sql.planner.query_planner import QueryPlanner
from sql.planner.references import FromSource
from sql.planner.relations import scan, unknown_source
from sql.planner.sinks import (
    SinkPlanner,
    check_insertable,
    check_target,
)
from sql.properties import Settings, WithClause, read_query_id, read_sink_properties
from sql.schema import Schema
from sql.syntax.queries import EmitClause, Query
from sql.syntax.statements import CreateAsSelect, InsertSelect, Select


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query's plan: with a Sink if its results are written, without one for clients."""

    plan: PlanNode
    schema: Schema
    is_table: bool
    sources: tuple[str, ...]
    sink: SourceInfo | None = None
    creates_sink: bool = False
    query_id: str | None = None  # from the statement
    emit: EmitClause = EmitClause.CHANGES
    limit: int | None = None
    rules: tuple[str, ...] = ()  # the rules that have rewritten the plan


@dataclass(slots=True)
class Planner:
    """Creates plans; the catalog is not changed."""

    catalog: Catalog
    functions: FunctionRegistry
    settings: Settings
    schemas: SchemaSource

    def __init__(
        self,
        catalog: Catalog,
        functions: FunctionRegistry,
        settings: Settings,
        schemas: SchemaSource | None = None,
    ) -> None:
        """`settings` are the properties of the configuration by name."""
        self.catalog = catalog
        self.functions = functions
        self.settings = settings
        self.schemas = schemas or NoSchemas()

    def plan(
        self, statement: CreateAsSelect | InsertSelect | Select, text: str = ""
    ) -> PlannedQuery | None:
        """The plan of a statement; None if the object exists, with IF NOT EXISTS."""
        match statement:
            case CreateAsSelect():
                return self._create(statement, text)
            case InsertSelect():
                return self._insert(statement)
            case Select(query=query):
                return self._select(query)

    def source_table(self, name: str) -> PlannedQuery:
        """The plan that stores a SOURCE TABLE for pull queries."""
        source = self.catalog.sources[name]
        node = scan(FromSource(name, source), "KsqlTopic/Source", materialized=True)
        return PlannedQuery(node, source.schema, True, (name,))

    def _query(self, query: Query, destination: Destination | None = None) -> QueryPlan:
        return QueryPlanner(self.catalog, self.functions, self.settings, query, destination).plan()

    def _select(self, query: Query) -> PlannedQuery:
        found = self._query(query)
        result = found.result
        return PlannedQuery(
            found.node,
            result.schema,
            result.is_table,
            found.sources,
            emit=query.emit,
            limit=query.limit,
        )

    def _create(self, statement: CreateAsSelect, text: str) -> PlannedQuery | None:
        existing = self.catalog.sources.get(statement.name)
        kind = statement.kind.value.lower()
        if existing is not None and not statement.or_replace:
            if statement.if_not_exists:
                return None
            raise StatementFailed(
                f"Cannot add {kind} '{statement.name}': A {existing.shown_kind} with the same name "
                "already exists"
            )
        if existing is not None and existing.is_source:
            raise StatementFailed(
                f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on "
                f"source {existing.shown_kind}s."
            )
        clause = read_sink_properties(statement.properties)
        what = f"CREATE {statement.kind.value} AS SELECT"
        _check_limit(statement.query, what)
        destination = Destination(statement.name, what, timestamp=clause.timestamp)
        found = self._query(statement.query, destination)
        made = self._new_sink(statement, clause, found)
        made = replace(made, statement=text)
        if existing is not None:
            check_replacement(existing, made)
        return PlannedQuery(
            self._sink(found, made, statement.name),
            made.schema,
            found.result.is_table,
            found.sources,
            sink=made,
            creates_sink=True,
            emit=statement.query.emit,
        )

    def _new_sink(
        self, statement: CreateAsSelect, clause: WithClause, found: QueryPlan
    ) -> SourceInfo:
        left = self.catalog.sources[found.sources[0]]
        planner = SinkPlanner(self.settings, self.schemas)
        return planner.sink(statement, clause, left, found.result)

    def _sink(self, found: QueryPlan, sink: SourceInfo, name: str) -> Sink:
        shape = replace(found.node.shape, window=sink.window)
        return Sink(
            name, found.node, sink.topic, sink.key_format, sink.value_format, sink.timestamp, shape
        )

    def _insert(self, statement: InsertSelect) -> PlannedQuery:
        target = self.catalog.sources.get(statement.target)
        if target is None:
            place = statement.position
            where = f"Line: {place.line}, Col: {place.column + 12}: " if place.line else ""
            raise unknown_source(statement.target, self.catalog, place=where)
        check_insertable(target)
        query_id = read_query_id(statement.properties)
        _check_limit(statement.query, "INSERT INTO")
        found = self._query(statement.query, Destination(target.name, "INSERT INTO", target))
        check_target(target, found.result)
        return PlannedQuery(
            self._sink(found, target, target.name),
            target.schema,
            found.result.is_table,
            found.sources,
            sink=target,
            query_id=query_id,
            emit=statement.query.emit,
        )


def _check_limit(query: Query, what: str) -> None:
    if query.limit is not None:
        raise StatementFailed(f"{what} statements don't support LIMIT clause.")
