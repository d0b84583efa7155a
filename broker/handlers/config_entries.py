"""Settings as clients see them: value, type, and source of the value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.config import BrokerConfig, Setting, TopicConfig, format_value, settings

DYNAMIC_TOPIC = 1
STATIC_BROKER = 4
DEFAULT = 5

TYPE_OF_KIND: dict[type[object], int] = {bool: 1, str: 2, int: 3, float: 6, tuple: 7}
LONG = 5

# Integers that Kafka declares as 64 bit; the others have 32.
LONG_SETTINGS = frozenset(
    {
        "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
        "max.compaction.lag.ms", "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms", "min.compaction.lag.ms", "retention.bytes",
        "retention.ms", "segment.jitter.ms", "segment.ms",
        "connections.max.idle.ms", "queued.max.request.bytes", "log.segment.delete.delay.ms",
        "log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.retention.bytes",
        "log.retention.check.interval.ms", "log.flush.interval.messages", "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms", "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms", "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms",
        "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms",
        "offsets.retention.check.interval.ms",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Synonym:
    """A setting that may define the value, in the order of precedence."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic or of the broker."""

    name: str
    value: str | None
    source: int
    kind: int
    read_only: bool
    synonyms: list[Synonym] = field(default_factory=list)


def topic_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """All settings of a topic: its own, the broker's, and the defaults."""
    inherited = config.topic_defaults()
    known_broker = settings(BrokerConfig)
    entries = []
    for name, item in settings(TopicConfig).items():
        assert item.broker_name is not None
        synonyms = []
        if name in overrides:
            synonyms.append(Synonym(name, overrides[name], DYNAMIC_TOPIC))
        value = getattr(inherited, name.replace(".", "_"))
        if value != item.default or _is_set(config, known_broker[item.broker_name]):
            synonyms.append(Synonym(item.broker_name, format_value(value), STATIC_BROKER))
        synonyms.append(Synonym(item.broker_name, format_value(item.default), DEFAULT))
        first = synonyms[0]
        entries.append(
            ConfigEntry(name, first.value, first.source, _type_of(item), False, synonyms)
        )
    return entries


def broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """All settings of the broker; they cannot be changed while it runs."""
    entries = []
    for name, item in settings(BrokerConfig).items():
        value = getattr(config, name.replace(".", "_"))
        synonyms = [Synonym(name, format_value(item.default), DEFAULT)]
        if value != item.default:
            synonyms.insert(0, Synonym(name, format_value(value), STATIC_BROKER))
        first = synonyms[0]
        entries.append(ConfigEntry(name, first.value, first.source, _type_of(item), True, synonyms))
    return entries


def _is_set(config: BrokerConfig, item: Setting) -> bool:
    return bool(getattr(config, item.name.replace(".", "_")) not in (item.default, None))


def _type_of(item: Setting) -> int:
    return LONG if item.name in LONG_SETTINGS else TYPE_OF_KIND[item.kind]
