"""ReadOnlyStatements: SHOW, DESCRIBE and EXPLAIN."""

from dataclasses import dataclass

from sql.engine import entities as en
from sql.engine import listing
from sql.engine.changes import EngineState, QueryInfo, named
from sql.engine.commands import Commands
from sql.engine.connectors import Connectors
from sql.engine.descriptions import Descriptions
from sql.engine.entities import Entity
from sql.engine.launching import QueryLauncher
from sql.engine.session import SqlSession
from sql.engine.settings import SqlConfig
from sql.engine.topic_statistics import Statistics
from sql.engine.topics import Topics
from sql.engine.transient_queries import TransientQueries
from sql.engine.trial import wrong_statement
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.syntax import statements as st


@dataclass(frozen=True, slots=True)
class ReadOnlyStatements:
    """Answers statements that list or describe objects and queries."""

    config: SqlConfig
    functions: FunctionRegistry
    topics: Topics
    commands: Commands
    transient_queries: TransientQueries
    launcher: QueryLauncher
    connectors: Connectors
    statistics: Statistics

    def answer(self, session: SqlSession, statement: st.Statement, text: str) -> Entity:
        """The entity of a statement that changes nothing."""
        if isinstance(statement, st.Show):
            return self._show(session, statement, text)
        return self._describe(session, statement, text)

    @property
    def _state(self) -> EngineState:
        return self.commands.state

    def descriptions(self) -> Descriptions:
        """The current descriptions of sources and queries."""
        runtimes = {name: each.runtime for name, each in self.commands.running.items()}
        host = self.config.address
        return Descriptions(
            self._state.copy(),
            self.topics,
            runtimes,
            dict(self.transient_queries.push_queries),
            host,
            self.statistics,
        )

    def _show(self, session: SqlSession, statement: st.Show, text: str) -> Entity:
        catalog, what = self._state.catalog, statement.what
        kinds = {
            st.Listing.STREAMS: st.SourceKind.STREAM,
            st.Listing.TABLES: st.SourceKind.TABLE,
        }
        match what:
            case st.Listing.STREAMS | st.Listing.TABLES:
                if statement.extended:
                    return self._describe_all(kinds[what], text, extended=True)
                return listing.sources_list(catalog, kinds[what], text)
            case st.Listing.QUERIES:
                descriptions = self.descriptions()
                if statement.extended:
                    return en.QueryDescriptions(text, descriptions.all_details())
                return en.QueriesList(text, descriptions.queries())
            case st.Listing.TOPICS | st.Listing.ALL_TOPICS:
                return listing.TopicsShown(self.topics, self.config).listed(
                    text, everything=what is st.Listing.ALL_TOPICS, extended=statement.extended
                )
            case st.Listing.PROPERTIES:
                return listing.properties_list(self.config, session.properties, text)
            case st.Listing.FUNCTIONS:
                return listing.functions_list(self.functions, text)
            case st.Listing.TYPES:
                return listing.types_list(catalog, text)
            case st.Listing.VARIABLES:
                return listing.variables_list(session.variables, text)
            case _:
                return self.connectors.show(statement, text)

    def _describe(self, session: SqlSession, statement: st.Statement, text: str) -> Entity:
        match statement:
            case st.DescribeSource(name=name, extended=extended):
                found = self.descriptions().source(name, extended=extended)
                return en.SourceDescription(text, found)
            case st.DescribeSources(kind=kind, extended=extended):
                return self._describe_all(kind, text, extended=extended)
            case st.DescribeFunction(name=name):
                return listing.function_description(self.functions, name, text)
            case st.DescribeConnector():
                return self.connectors.describe(statement, text)
            case st.Explain():
                return self._explain(session, statement, text)
            case _:
                raise wrong_statement(statement)

    def _describe_all(self, kind: st.SourceKind, text: str, *, extended: bool) -> Entity:
        descriptions = self.descriptions()
        found = listing.sources(self._state.catalog, kind)
        return en.SourceDescriptions(
            text, tuple(descriptions.source_details(each, extended=extended) for each in found)
        )

    def _explain(self, session: SqlSession, statement: st.Explain, text: str) -> Entity:
        descriptions = self.descriptions()
        if statement.query_id is not None:
            pushed = named(self.transient_queries.push_queries, statement.query_id)
            query = self._state.query_named(statement.query_id)
            if pushed is not None:
                details = descriptions.push_details(pushed)
            elif query is not None:
                details = descriptions.details(query)
            else:
                raise StatementFailed(
                    f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view "
                    "the full set of queries."
                )
            return en.QueryDescription(text, details)
        explained = statement.statement
        if not isinstance(explained, st.CreateAsSelect | st.InsertSelect | st.Select):
            raise StatementFailed("The provided statement does not run a ksql query")
        planned = self.transient_queries.planned(session, explained)
        topology = ""
        if planned.sink is not None:
            query = QueryInfo("", text, planned, session.properties)
            topology = self.launcher.topology(query)[0].describe()
        return en.QueryDescription(
            text, descriptions.planned_details("", text, planned, topology, session.properties)
        )
