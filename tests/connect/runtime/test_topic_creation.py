"""Topics that source connectors create."""

import pytest

from broker import Broker
from broker.client import admin
from broker.client.administration.values import ConfigResource
from connect.config.topic_groups import TopicGroup, topic_groups
from connect.errors import ConfigError, ConnectError
from connect.runtime.topic_creation import TopicCreator

DEFAULTS = {
    "topic.creation.default.partitions": "5",
    "topic.creation.default.replication.factor": "-1",
}
GROUPS = {
    **DEFAULTS,
    "topic.creation.groups": "compacted, logs",
    "topic.creation.compacted.include": "orders.*, users",
    "topic.creation.compacted.exclude": "orders-raw",
    "topic.creation.compacted.cleanup.policy": "compact",
    "topic.creation.logs.include": ".*-log",
    "topic.creation.logs.partitions": "2",
    "topic.creation.logs.replication.factor": "1",
}


def group_of(topic: str, groups: tuple[TopicGroup, ...]) -> str:
    return next(group.name for group in groups if group.includes(topic))


def test_without_a_default_group_topics_are_left_to_the_broker() -> None:
    assert topic_groups({"topics": "x", "topic.creation.groups": "a"}) == ()


def test_the_first_group_that_includes_a_topic_and_does_not_exclude_it_makes_it() -> None:
    groups = topic_groups(GROUPS)
    assert group_of("orders-eu", groups) == "compacted"
    assert group_of("users", groups) == "compacted"
    assert group_of("users2", groups) == "default"
    assert group_of("orders-raw", groups) == "default"
    assert group_of("orders-log", groups) == "compacted"
    assert group_of("my-log", groups) == "logs"


def test_what_a_group_does_not_say_the_default_group_says() -> None:
    compacted, logs, default = topic_groups(GROUPS)
    assert (compacted.partitions, compacted.replication_factor) == (5, -1)
    assert compacted.configs == {"cleanup.policy": "compact"}
    assert (logs.partitions, logs.replication_factor, logs.configs) == (2, 1, {})
    assert default.configs == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topic.creation.default.partitions": "0"}, "Value must be -1 or at least 1"),
        ({"topic.creation.compacted.include": "(["}, "Invalid regular expression"),
        ({"topic.creation.logs.replication.factor": "x"}, "Not a number"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        topic_groups({**GROUPS, **change})


def test_a_default_group_needs_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "replication.factor"'):
        topic_groups({"topic.creation.default.partitions": "1"})


def test_a_topic_is_made_as_its_group_says(broker: Broker) -> None:
    with admin(broker) as administration:
        creator = TopicCreator(administration, topic_groups(GROUPS))
        for topic in ("orders-eu", "my-log", "orders-eu"):
            creator.ensure(topic)
        topics = administration.list_topics()
        assert (topics["orders-eu"].partitions, topics["my-log"].partitions) == (5, 2)
        resource = ConfigResource("topic", "orders-eu")
        configs = administration.describe_configs([resource])[resource]
        assert configs["cleanup.policy"].value == "compact"


def test_more_replicas_than_brokers_are_as_many_as_there_are(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**DEFAULTS, "topic.creation.default.replication.factor": "3"}
    with admin(broker) as administration:
        TopicCreator(administration, topic_groups(config)).ensure("orders")
        assert "orders" in administration.list_topics()
    assert 'topic "orders" is created with 1 replicas instead of 3' in caplog.text


def test_a_topic_that_cannot_be_made_names_its_group(broker: Broker) -> None:
    config = {**DEFAULTS, "topic.creation.default.cleanup.policy": "burn"}
    with admin(broker) as administration, pytest.raises(ConnectError) as raised:
        TopicCreator(administration, topic_groups(config)).ensure("orders")
    assert 'cannot create topic "orders"' in raised.value.message
    assert 'group "default"' in raised.value.at
