"""The groups of topics that source connectors create, with the settings topic.creation.*

    topic.creation.groups                        = compacted, logs
    topic.creation.default.partitions            = 1        (both are required, or topics
    topic.creation.default.replication.factor    = 3         are created by the broker)
    topic.creation.compacted.include             = orders.*, users
    topic.creation.compacted.cleanup.policy      = compact  (any setting of a topic)

The first group that includes a topic, and does not exclude it, defines its settings. The default
group includes all topics; other groups inherit its partitions and replication factor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.java.patterns import compile_pattern
from broker.linear_patterns import Pattern
from connect.config_def import REQUIRED, Check, ConfigDef, ConfigType, invalid, with_prefix
from connect.errors import ConfigError

PREFIX = "topic.creation."
DEFAULT_GROUP = "default"
BY_BROKER = -1
_NOTHING = compile_pattern("(?!)")


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """The settings of topics with some names."""

    name: str
    include: Pattern
    exclude: Pattern
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def includes(self, topic: str) -> bool:
        """Whether a topic belongs to the group."""
        return bool(self.include.fullmatch(topic)) and not self.exclude.fullmatch(topic)


def topic_groups(config: Mapping[str, str]) -> tuple[TopicGroup, ...]:
    """The groups of a connector's configuration, in order; none: the broker creates topics."""
    if not any(name.startswith(f"{PREFIX}{DEFAULT_GROUP}.") for name in config):
        return ()
    names = _GROUPS.parse(config).strings(GROUPS_SETTING)
    groups = []
    default = _DEFAULT_SETTINGS.parse(with_prefix(f"{PREFIX}{DEFAULT_GROUP}.", config))
    fallback = {name: default[name] for name in ("partitions", "replication.factor")}
    for name in (*(name for name in dict.fromkeys(names) if name != DEFAULT_GROUP), DEFAULT_GROUP):
        settings = {**fallback, **with_prefix(f"{PREFIX}{name}.", config)}
        groups.append(_group(name, settings))
    return tuple(groups)


def _group(name: str, settings: Mapping[str, object]) -> TopicGroup:
    is_default = name == DEFAULT_GROUP
    known = (_DEFAULT_SETTINGS if is_default else _GROUP_SETTINGS).parse(settings)
    return TopicGroup(
        name,
        _any_of(known.strings("include")),
        _any_of(known.strings("exclude")),
        known.integer("partitions"),
        known.integer("replication.factor"),
        {key: str(value) for key, value in settings.items() if key not in known},
    )


def _any_of(patterns: Sequence[str]) -> Pattern:
    if not patterns:
        return _NOTHING
    try:
        return compile_pattern("|".join(patterns))
    except ValueError as error:
        raise ConfigError(str(error), hint="it stands in a list of topic.creation.*") from None


def _ensure_by_broker_or_positive(name: str, value: object) -> None:
    assert isinstance(value, int), "only numeric settings are checked here"
    if value != BY_BROKER and value < 1:
        raise invalid(name, value, "Value must be -1 or at least 1")


_BY_BROKER_OR_POSITIVE = Check(_ensure_by_broker_or_positive, "-1 or [1,...]")


def _definition(*, include: str, partitions: object) -> ConfigDef:
    """The definition of the default group or, with defaults for the numbers, of others."""
    return (
        ConfigDef()
        .define("include", ConfigType.LIST, include)
        .define("exclude", ConfigType.LIST, "")
        .define("partitions", ConfigType.INT, partitions, validator=_BY_BROKER_OR_POSITIVE)
        .define("replication.factor", ConfigType.INT, partitions, validator=_BY_BROKER_OR_POSITIVE)
    )


GROUPS_SETTING = f"{PREFIX}groups"
_GROUPS = ConfigDef().define(GROUPS_SETTING, ConfigType.LIST, "")
_DEFAULT_SETTINGS = _definition(include=".*", partitions=REQUIRED)
_GROUP_SETTINGS = _definition(include="", partitions=BY_BROKER)
