"""Connect: connectors configured with JSON over REST, exactly as in Kafka Connect.

The names here are what the author of a connector needs, and a worker in a program. `connect.data`
has schemas and values, `connect.config_validators` the validators of settings.
"""

from typing import TYPE_CHECKING

from broker.public_names import public_names
from connect.api import (
    BulkConverter,
    Connector,
    ConnectorContext,
    Converter,
    ErrantRecordReporter,
    ExactlyOnceSupport,
    HeaderConverter,
    OffsetReader,
    Predicate,
    SinkConnector,
    SinkTask,
    SinkTaskContext,
    SourceConnector,
    SourceTask,
    SourceTaskContext,
    TransactionContext,
    Transformation,
)
from connect.config_def import ConfigDef, ConfigType, Importance, Settings
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.records import Header, Record, SinkRecord, SourceRecord

if TYPE_CHECKING:
    from connect.client import ConnectClient
    from connect.config.worker_config import WorkerConfig
    from connect.server import ConnectServer
else:
    # A connector does not need the worker that runs it.
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "client": ["ConnectClient"],
            "server": ["ConnectServer"],
            "config.worker_config": ["WorkerConfig"],
        },
    )


__all__ = [
    "BulkConverter",
    "ConfigDef",
    "ConfigError",
    "ConfigType",
    "ConnectClient",
    "ConnectError",
    "ConnectSchema",
    "ConnectServer",
    "Connector",
    "ConnectorContext",
    "Converter",
    "DataError",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "Field",
    "Header",
    "HeaderConverter",
    "Importance",
    "OffsetReader",
    "Predicate",
    "Record",
    "RetriableError",
    "Settings",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "Struct",
    "TransactionContext",
    "Transformation",
    "Type",
    "WorkerConfig",
]
