"""RegexRouter, TimestampRouter and Filter: where records go, if they go on at all."""

from collections.abc import Mapping

from broker.clock import Clock
from broker.schema.java_patterns import compile_pattern
from broker.schema.java_replacements import replacement_filler
from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, Regex
from connect.errors import ConfigError, DataError
from connect.records import Record
from connect.transforms.simple_date_format import SimpleDateFormat


class Filter(Transformation):
    """Drops every record; with a predicate, those that it chooses."""

    def apply(self, record: Record) -> None:
        """Nothing."""
        return


class RegexRouter(Transformation):
    """Gives topics other names by a regular expression of Java."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The expression, and what it becomes."""
        return (
            ConfigDef()
            .define(
                "regex",
                ConfigType.STRING,
                validator=Regex(),
                importance=Importance.HIGH,
                doc="The expression; topics whose whole name does not match keep their name.",
            )
            .define(
                "replacement",
                ConfigType.STRING,
                importance=Importance.HIGH,
                doc="The new name; $1 or ${name} stands for what a group matched.",
            )
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the expression."""
        settings = self.config().parse(config)
        self._text = settings.text("regex")
        self._pattern = compile_pattern(self._text)
        self._replacement = settings.text("replacement")

    def apply(self, record: Record) -> Record:
        """The record in another topic."""
        topic = record.topic
        if self._pattern.fullmatch(topic) is None:
            return record
        # Java replaces the first match it finds, which need not be the whole name.
        found = self._pattern.search(topic)
        assert found is not None, "the whole name matches"
        try:
            filled = replacement_filler(self._text, self._replacement)(found)
        except ValueError as error:
            hint = 'correct "replacement": $ stands for groups, \\$ for itself'
            raise DataError(str(error), hint=hint) from None
        return record.changed(topic=topic[: found.start()] + filled + topic[found.end() :])


class TimestampRouter(Transformation):
    """Gives topics names with the record's date in them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    @classmethod
    def config(cls) -> ConfigDef:
        """The formats."""
        return (
            ConfigDef()
            .define(
                "topic.format",
                ConfigType.STRING,
                "${topic}-${timestamp}",
                importance=Importance.HIGH,
                doc="The new name; ${topic} stands for the topic, ${timestamp} for the date.",
            )
            .define(
                "timestamp.format",
                ConfigType.STRING,
                "yyyyMMdd",
                importance=Importance.HIGH,
                doc="The pattern of the date, as java.text.SimpleDateFormat has it; in UTC.",
            )
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the formats."""
        settings = self.config().parse(config)
        self._topic_format = settings.text("topic.format")
        try:
            self._format = SimpleDateFormat(settings.text("timestamp.format"), self._clock)
        except ValueError as error:
            raise ConfigError(
                str(error), hint='"timestamp.format" is a pattern of java.text.SimpleDateFormat'
            ) from None

    def apply(self, record: Record) -> Record:
        """The record in another topic."""
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record: {record}")
        date = self._format.format(record.timestamp_ms)
        topic = self._topic_format.replace("${topic}", record.topic)
        return record.changed(topic=topic.replace("${timestamp}", date))
