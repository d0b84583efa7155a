"""Connect: connectors as JSON over REST, exactly as Kafka Connect takes them.

`connect.api` is what the author of a connector implements, `connect.data` has schemas and values.
"""

from connect.api import (
    Connector,
    Converter,
    ExactlyOnceSupport,
    HeaderConverter,
    Predicate,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    Transformation,
)
from connect.data import ConnectSchema, Field, Struct, Type
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.records import Header, Record, SinkRecord, SourceRecord

__all__ = [
    "ConfigError",
    "ConnectError",
    "ConnectSchema",
    "Connector",
    "Converter",
    "DataError",
    "ExactlyOnceSupport",
    "Field",
    "Header",
    "HeaderConverter",
    "Predicate",
    "Record",
    "RetriableError",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "Struct",
    "Transformation",
    "Type",
]
