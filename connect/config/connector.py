"""ConnectorConfig: a connector's configuration as the worker reads it, parsed into typed values.

    settings as given ──► ConnectorConfig    of all connectors
                     ├──► SourceConfig       also of sources
                     └──► SinkConfig         also of sinks

The connector, its clients, converters and transforms get their own settings as they are given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.java.patterns import compile_pattern
from broker.linear_patterns import Pattern
from connect.config.connector_config import sink_definition, sink_topics, source_definition
from connect.config.topic_groups import TopicGroup, topic_groups
from connect.config_def import ConfigDef, Settings
from connect.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    """The errors.* settings of a connector."""

    retry_timeout_ms: int = 0  # -1: no limit
    retry_delay_max_ms: int = 60_000
    tolerates_all: bool = False
    logs: bool = False
    logs_records: bool = False
    dead_letter_topic: str = ""
    dead_letter_replication_factor: int = 3
    dead_letter_headers: bool = False

    @property
    def reports(self) -> bool:
        """Whether skipped records are reported."""
        return self.logs or bool(self.dead_letter_topic)


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The settings of all connectors."""

    given: Mapping[str, str]
    class_name: str
    tasks_max: int = 1
    enforces_tasks_max: bool = True
    # None: the worker's
    key_converter: str | None = None
    value_converter: str | None = None
    header_converter: str | None = None
    errors: ErrorSettings = field(default_factory=ErrorSettings)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "ConnectorConfig":
        """ConfigError for the first invalid setting."""
        settings = _CONNECTOR.parse(given)
        return cls(
            given,
            settings.text("connector.class"),
            settings.integer("tasks.max"),
            settings.boolean("tasks.max.enforce"),
            settings.text_or_none("key.converter"),
            settings.text_or_none("value.converter"),
            settings.text_or_none("header.converter"),
            _errors(settings),
        )


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The settings of sources."""

    transaction_boundary: str = "poll"  # or interval, or connector
    transaction_interval_ms: int | None = None  # None: the worker's interval between commits
    offsets_topic: str | None = None  # None: the worker's
    topic_groups: tuple[TopicGroup, ...] = ()  # none: the broker creates topics

    @classmethod
    def parse(cls, given: Mapping[str, str], *, creates_topics: bool = False) -> "SourceConfig":
        """ConfigError for the first invalid setting; the worker may not create topics."""
        settings = _SOURCE.parse(given)
        return cls(
            settings.text("transaction.boundary").lower(),
            settings.integer_or_none("transaction.boundary.interval.ms"),
            settings.text_or_none("offsets.storage.topic"),
            topic_groups(given) if creates_topics else (),
        )


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """The settings of sinks."""

    topics: list[str] | Pattern  # by name, or all whose name matches

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "SinkConfig":
        """ConfigError for an invalid pattern."""
        pattern = given.get("topics.regex", "").strip()
        if not pattern:
            return cls(sink_topics(given))
        try:
            return cls(compile_pattern(pattern))
        except ValueError as error:
            raise ConfigError(
                f'"topics.regex" is not a valid regular expression: {error}'
            ) from None


def _errors(settings: Settings) -> ErrorSettings:
    dead_letters = "errors.deadletterqueue"
    return ErrorSettings(
        settings.integer("errors.retry.timeout"),
        settings.integer("errors.retry.delay.max.ms"),
        settings.text("errors.tolerance") == "all",
        settings.boolean("errors.log.enable"),
        settings.boolean("errors.log.include.messages"),
        settings.text(f"{dead_letters}.topic.name"),
        settings.integer(f"{dead_letters}.topic.replication.factor"),
        settings.boolean(f"{dead_letters}.context.headers.enable"),
    )


def _part(definition: ConfigDef, *prefixes: str) -> ConfigDef:
    return ConfigDef(key for name, key in definition.keys.items() if name.startswith(prefixes))


_CONNECTOR = _part(
    sink_definition(),
    "connector.class",
    "tasks.",
    "key.converter",
    "value.converter",
    "header.converter",
    "errors.",
)
_SOURCE = _part(source_definition(), "transaction.boundary", "offsets.storage.topic")
