"""JdbcSourceConnector: rows of tables or of a query as records."""

from collections.abc import Mapping, Sequence

from connect.api import ExactlyOnceSupport, SourceConnector, SourceTask
from connect.config_def import ConfigDef
from connect.connectors.jdbc.addresses import SQLITE, parse_address
from connect.connectors.jdbc.connection_config import local_paths
from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.source_config import (
    INCREMENTING,
    SOURCE_DEFINITION,
    TIMESTAMP_INCREMENTING,
    contradictions,
    table_choice,
)
from connect.connectors.jdbc.source_task import TABLES, JdbcSourceTask
from connect.connectors.jdbc.table_monitor import TableMonitor
from connect.connectors.jdbc.table_query import QUERY_PARTITION, Offset
from connect.connectors.jdbc.tables import TableName, list_tables
from connect.connectors.jdbc.validation import validated
from connect.errors import ConfigError, ConnectError

# How long to wait for the first list of tables; a later list reconfigures the tasks.
_FIRST_TABLES_WAIT_S = 3.0


class JdbcSourceConnector(SourceConnector):
    """Finds the tables and assigns them to tasks."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}
        self._monitor: TableMonitor | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return SOURCE_DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]] | None:
        """Checks for contradicting settings and a missing driver."""
        return validated(SOURCE_DEFINITION, config, contradictions)

    def start(self, config: Mapping[str, str]) -> None:
        """Starts the table monitor, unless a query is configured."""
        settings = SOURCE_DEFINITION.parse(config)
        for complaints in contradictions(settings).values():
            raise ConfigError(complaints[0])
        database = Database(settings, config)
        self._config = dict(config)
        if settings.text("query"):
            return
        self._monitor = TableMonitor(
            database,
            table_choice(settings),
            interval_ms=settings.integer("table.poll.interval.ms"),
            changed=self.context.request_task_reconfiguration,
            failed=self.context.raise_error,
        )
        self._monitor.start()

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The file of an SQLite database."""
        return local_paths(SOURCE_DEFINITION, config)

    def task_class(self) -> type[SourceTask]:
        return JdbcSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The tables in as many groups as there are tasks; none while tables are unknown."""
        if self._monitor is None:
            return [self._config]
        tables = self._monitor.tables(_FIRST_TABLES_WAIT_S)
        return [
            {**self._config, TABLES: list_tables(group)} for group in _groups(tables, max_tasks)
        ]

    def stop(self) -> None:
        """Stops the table monitor."""
        if self._monitor is not None:
            self._monitor.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Whether rows are neither read twice nor missed.

        Only with an incrementing column, an offset identifies a single row. Numbers are assigned on
        insert, not on commit: with concurrent transactions, a lower number may appear after a
        higher one was read, and is missed. SQLite serializes transactions; elsewhere, only a delay
        gives them time to commit.
        """
        settings = SOURCE_DEFINITION.parse(config)
        mode, in_order = settings.text("mode"), False
        if mode in (INCREMENTING, TIMESTAMP_INCREMENTING):
            in_order = parse_address(settings.text("connection.url")).dialect == SQLITE
        if mode == TIMESTAMP_INCREMENTING:
            in_order = in_order or settings.integer("timestamp.delay.interval.ms") > 0
        return ExactlyOnceSupport.SUPPORTED if in_order else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object], Mapping[str, object] | None]],
    ) -> bool:
        """Refuses partitions and offsets that no task would read."""
        for partition, offset in offsets:
            if offset is None:
                continue  # any partition may be reset
            is_table = set(partition) == {"protocol", "table"} and partition["protocol"] == "1"
            if not is_table and dict(partition) != QUERY_PARTITION:
                raise ConnectError(
                    f"{dict(partition)} is not a partition of this connector",
                    hint='{"protocol": "1", "table": "db.schema.table"} or {"query": "query"}',
                )
            Offset.from_map(offset)
        return True


def _groups(tables: list[TableName], max_tasks: int) -> list[list[TableName]]:
    """Groups of neighbouring tables, whose sizes differ by at most one."""
    count = min(max_tasks, len(tables))
    if not count:
        return []
    size, rest = divmod(len(tables), count)
    groups, start = [], 0
    for index in range(count):
        end = start + size + (index < rest)
        groups.append(tables[start:end])
        start = end
    return groups
