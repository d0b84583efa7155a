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

# How long tasks wait for the first list of tables; it may come later, as a change.
_FIRST_TABLES_WAIT_S = 3.0


class JdbcSourceConnector(SourceConnector):
    """Finds the tables and divides them over tasks."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}
        self._monitor: TableMonitor | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        """The settings."""
        return SOURCE_DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]] | None:
        """Checks for contradicting settings, and for a driver that is not installed."""
        return validated(SOURCE_DEFINITION, config, contradictions)

    def start(self, config: Mapping[str, str]) -> None:
        """Begins to look for tables; a query needs none."""
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
        """The task that reads."""
        return JdbcSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The tables in as many groups as there are tasks; none while no table is known."""
        if self._monitor is None:
            return [self._config]
        tables = self._monitor.tables(_FIRST_TABLES_WAIT_S)
        return [
            {**self._config, TABLES: list_tables(group)} for group in _groups(tables, max_tasks)
        ]

    def stop(self) -> None:
        """Ends the search for tables."""
        if self._monitor is not None:
            self._monitor.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Whether no row is read twice, and none is missed.

        Only with an incrementing column does an offset tell every row from its neighbours. Numbers
        are given when a row is inserted, not when its transaction commits: where transactions run
        side by side, a lower number may appear after a higher one was read, and is missed. SQLite
        runs one after another; elsewhere only a delay gives transactions time to commit.
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
                continue  # anything may be reset
            is_table = set(partition) == {"protocol", "table"} and partition["protocol"] == "1"
            if not is_table and dict(partition) != QUERY_PARTITION:
                raise ConnectError(
                    f"{dict(partition)} is not a partition of this connector",
                    hint='{"protocol": "1", "table": "db.schema.table"} or {"query": "query"}',
                )
            Offset.from_map(offset)
        return True


def _groups(tables: list[TableName], max_tasks: int) -> list[list[TableName]]:
    """Neighbouring tables together; sizes differ by one at most."""
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
