"""Names of classes in dead letters and logs: Kafka's if there is a counterpart."""

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
    """Kafka's name of a class that it has too, otherwise "package.module:Class"."""
    found = KAFKA_NAMES.get(cls)
    return found if found is not None else f"{cls.__module__}:{cls.__qualname__}"
