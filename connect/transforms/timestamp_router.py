"""TimestampRouter: topic names with the record's date."""

from collections.abc import Mapping

from broker.clock import Clock
from broker.java.simple_date_format import SimpleDateFormat
from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.errors import ConfigError, DataError
from connect.records import Record


class TimestampRouter(Transformation):
    """Adds the record's date to the topic name."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    @classmethod
    def config(cls) -> ConfigDef:
        return (
            ConfigDef()
            .define(
                "topic.format",
                ConfigType.STRING,
                "${topic}-${timestamp}",
                importance=Importance.HIGH,
                doc="The new name; ${topic} is replaced with the topic, ${timestamp} with the "
                "date.",
            )
            .define(
                "timestamp.format",
                ConfigType.STRING,
                "yyyyMMdd",
                importance=Importance.HIGH,
                doc="The java.text.SimpleDateFormat pattern of the date; in UTC.",
            )
        )

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._topic_format = settings.text("topic.format")
        try:
            self._format = SimpleDateFormat(settings.text("timestamp.format"), self._clock)
        except ValueError as error:
            raise ConfigError(
                str(error), hint='"timestamp.format" is a pattern of java.text.SimpleDateFormat'
            ) from None

    def apply(self, record: Record) -> Record:
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record: {record}")
        date = self._format.format(record.timestamp_ms)
        topic = self._topic_format.replace("${topic}", record.topic)
        return record.changed(topic=topic.replace("${timestamp}", date))
