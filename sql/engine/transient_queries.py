"""TransientQueries: push and pull queries."""

import itertools
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Protocol

from broker.client.opening import Target
from broker.clock import Clock
from broker.serde.registry.api import SchemaRegistry
from sql.engine.commands import Commands
from sql.engine.launching import QueryLauncher
from sql.engine.pull_rules import check_key_values, check_without_scans
from sql.engine.pulling import check_pull, pull_plan, stream_rows, table_rows
from sql.engine.pushing import PushQuery
from sql.engine.registered_schemas import StatementSchemas
from sql.engine.results import PullRows, QueryResult
from sql.engine.session import SqlSession
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.planner import PlannedQuery, Planner
from sql.rewrite import rewritten
from sql.rows.row_format import Row
from sql.syntax import statements as st
from sql.syntax.queries import EmitClause
from streams.errors import StoreNotReady

STORE_WAIT_MS = 20_000
PUSH_V2 = "ksql.query.push.v2.enabled"


class TooManyPushQueries(StatementFailed):
    """The limit of push queries is reached; ksqlDB's error 40003."""


class PullPeers(Protocol):
    """The other servers of the service, for pull queries on their partitions."""

    def pull(self, host: str, text: str, properties: Mapping[str, object]) -> Iterator[Row]:
        """The rows of a query at another server, from its own partitions only."""
        ...


class TransientQueries:
    """Plans and starts push and pull queries. Thread-safe."""

    def __init__(  # noqa: PLR0913 - what queries stand on
        self,
        target: Target,
        *,
        registry: SchemaRegistry | None,
        config: SqlConfig,
        clock: Clock,
        functions: FunctionRegistry,
        commands: Commands,
        launcher: QueryLauncher,
        peers: PullPeers | None = None,
    ) -> None:
        self._peers = peers
        self._target = target
        self._registry = registry
        self._config = config
        self._clock = clock
        self._functions = functions
        self._commands = commands
        self._launcher = launcher
        self._push_queries: dict[str, PushQuery] = {}
        self._numbers = itertools.count(1)

    def begin(
        self, session: SqlSession, statement: st.Select, text: str, *, local: bool = False
    ) -> QueryResult:
        """Start a query; the caller closes the result. `local`: do not send it to other servers."""
        if statement.query.emit is EmitClause.NOTHING:
            return self._pull(session, statement, text, local=local)
        return self._push(session, statement, text)

    def close(self) -> None:
        """End all push queries."""
        for each in list(self._push_queries.values()):
            each.close()

    def planned(
        self, session: SqlSession, statement: st.CreateAsSelect | st.InsertSelect | st.Select
    ) -> PlannedQuery:
        """The plan of a statement, with the current catalog."""
        config = self._config.with_session(session.properties)
        schemas = StatementSchemas(self._registry)
        planner = Planner(self._commands.state.catalog, self._functions, config, schemas)
        planned = planner.plan(statement)
        if planned is None:
            raise StatementFailed("the statement has no effect: the source already exists")
        return rewritten(planned)

    def _push(self, session: SqlSession, statement: st.Select, text: str) -> PushQuery:
        planned = self.planned(session, statement)
        limit = self._config.whole("ksql.max.push.queries")
        if len(self._push_queries) >= limit:
            raise TooManyPushQueries(
                "Maximum number of push queries exceeded. Maximum allowed: "
                f"{limit}. Current: {len(self._push_queries)}"
            )
        query = self._tapped(session, statement, text, planned)
        if query is None:
            query = self._launcher.push(text, planned, session.properties, self._forget)
        self._push_queries[query.query_id] = query
        try:
            query.start()
        except BaseException:
            query.close()
            raise
        return query

    def _tapped(
        self, session: SqlSession, statement: st.Select, text: str, planned: PlannedQuery
    ) -> PushQuery | None:
        """The query as a subscriber of the query that writes its source, if possible."""
        config = self._config.with_session(session.properties)
        if not config.flag(PUSH_V2) or config["auto.offset.reset"] != "latest":
            return None
        state, query = self._commands.state, statement.query
        source = state.catalog.sources[planned.sources[0]]
        writers = state.writers(source.name)
        simple = not (query.joins or query.window or query.group_by or query.partition_by)
        if not simple or query.having is not None or query.emit is not EmitClause.CHANGES:
            return None
        running = self._commands.running.get(writers[0]) if len(writers) == 1 else None
        if running is None:
            return None
        try:
            selecting = pull_plan(planned.plan)
        except StatementFailed:
            return None  # it uses columns that only records of a topic have
        running.runtime.wait_running(STORE_WAIT_MS)
        return self._launcher.tapped(text, planned, running.tap, selecting, self._forget)

    def _forget(self, query: PushQuery) -> None:
        self._push_queries.pop(query.query_id, None)

    @property
    def push_queries(self) -> Mapping[str, PushQuery]:
        """The running push queries."""
        return dict(self._push_queries)

    def _pull(
        self, session: SqlSession, statement: st.Select, text: str, *, local: bool
    ) -> QueryResult:
        check_pull(statement.query)
        plan = pull_plan(self.planned(session, statement).plan)
        limit = statement.query.limit
        query_id = f"query_{self._clock.now_ms()}_{next(self._numbers)}"
        source = self._commands.state.catalog.sources[plan.scan.source]
        if source.kind is st.SourceKind.STREAM:
            rows = stream_rows(plan, self._target, self._registry)
            return PullRows(query_id, plan.plain_columns, rows, limit, has_final_message=True)
        running = self._commands.running.get(source.query_id or "")
        if running is None or running.where is None:
            raise StatementFailed(
                f"The `{source.name}` table isn't queryable. To derive a queryable table, you can "
                f"do 'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM {source.name}'. "
                "See https://cnfl.io/queries for more info."
            )
        where = statement.query.where
        check_key_values(where, source)
        check_without_scans(where, source, self._config.with_session(session.properties))
        store = running.where.store
        running.runtime.wait_running(STORE_WAIT_MS)
        others = [] if local else running.runtime.elsewhere(store)
        try:
            stores = running.runtime.stores(store)
        except StoreNotReady as error:
            if not others and not local:
                raise StatementFailed(
                    f"Unable to execute pull query. The table `{source.name}` is not ready: "
                    f"{error.message}",
                    hint=error.hint,
                ) from error
            stores = []
        found = table_rows(plan, running.where, stores)
        if others:
            found = chain(found, self._from_others(others, text, session))
        return PullRows(query_id, plan.columns, found, limit)

    def _from_others(self, hosts: list[str], text: str, session: SqlSession) -> Iterator[Row]:
        if self._peers is None:
            raise StatementFailed(
                f"Unable to execute pull query. Other servers have a part of the table: "
                f"{', '.join(hosts)}",
                hint="this engine is not configured to query them",
            )
        peers, properties = self._peers, dict(session.properties)
        return chain.from_iterable(peers.pull(each, text, properties) for each in hosts)
