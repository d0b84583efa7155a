"""Launching: from a query's plan to a runtime."""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.client.opening import Target
from broker.errors import MillstreamError
from broker.machine import Machine
from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.materialized import Materialized, add_queryable, stored_rows_of
from sql.backends.native.steps import StepContext
from sql.backends.native.tap import Tap
from sql.backends.native.topology import application_id
from sql.backends.spark.per_batch_rules import PER_BATCH, SETTING, stateful_step
from sql.engine.changes import QueryInfo
from sql.engine.processing_log import ProcessingLog, QueryLog
from sql.engine.pulling import PullPlan
from sql.engine.pushing import (
    AppDelivery,
    PushQuery,
    TapDelivery,
    add_delivery,
    tombstone_values,
)
from sql.engine.results import ResultRow, RowQueue
from sql.engine.settings import SqlConfig
from sql.engine.spark_launching import SparkLauncher, runs_on_spark, table_scan
from sql.plan import Sink, topics_read
from sql.planner import PlannedQuery
from sql.queries import (
    AppRuntime,
    QueryRuntime,
    RetryPolicy,
    Supervisor,
    begin_at_end,
    discard_in_time,
    discard_state,
)
from sql.rows.row_format import Row
from streams.app import StreamsApp
from streams.dsl.builder import StreamsBuilder
from streams.handlers import Answer
from streams.runtime.shared_runtime import SharedRuntime
from streams.topology import Topology

logger = logging.getLogger(__name__)

FAIL_ON_DESERIALIZATION = "ksql.fail.on.deserialization.error"
FAIL_ON_PRODUCTION = "ksql.fail.on.production.error"


@dataclass(frozen=True, slots=True)
class LoweredQuery:
    """A persistent query on its engine, before it starts."""

    tap: Tap
    # None: it runs on Spark, or lowering failed.
    topology: Topology | None = None
    # The stored rows of its table, if it has one.
    where: Materialized | None = None


