"""JdbcSinkConnector: records of topics as rows of tables."""

from collections.abc import Mapping, Sequence

from broker.model import TopicPartition
from connect.api import SinkConnector, SinkTask
from connect.config_def import ConfigDef
from connect.connectors.jdbc.connection_config import local_paths
from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.sink_config import SINK_DEFINITION, contradictions
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.jdbc.validation import validated
from connect.errors import ConfigError


class JdbcSinkConnector(SinkConnector):
    """Writes with as many tasks as allowed."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return SINK_DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]] | None:
        """Checks for contradicting settings and a missing driver."""
        return validated(SINK_DEFINITION, config, contradictions)

    def start(self, config: Mapping[str, str]) -> None:
        settings = SINK_DEFINITION.parse(config)
        for complaints in contradictions(settings).values():
            raise ConfigError(complaints[0])
        Database(settings, config)
        self._config = dict(config)

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The file of an SQLite database."""
        return local_paths(SINK_DEFINITION, config)

    def task_class(self) -> type[SinkTask]:
        return JdbcSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The same configuration for every task: the consumer group assigns partitions."""
        return [self._config] * max_tasks

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Accepts any offsets: the worker stores them."""
        return True
