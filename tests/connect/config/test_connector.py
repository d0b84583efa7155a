"""A connector's configuration as the worker reads it."""

import pytest

from broker.linear_patterns import Pattern
from connect.config.connector import ConnectorConfig, ErrorSettings, SinkConfig, SourceConfig
from connect.errors import ConfigError

GIVEN = {"connector.class": "FileStreamSource"}


def test_settings_of_all_connectors_have_types_and_defaults() -> None:
    assert ConnectorConfig.parse(GIVEN) == ConnectorConfig(GIVEN, "FileStreamSource")
    given = {
        **GIVEN,
        "tasks.max": "3",
        "tasks.max.enforce": "false",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    assert ConnectorConfig.parse(given) == ConnectorConfig(
        given, "FileStreamSource", 3, enforces_tasks_max=False, value_converter="JsonConverter"
    )


def test_settings_of_errors() -> None:
    given = {
        **GIVEN,
        "errors.retry.timeout": "-1",
        "errors.retry.delay.max.ms": "500",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    expected = ErrorSettings(-1, 500, True, True, True, "dead", 1, True)
    assert ConnectorConfig.parse(given).errors == expected


@pytest.mark.parametrize("name", ["errors.tolerance", "tasks.max"])
def test_an_invalid_setting_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        ConnectorConfig.parse({**GIVEN, name: "some"})


def test_settings_of_sources() -> None:
    assert SourceConfig.parse(GIVEN) == SourceConfig()
    given = {
        "transaction.boundary": "INTERVAL",
        "transaction.boundary.interval.ms": "100",
        "offsets.storage.topic": "mine",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    assert SourceConfig.parse(given) == SourceConfig("interval", 100, "mine")
    [group] = SourceConfig.parse(given, creates_topics=True).topic_groups
    assert group.name == "default"


def test_topics_of_sinks() -> None:
    assert SinkConfig.parse({"topics": "b, a, b"}) == SinkConfig(["b", "a"])
    pattern = SinkConfig.parse({"topics.regex": "orders-.*"}).topics
    assert isinstance(pattern, Pattern)
    assert pattern.fullmatch("orders-eu")
    with pytest.raises(ConfigError, match=r'"topics\.regex" is not a valid regular expression'):
        SinkConfig.parse({"topics.regex": "("})
