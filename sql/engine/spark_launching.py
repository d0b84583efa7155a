"""SparkLauncher: creates queries on Spark; PySpark is imported here, on demand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broker.client.opening import Target
from broker.machine import Machine
from broker.serde.registry.api import SchemaRegistry
from sql.backends.spark.job import Job
from sql.backends.spark.session import check_spark, open_session
from sql.catalog import SourceInfo
from sql.engine.changes import QueryInfo
from sql.engine.local_endpoints import LocalEndpoints
from sql.engine.settings import NATIVE, SPARK, SqlConfig
from sql.engine.sink_rows import SinkRows
from sql.engine.spark_runtime import SparkParts, SparkRuntime
from sql.plan import Scan, Sink, topics_read
from sql.planner import plan_to_json
from sql.planner.references import FromSource
from sql.planner.relations import scan
from sql.queries import RetryPolicy, Supervisor, remove_folder
from sql.syntax.statements import SourceKind

if TYPE_CHECKING:
    from sql.backends.spark.query import SparkQuery

FOLDER = "spark"


def runs_on_spark(query: QueryInfo) -> bool:
    """Whether a query runs on Spark; a SOURCE TABLE, which is only stored, never does."""
    return query.sink is not None and query.properties.get("engine", NATIVE) == SPARK


def table_scan(query: QueryInfo) -> Scan | None:
    """The scan of the table that a query writes; None if it writes none."""
    sink = query.sink
    if sink is None or sink.kind is not SourceKind.TABLE or not query.planned.is_table:
        return None
    return _scan(sink)


def _scan(source: SourceInfo) -> Scan:
    return scan(FromSource(source.name, source), "KsqlTopic/Source", materialized=True)


@dataclass(slots=True)
class SparkLauncher:
    """Creates queries on Spark, on one broker and in one data directory."""

    target: Target
    registry: SchemaRegistry | None
    config: SqlConfig
    machine: Machine
    data_directory: Path
    supervisor: Supervisor
    reachable: LocalEndpoints
    function_places: tuple[str, ...] = ()  # paths of user-defined functions, for other processes

    def check(self) -> None:
        """Refuse to start where Spark cannot run, with installation hints."""
        check_spark(self.config.text("spark.master"))

    def runtime(
        self,
        query: QueryInfo,
        config: SqlConfig,
        *,
        application_id: str,
        describe: Callable[[], str],
        retry: RetryPolicy,
    ) -> SparkRuntime:
        """A persistent query, ready to start."""
        parts = SparkParts(
            application_id,
            lambda: self._query(query, config, application_id),
            describe,
            f"{self._checkpoints}/{application_id}",
            self._rows(query, application_id),
            config.flag("spark.bounded"),
        )
        return SparkRuntime(
            parts,
            target=self.target,
            machine=self.machine,
            supervisor=self.supervisor,
            retry=retry,
        )

    def discard(self, application_id: str) -> None:
        """Delete the local data of a query that does not run; a remote checkpoint is kept."""
        tables = self.data_directory / FOLDER / "tables"
        for folder in (Path(self._checkpoints), tables):
            remove_folder(self.machine.files, folder / application_id)

    @property
    def _checkpoints(self) -> str:
        given = self.config.text("spark.checkpoints").rstrip("/")
        return given or str((self.data_directory / FOLDER / "checkpoints").resolve())

    def _rows(self, query: QueryInfo, application_id: str) -> SinkRows | None:
        found = table_scan(query)
        if found is None:
            return None
        return SinkRows(
            found,
            self.data_directory / FOLDER / "tables" / application_id,
            target=self.target,
            registry=self.registry,
            clock=self.machine.clock,
        )

    def _query(self, query: QueryInfo, config: SqlConfig, application_id: str) -> "SparkQuery":
        plan = query.planned.plan
        query.check_available()
        assert isinstance(plan, Sink), "a query on Spark writes its results"
        servers = self.reachable.servers()
        url = config.text("ksql.schema.registry.url") or self.reachable.registry_url()
        session = open_session(
            config.text("spark.master"),
            self.config.spark_settings(),
            log=self.data_directory / FOLDER / "spark.log",
        )
        from sql.backends.spark.query import SparkPlace, SparkQuery

        counts = dict.fromkeys((*topics_read(plan), plan.topic), 0)
        job = Job(
            application_id, plan_to_json(plan), counts, dict(config), url, self.function_places
        )
        place = SparkPlace(
            session,
            servers,
            self._checkpoints,
            trigger=_trigger(config),
            max_offsets_per_trigger=config.whole("spark.max.offsets.per.trigger") or None,
            connector=config.text("spark.connector"),
        )
        return SparkQuery(job, place, starting=config.text("auto.offset.reset"))


def _trigger(config: SqlConfig) -> dict[str, object]:
    """The trigger of batches."""
    if config.flag("spark.bounded"):
        return {"availableNow": True}
    return {"processingTime": f"{config.whole('spark.trigger.ms')} milliseconds"}
