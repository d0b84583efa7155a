"""Names of classes in dead letters and logs: Kafka's, where it has such a class."""

from connect.api import SinkTask, SourceTask
from connect.errors import ConfigError, ConnectError, DataError, RetriableError

_ERRORS = "org.apache.kafka.connect.errors."
KAFKA_NAMES: dict[type, str] = {
    ConnectError: f"{_ERRORS}ConnectException",
    DataError: f"{_ERRORS}DataException",
    RetriableError: f"{_ERRORS}RetriableException",
    ConfigError: "org.apache.kafka.common.config.ConfigException",
    SinkTask: "org.apache.kafka.connect.sink.SinkTask",
    SourceTask: "org.apache.kafka.connect.source.SourceTask",
}


def class_name(cls: type) -> str:
    """The name of a class in Kafka, otherwise "package.module:Class"."""
    found = KAFKA_NAMES.get(cls)
    return found if found is not None else f"{cls.__module__}:{cls.__qualname__}"