@dataclass(slots=True)
class QueryLauncher:
    """Creates the runtimes of queries, on one broker and in one data directory."""

    target: Target
    registry: SchemaRegistry | None
    config: SqlConfig
    machine: Machine
    data_directory: Path
    log: ProcessingLog
    supervisor: Supervisor
    spark: SparkLauncher
    shared: SharedRuntime | None = None  # None: each query is a separate application
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def clients(self) -> Target:
        """The broker, or the shared runtime if there is one."""
        return self.target if self.shared is None else self.shared.clients

    def config_of(self, query: QueryInfo) -> SqlConfig:
        """The settings of a query: its own, and the server's for all others."""
        return self.config.with_kept(query.original, query.properties)

    def topology(
        self, query: QueryInfo, tap: Tap | None = None
    ) -> tuple[Topology, Materialized | None]:
        """The topology of a persistent query, and the stored rows of its table."""
        query.check_available()
        builder = StreamsBuilder()
        log = self.log.of_query(query.id)
        config = self.config_of(query)
        context = StepContext(builder, self.registry, log.row_failed, dict(config))
        found = add_queryable(query.planned.plan, context, tap)
        return builder.build(), found

    def where(self, query: QueryInfo) -> Materialized | None:
        """The stored rows of a persistent query's table."""
        query.check_available()
        log = self.log.of_query(query.id)
        settings = dict(self.config_of(query))
        context = StepContext(StreamsBuilder(), self.registry, log.row_failed, settings)
        if runs_on_spark(query):
            scan = table_scan(query)
            return None if scan is None else stored_rows_of(scan, context)
        return stored_rows_of(query.planned.plan, context)

    def lowered(self, query: QueryInfo, tap: Tap) -> LoweredQuery:
        """Lower a query; StatementFailed if that fails, or if its engine cannot run it."""
        topology, where = self.topology(query, tap)
        if not runs_on_spark(query):
            return LoweredQuery(tap, topology, where)
        self.spark.check()
        plan, config = query.planned.plan, self.config_of(query)
        if config[SETTING] == PER_BATCH and isinstance(plan, Sink):
            stateful_step(plan)
        return LoweredQuery(tap, where=self.where(query))

    def lowered_if_possible(self, query: QueryInfo, tap: Tap) -> LoweredQuery:
        """Lower a query that was checked before; if this fails, its start reports it."""
        try:
            if not runs_on_spark(query):
                return LoweredQuery(tap, *self.topology(query, tap))
        except Exception as error:  # its runtime reports it
            logger.debug("query %s cannot be lowered: %s", query.id, error)
        return LoweredQuery(tap, where=self._where_if_possible(query))

    def _where_if_possible(self, query: QueryInfo) -> Materialized | None:
        try:
            return self.where(query)
        except Exception as error:  # the query itself fails, and reports why
            logger.warning("cannot find the rows of query %s: %s", query.id, error)
            return None

    def runtime(self, query: QueryInfo, lowered: LoweredQuery) -> QueryRuntime:
        """A persistent query, ready to start; a restart lowers it again."""
        config = self.config_of(query)
        if runs_on_spark(query):
            return self.spark.runtime(
                query,
                config,
                application_id=self.application_id(query.id),
                describe=lambda: self._described(query),
                retry=_retry_policy(config),
            )
        tap, unused = lowered.tap, [] if lowered.topology is None else [lowered.topology]
        return AppRuntime(
            self.application_id(query.id),
            lambda: unused.pop() if unused else self.topology(query, tap)[0],
            target=self.target if self.shared is None else self.shared,
            machine=self.machine,
            settings=self._settings(
                config, self.log.of_query(query.id), self.application_id(query.id)
            ),
            supervisor=self.supervisor,
            retry=_retry_policy(config),
        )

    def _described(self, query: QueryInfo) -> str:
        try:
            return self.topology(query)[0].describe()
        except MillstreamError:
            return ""  # the query cannot run, and reports why

    def begin(self, query: QueryInfo) -> None:
        """Set the start position of a new persistent query that starts at the end of its topics."""
        config = self.config_of(query)
        if config["auto.offset.reset"] != "latest":
            return
        topics = topics_read(query.planned.plan)
        try:
            begin_at_end(self.clients, self.application_id(query.id), topics)
        except MillstreamError as error:
            # Another server was faster: the query has started.
            logger.info("another server has already started query %s: %s", query.id, error)

    def discard(self, query_ids: Sequence[str]) -> None:
        """Delete the state, topics and groups of queries that will not run again."""
        found = [self.application_id(each) for each in query_ids]
        for each in found:
            discard_state(self.machine.files, self._state_directory(self.config), each)
            self.spark.discard(each)
        discard_in_time(self.supervisor, self.clients, found)

    def application_id(self, query_id: str) -> str:
        """The id of a persistent query's application."""
        return application_id(self.config.text("ksql.service.id"), query_id)

    def push(
        self,
        text: str,
        planned: PlannedQuery,
        properties: Mapping[str, object],
        on_close: Callable[[PushQuery], None],
    ) -> PushQuery:
        """A push query, ready to start."""
        query_id = f"transient_{planned.sources[0]}_{self._number()}"
        config = self.config.with_session(properties)
        log = self.log.of_query(query_id)
        queue = RowQueue(self.machine.clock, config.whole("ksql.query.push.buffer.rows"))
        builder = StreamsBuilder()
        context = StepContext(builder, self.registry, log.row_failed, dict(config))
        add_delivery(planned.plan, context, _delivery(planned, queue))
        application = f"_confluent-ksql-{config.text('ksql.service.id')}{query_id}"
        settings = self._settings(config, log, application)
        # Results are for one reader and end with it: no standbys are needed.
        settings["processing_guarantee"] = "at_least_once"
        app = StreamsApp(
            builder.build(),
            application_id=application,
            # A slow reader blocks its runner, so it must not use a shared thread.
            broker=self.clients,
            machine=self.machine,
            **settings,
        )
        delivery = AppDelivery(app, queue, planned.plan, self.clients)
        return PushQuery(query_id, text, planned, queue, delivery, on_close)

    def tapped(
        self,
        text: str,
        planned: PlannedQuery,
        tap: Tap,
        selecting: PullPlan,
        on_close: Callable[[PushQuery], None],
    ) -> PushQuery:
        """A push query that watches a persistent one, ready to start."""
        query_id = f"SCALABLE_PUSH_QUERY_{planned.sources[0]}_{self._number()}"
        queue = RowQueue(self.machine.clock, self.config.whole("ksql.query.push.buffer.rows"))
        delivery = TapDelivery(tap, queue, planned, selecting)
        return PushQuery(query_id, text, planned, queue, delivery, on_close)

    def _number(self) -> str:
        return f"{self.machine.clock.now_ms()}_{next(self._numbers)}"

    def _state_directory(self, config: SqlConfig) -> str:
        """The directory of all stores: ksql.streams.state.dir, or in the data directory."""
        return str(config.given.get("state.dir") or self.data_directory / "state")

    # Any: each setting has its own type, which StreamsConfig validates.
    def _settings(self, config: SqlConfig, log: QueryLog, application_id: str) -> dict[str, Any]:
        read = Answer.FAIL if config.flag(FAIL_ON_DESERIALIZATION) else Answer.CONTINUE
        write = Answer.FAIL if config.flag(FAIL_ON_PRODUCTION) else Answer.CONTINUE
        return {
            **config.streams_settings(),
            # Statements create topics, with their partitions. Another server may have dropped the
            # query and deleted its topics, which must not come back.
            "producer.allow.auto.create.topics": False,
            "state_dir": self._state_directory(config),
            "application_server": self.config.address,
            "deserialization_exception_handler": log.handler(read, application_id),
            "production_exception_handler": log.handler(write, application_id),
        }


def _retry_policy(config: SqlConfig) -> RetryPolicy:
    return RetryPolicy(
        config.whole("ksql.query.retry.backoff.initial.ms"),
        config.whole("ksql.query.retry.backoff.max.ms"),
        config.whole("ksql.query.error.max.queue.size"),
    )


def _delivery(planned: PlannedQuery, queue: RowQueue) -> Callable[[object, Row | None], None]:
    tombstone = tombstone_values(planned.plan) if planned.is_table else None

    def deliver(key: object, row: Row | None) -> None:
        if row is not None:
            queue.put(ResultRow(row))
        elif tombstone is not None and key is not None:
            queue.put(ResultRow(tombstone(key), tombstone=True))

    return deliver
