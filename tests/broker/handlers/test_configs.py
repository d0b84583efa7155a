"""Describing and changing settings."""

from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.broker.handlers.embedded import EmbeddedClient

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7


def describe(
    client: EmbeddedClient, resource_type: int, name: str, *keys: str
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type, name, list(keys) or None)
    request = DescribeConfigsRequest([resource], include_synonyms=True)
    (result,) = client.ask(request, DescribeConfigsResponse).results
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


def alter(
    client: EmbeddedClient,
    *changes: tuple[str, int, str | None],
    name: str = "orders",
    validate_only: bool = False,
) -> int:
    """The error code of an IncrementalAlterConfigs request for one topic."""
    configs = [IncrementalAlterConfigsRequestAlterableConfig(*change) for change in changes]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(TOPIC, name, configs)
    request = IncrementalAlterConfigsRequest([resource], validate_only)
    return client.ask(request, IncrementalAlterConfigsResponse).responses[0].error_code


def test_a_topics_settings_say_where_they_come_from(tmp_path: Path) -> None:
    clock = ManualClock()
    config = BrokerConfig(log_segment_bytes=1_000_000)
    with Broker(config, clock=clock, data_directory=str(tmp_path)) as broker:
        client = EmbeddedClient(broker, clock)
        client.create("orders", retention_ms="1000")
        found = describe(client, TOPIC, "orders")
    own, inherited, default = (
        found["retention.ms"],
        found["segment.bytes"],
        found["cleanup.policy"],
    )
    assert (own.value, own.config_source, own.config_type) == ("1000", DYNAMIC_TOPIC, LONG)
    assert (inherited.value, inherited.config_source) == ("1000000", STATIC_BROKER)
    assert inherited.config_type == INT
    assert (default.value, default.config_source) == ("delete", DEFAULT)
    assert default.config_type == LIST
    assert [(one.name, one.value, one.source) for one in own.synonyms] == [
        ("retention.ms", "1000", DYNAMIC_TOPIC),
        ("log.retention.ms", "604800000", DEFAULT),
    ]
    assert not any(entry.read_only or entry.is_sensitive for entry in found.values())


def test_only_the_settings_asked_for_are_described(client: EmbeddedClient) -> None:
    client.create("orders")
    assert set(describe(client, TOPIC, "orders", "retention.ms", "nope")) == {"retention.ms"}


def test_the_brokers_settings_are_read_only(client: EmbeddedClient) -> None:
    found = describe(client, BROKER, "0")
    assert found["offsets.topic.num.partitions"].config_source == STATIC_BROKER
    assert found["offsets.topic.num.partitions"].value == "2"
    assert found["auto.create.topics.enable"].config_type == BOOLEAN
    assert all(entry.read_only for entry in found.values())
    assert describe(client, BROKER, "") == {}
    assert describe(client, GROUP, "mine") == {}


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no pe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_there_cannot_be_described(
    client: EmbeddedClient, resource_type: int, name: str, code: ErrorCode
) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(resource_type, name)])
    (result,) = client.ask(request, DescribeConfigsResponse).results
    assert result.error_code == code
    assert result.error_message


@pytest.mark.parametrize(
    ("changes", "code", "overrides"),
    [
        ([("retention.ms", SET, "5")], 0, {"retention.ms": "5", "segment.ms": "7"}),
        ([("segment.ms", DELETE, None)], 0, {}),
        ([("retention.ms", DELETE, None)], 0, {"segment.ms": "7"}),
        (
            [("cleanup.policy", APPEND, "compact")],
            0,
            {"segment.ms": "7", "cleanup.policy": "delete,compact"},
        ),
        ([("cleanup.policy", SUBTRACT, "delete")], 0, {"segment.ms": "7", "cleanup.policy": ""}),
        ([("segment.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, None),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG, None),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, None),
        ([("nope", SET, "1")], ErrorCode.INVALID_CONFIG, None),
        ([("segment.ms", 9, "1")], ErrorCode.INVALID_REQUEST, None),
        (
            [("segment.ms", SET, "1"), ("segment.ms", SET, "2")],
            ErrorCode.INVALID_REQUEST,
            None,
        ),
    ],
)
def test_single_settings_change(
    client: EmbeddedClient,
    changes: list[tuple[str, int, str | None]],
    code: int,
    overrides: dict[str, str] | None,
) -> None:
    client.create("orders", segment_ms="7")
    assert alter(client, *changes, validate_only=True) == code
    assert overrides_of(client) == {"segment.ms": "7"}
    assert alter(client, *changes) == code
    assert overrides_of(client) == (overrides if overrides is not None else {"segment.ms": "7"})


def overrides_of(client: EmbeddedClient) -> dict[str, str]:
    topic = client.broker.state.topics.get("orders")
    assert topic is not None
    return dict(topic.overrides)


def test_a_changed_setting_takes_effect_at_once(client: EmbeddedClient) -> None:
    client.create("orders")
    assert client.produce("orders", "x" * 2000).error_code == 0
    assert alter(client, ("max.message.bytes", SET, "1000")) == 0
    assert client.produce("orders", "x" * 2000).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_all_settings_can_be_replaced(client: EmbeddedClient) -> None:
    client.create("orders", segment_ms="7")

    def replace(name: str, value: str | None, resource: tuple[int, str] = (TOPIC, "orders")) -> int:
        asked = AlterConfigsResource(*resource, [AlterableConfig(name, value)])
        return (
            client.ask(AlterConfigsRequest([asked]), AlterConfigsResponse).responses[0].error_code
        )

    assert replace("retention.ms", "9") == 0
    assert overrides_of(client) == {"retention.ms": "9"}
    assert replace("retention.ms", None) == ErrorCode.INVALID_REQUEST
    assert replace("retention.ms", "9", (TOPIC, "nope")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace("log.retention.ms", "9", (BROKER, "0")) == ErrorCode.INVALID_REQUEST
    assert replace("x", "9", (GROUP, "mine")) == ErrorCode.INVALID_REQUEST


def test_a_resource_may_come_once(client: EmbeddedClient) -> None:
    client.create("orders")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(TOPIC, "orders", [])
    request = IncrementalAlterConfigsRequest([resource, resource])
    responses = client.ask(request, IncrementalAlterConfigsResponse).responses
    assert [one.error_code for one in responses] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize(
    ("version", "types", "expected"),
    [
        (0, [], []),
        (1, [], [("orders", TOPIC), ("0", BROKER)]),
        (1, [TOPIC], [("orders", TOPIC)]),
        (1, [GROUP], []),
    ],
)
def test_resources_with_settings_are_listed(
    client: EmbeddedClient, version: int, types: list[int], expected: list[tuple[str, int]]
) -> None:
    client.create("orders")
    response = client.ask(ListConfigResourcesRequest(types), ListConfigResourcesResponse, version)
    found = [(one.resource_name, one.resource_type) for one in response.config_resources]
    assert found == expected
