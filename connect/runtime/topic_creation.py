"""TopicCreator: creates the topics of source connectors, and dead letter queue topics."""

import logging
from collections.abc import Sequence

from broker.client.api import NewTopic
from broker.client.cluster_admin import Admin
from broker.errors import BrokerError, ErrorCode
from connect.config.topic_groups import TopicGroup
from connect.errors import ConnectError

logger = logging.getLogger(__name__)


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
