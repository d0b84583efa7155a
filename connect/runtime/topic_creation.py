"""Topics that source connectors create: topic.creation.* says with how many partitions and what.

    topic.creation.groups                        = compacted, logs
    topic.creation.default.partitions            = 1        (both of default are needed, or topics
    topic.creation.default.replication.factor    = 3         are left to the broker)
    topic.creation.compacted.include             = orders.*, users
    topic.creation.compacted.cleanup.policy      = compact  (any setting of a topic)

The first group that includes a topic, and does not exclude it, makes it; what a group does not say
of partitions and replication is said by the default group, which takes all topics.
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
    """How topics with some names are made."""

    name: str
    include: Pattern
    exclude: Pattern
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        """Whether it makes this topic."""
        return bool(self.include.fullmatch(topic)) and not self.exclude.fullmatch(topic)


def topic_groups(config: Mapping[str, str]) -> list[TopicGroup]:
    """The groups of a connector's configuration, in their order; none: the broker decides."""
    if not any(name.startswith(f"{PREFIX}{DEFAULT_GROUP}.") for name in config):
        return []
    names = _GROUPS.parse(config)[GROUPS_SETTING]
    assert isinstance(names, list)
    groups = []
    default = _DEFAULT_SETTINGS.parse(_of_group(config, DEFAULT_GROUP))
    fallback = {name: default[name] for name in ("partitions", "replication.factor")}
    for name in (*(name for name in dict.fromkeys(names) if name != DEFAULT_GROUP), DEFAULT_GROUP):
        texts = {**fallback, **_of_group(config, name)}
        groups.append(_group(name, texts))
    return groups


def _of_group(config: Mapping[str, str], group: str) -> dict[str, str]:
    """The settings of one group, by their names within it."""
    prefix = f"{PREFIX}{group}."
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }


def _group(name: str, texts: Mapping[str, object]) -> TopicGroup:
    is_default = name == DEFAULT_GROUP
    known = (_DEFAULT_SETTINGS if is_default else _GROUP_SETTINGS).parse(texts)
    include, exclude, partitions, factor = known.values()
    assert isinstance(include, list)
    assert isinstance(exclude, list)
    assert isinstance(partitions, int)
    assert isinstance(factor, int)
    others = {key: str(value) for key, value in texts.items() if key not in known}
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
    """Of the default group, or, with defaults for the numbers, of the others."""
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
    """Makes the topics of one source task before their first record."""

    def __init__(self, admin: Admin, groups: Sequence[TopicGroup]) -> None:
        """The admin is closed by whom it belongs to."""
        self._admin = admin
        self._groups = groups
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Make the topic unless it is there; raises ConnectError when it cannot be made."""
        if topic in self._known:
            return
        if topic not in self._admin.list_topics(include_internal=True):
            self._create(next(group for group in self._groups if group.takes(topic)), topic)
        self._known.add(topic)

    def _create(self, group: TopicGroup, topic: str) -> None:
        factor = clamped_replication(self._admin, topic, group.replication_factor)
        try:
            create_unless_there(
                self._admin, NewTopic(topic, group.partitions, factor, group.configs)
            )
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


def create_unless_there(admin: Admin, topic: NewTopic) -> None:
    """Create a topic, unless another client has just created it."""
    try:
        admin.create_topics([topic]).all()
    except BrokerError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def clamped_replication(admin: Admin, topic: str, wanted: int) -> int:
    """The replication factor that is wanted, or as many as there are brokers."""
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
