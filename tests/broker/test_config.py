"""Configuration: Kafka's names and defaults, precedence, clear errors."""

import ast
from pathlib import Path

import pytest

import broker
from broker.config import (
    BrokerConfig,
    TopicConfig,
    format_value,
    settings,
)
from broker.errors import ConfigError

HOUR_MS = 3_600_000
ROOT = Path(broker.__file__).parent
ROOMS = ("coordinator", "handlers", "storage", "server")
BROKER_FILES = [
    *ROOT.glob("*.py"),
    *(path for room in ROOMS for path in (ROOT / room).glob("*.py")),
]


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        (
            {"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"},
            4,
        ),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "5"}, -1),
    ],
)
def test_retention_by_ms_wins_over_minutes_over_hours(
    properties: dict[str, str], retention_ms: int
) -> None:
    assert BrokerConfig.from_properties(properties).topic_defaults().retention_ms == retention_ms


def test_a_topic_sets_its_own_over_the_brokers() -> None:
    config = BrokerConfig.from_properties({"log.segment.bytes": "2000", "message.max.bytes": "9"})
    topic = config.topic_config({"segment.bytes": "1000", "cleanup.policy": "compact,delete"})
    assert (topic.segment_bytes, topic.max_message_bytes) == (1000, 9)
    assert topic.compacts
    assert topic.deletes


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"log.segmnt.bytes": "1"}, 'unknown setting "log.segmnt.bytes"'),
        ({"num.partitions": "0"}, 'setting "num.partitions" must be at least 1, not 0'),
        ({"num.partitions": "two"}, 'setting "num.partitions" must be an integer, not "two"'),
        ({"delete.topic.enable": "1"}, 'setting "delete.topic.enable" must be a boolean, not "1"'),
        ({"log.cleanup.policy": "burn"}, 'setting "log.cleanup.policy" cannot be "burn"'),
    ],
)
def test_a_wrong_setting_is_named(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(properties)
    assert caught.value.message == message


def test_an_unknown_setting_is_told_its_nearest() -> None:
    with pytest.raises(ConfigError, match=r'did you mean "log\.segment\.bytes"'):
        BrokerConfig.from_properties({"log.segmnt.bytes": "1"})


def test_settings_of_a_cluster_are_accepted_without_meaning() -> None:
    config = BrokerConfig.from_properties({"node.id": "7", "process.roles": "broker,controller"})
    assert config.broker_id == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.preallocate", "true"),
        ("unclean.leader.election.enable", "true"),
        ("default.replication.factor", "3"),
        ("group.coordinator.rebalance.protocols", "classic"),
        ("group.coordinator.rebalance.protocols", "classic,consumer,streams"),
        ("group.consumer.migration.policy", "bidirectional"),
    ],
)
def test_a_value_that_would_do_nothing_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({name: value})
    assert refused.value.message == f'setting "{name}" cannot be "{value}"'
    assert refused.value.hint


@pytest.mark.parametrize("name", ["preallocate", "unclean.leader.election.enable"])
def test_a_topics_value_that_would_do_nothing_is_refused(name: str) -> None:
    assert BrokerConfig().topic_config({name: "false"}) == TopicConfig()
    with pytest.raises(ConfigError, match="cannot be"):
        BrokerConfig().topic_config({name: "true"})


def test_the_values_that_are_true_are_accepted() -> None:
    properties = {
        "log.preallocate": "false",
        "default.replication.factor": "1",
        "group.coordinator.rebalance.protocols": "consumer, classic",
        "group.consumer.migration.policy": "DISABLED",
    }
    assert BrokerConfig.from_properties(properties) == BrokerConfig()


def test_the_broker_reads_every_setting() -> None:
    """A setting that no code reads does nothing, whatever DescribeConfigs says."""
    read = {
        node.attr
        for path in BROKER_FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    topic = settings(TopicConfig).values()
    through_topics = {item.broker_name for item in topic}
    unused = [
        item.name
        for item in [*settings(BrokerConfig).values(), *topic]
        if not item.fixed
        and item.name not in through_topics
        and item.name.replace(".", "_") not in read
    ]
    assert unused == []


def test_the_shorter_interval_of_checkpoints_counts() -> None:
    assert BrokerConfig().checkpoint_interval_ms == 60_000
    properties = {"log.flush.start.offset.checkpoint.interval.ms": "7"}
    assert BrokerConfig.from_properties(properties).checkpoint_interval_ms == 7


def test_every_topic_setting_falls_back_to_a_broker_setting() -> None:
    broker = settings(BrokerConfig)
    for item in settings(TopicConfig).values():
        assert item.broker_name in broker


def test_defaults_of_topics_and_brokers_agree() -> None:
    assert BrokerConfig().topic_defaults() == TopicConfig()


def test_two_data_directories_are_refused() -> None:
    with pytest.raises(ConfigError, match="names 2 directories"):
        _ = BrokerConfig.from_properties({"log.dirs": "/a,/b"}).data_directory


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (("a", "b"), "a,b"), (None, None), (5, "5"), (0.5, "0.5")],
)
def test_values_are_written_as_kafka_writes_them(value: object, text: str | None) -> None:
    assert format_value(value) == text


STOCK_MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


@pytest.mark.parametrize(
    "properties",
    [
        {"listener.security.protocol.map": "PLAINTEXT:SSL"},
        {
            "listeners": "INSIDE://:1,OUTSIDE://:2",
            "listener.security.protocol.map": "outside:SASL_SSL",
        },
        {"security.inter.broker.protocol": "SASL_SSL"},
        {"ssl.keystore.location": "keys.jks"},
        {"ssl.client.auth": "required"},
        {"sasl.enabled.mechanisms": "PLAIN"},
        {"listener.name.plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256"},
        {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
        {"super.users": "User:admin"},
        {"allow.everyone.if.no.acl.found": "false"},
    ],
)
def test_security_that_is_not_there_is_refused_not_ignored(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties(properties)
    assert any(name in str(refused.value) for name in properties)
    reason = str(refused.value)
    assert "no encryption or authentication" in reason or "does not support" in reason


@pytest.mark.parametrize("entry", ["PLAINTEXT", ":SSL", "PLAINTEXT:"])
def test_a_map_of_protocols_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
        BrokerConfig.from_properties({"listener.security.protocol.map": entry})


def test_a_server_properties_of_kafka_in_plain_text_is_accepted() -> None:
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "listener.security.protocol.map": STOCK_MAP,
            "security.inter.broker.protocol": "PLAINTEXT",
            "authorizer.class.name": "",
        }
    )
    assert config.listeners == ("PLAINTEXT://:9092", "CONTROLLER://:9093")


def test_nothing_listens_outside_of_the_machine_unasked() -> None:
    assert BrokerConfig().listeners == ("PLAINTEXT://127.0.0.1:9092",)
