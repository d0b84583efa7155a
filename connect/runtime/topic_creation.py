"""Topics that source connectors create, with the settings topic.creation.*

    topic.creation.groups                        = compacted, logs
    topic.creation.default.partitions            = 1        (both are required, or topics
    topic.creation.default.replication.factor    = 3         are created by the broker)
    topic.creation.compacted.include             = orders.*, users
    topic.creation.compacted.cleanup.policy      = compact  (any setting of a topic)

The first group that includes a topic, and does not exclude it, defines its settings. The default
group includes all topics; other groups inherit its partitions and replication factor.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.client.api import Admin, NewTopic
from broker.errors import BrokerError, ErrorCode
from broker.java.patterns import compile_pattern
from broker.linear_patterns import Pattern
from connect.config_def import REQUIRED, Check, ConfigDef, ConfigType, invalid
from connect.errors import ConfigError, ConnectError

logger = logging.getLogger(__name__)

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


def topic_groups(config: Mapping[str, str]) -> list[TopicGroup]:
    """The groups of a connector's configuration, in order; none: the broker creates topics."""
    if not any(name.startswith(f"{PREFIX}{DEFAULT_GROUP}.") for name in config):
        return []
    names = _GROUPS.parse(config)[GROUPS_SETTING]
    assert isinstance(names, list)
    groups = []
    default = _DEFAULT_SETTINGS.parse(_group_settings(config, DEFAULT_GROUP))
    fallback = {name: default[name] for name in ("partitions", "replication.factor")}
    for name in (*(name for name in dict.fromkeys(names) if name != DEFAULT_GROUP), DEFAULT_GROUP):
        settings = {**fallback, **_group_settings(config, name)}
        groups.append(_group(name, settings))
    return groups


def _group_settings(config: Mapping[str, str], group: str) -> dict[str, str]:
    """The settings of one group, without the prefix."""
    prefix = f"{PREFIX}{group}."
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }


def _group(name: str, settings: Mapping[str, object]) -> TopicGroup:
    is_default = name == DEFAULT_GROUP
    known = (_DEFAULT_SETTINGS if is_default else _GROUP_SETTINGS).parse(settings)
    include, exclude, partitions, factor = known.values()
    assert isinstance(include, list)
    assert isinstance(exclude, list)
    assert isinstance(partitions, int)
    assert isinstance(factor, int)
    others = {key: str(value) for key, value in settings.items() if key not in known}
    return TopicGroup(name, _any_of(include), _any_of(exclude), partitions, factor, others)


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


class TopicCreator:
    """Creates the topics of one source task before their first record."""

    def __init__(self, admin: Admin, groups: Sequence[TopicGroup]) -> None:
        """The owner closes the admin."""
        self._admin = admin
        self._groups = groups
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Create the topic if it does not exist; ConnectError if that fails."""
        if topic in self._known:
            return
        if topic not in self._admin.list_topics(include_internal=True):
            self._create(next(group for group in self._groups if group.includes(topic)), topic)
        self._known.add(topic)

    def _create(self, group: TopicGroup, topic: str) -> None:
        factor = clamped_replication(self._admin, topic, group.replication_factor)
        try:
            create_if_missing(self._admin, NewTopic(topic, group.partitions, factor, group.configs))
        except BrokerError as error:
            if error.retriable:
                raise
            raise ConnectError(
                f'the task cannot create topic "{topic}": {error.message}',
                at=f'group "{group.name}" of topic.creation.groups',
                hint=error.hint
                or "correct the settings topic.creation.*, or create the topic by hand",
            ) from error
        logger.info('created topic "%s" with the settings of group "%s"', topic, group.name)


def create_if_missing(admin: Admin, topic: NewTopic) -> None:
    """Create a topic, unless another client has just created it."""
    try:
        admin.create_topics([topic]).all()
    except BrokerError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def clamped_replication(admin: Admin, topic: str, wanted: int) -> int:
    """The configured replication factor, at most the number of brokers."""
    brokers = len(admin.describe_cluster().nodes)
    if wanted <= brokers:
        return wanted
    logger.warning(
        'topic "%s" is created with %d replicas instead of %d: there are not enough brokers',
        topic,
        brokers,
        wanted,
    )
    return brokers
