"""Metadata, DescribeCluster, DescribeTopicPartitions and FindCoordinator."""

from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.model import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.protocol.messages.metadata import (
    Cursor,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    TopicRequest,
)
from tests.broker.handlers.embedded import EmbeddedClient

NO_OPERATIONS = -2147483648


def names(response: MetadataResponse) -> list[str | None]:
    return [topic.name for topic in response.topics]


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [
        (0, [], ["a", "b"]),
        (1, [], []),
        (1, None, ["a", "b"]),
        (12, [], []),
        (12, None, ["a", "b"]),
        (12, [MetadataRequestTopic(name="b")], ["b"]),
    ],
)
def test_all_topics_none_or_some(
    client: EmbeddedClient,
    version: int,
    topics: list[MetadataRequestTopic] | None,
    expected: list[str],
) -> None:
    client.create("b", 2)
    client.create("a")
    response = client.ask(MetadataRequest(topics), MetadataResponse, version)
    assert names(response) == expected


def test_the_one_broker_leads_every_partition(client: EmbeddedClient) -> None:
    topic_id = client.create("orders", 2)
    client.broker.advertise("PLAINTEXT", "example.org", 1234)
    response = client.ask(MetadataRequest(None), MetadataResponse)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (0, "example.org", 1234)
    assert (response.controller_id, response.cluster_id) == (0, client.broker.cluster_id)
    (topic,) = response.topics
    assert (topic.topic_id, topic.is_internal) == (topic_id, False)
    assert topic.topic_authorized_operations == NO_OPERATIONS
    for number, partition in enumerate(topic.partitions):
        assert (partition.partition_index, partition.leader_id) == (number, 0)
        assert (partition.leader_epoch, partition.replica_nodes) == (0, [0])
        assert (partition.isr_nodes, partition.offline_replicas) == ([0], [])


def test_operations_are_told_to_those_who_ask(client: EmbeddedClient) -> None:
    client.create("orders")
    request = MetadataRequest(
        None,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    response = client.ask(request, MetadataResponse, 8)
    assert response.topics[0].topic_authorized_operations == 0b110111111000
    assert response.cluster_authorized_operations == 0b1111110100000


def test_a_topic_asked_for_is_made(client: EmbeddedClient) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="orders")])
    (topic,) = client.ask(request, MetadataResponse).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert client.broker.state.topics.names() == ["orders"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_cannot_be_has_an_error(
    client: EmbeddedClient, name: str, code: ErrorCode
) -> None:
    client.create("a_b")
    request = MetadataRequest([MetadataRequestTopic(name=name)])
    assert client.ask(request, MetadataResponse).topics[0].error_code == code


def test_clients_may_ask_without_making(client: EmbeddedClient) -> None:
    request = MetadataRequest(
        [MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False
    )
    (topic,) = client.ask(request, MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.broker.state.topics.names() == []


def test_topics_are_not_made_when_the_broker_says_so(tmp_path: Path) -> None:
    clock = ManualClock()
    config = BrokerConfig(auto_create_topics_enable=False)
    with Broker(config, clock=clock, data_directory=str(tmp_path)) as broker:
        request = MetadataRequest([MetadataRequestTopic(name="orders")])
        (topic,) = EmbeddedClient(broker, clock).ask(request, MetadataResponse).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_can_be_asked_for_by_id(client: EmbeddedClient) -> None:
    topic_id = client.create("orders")
    request = MetadataRequest(
        [MetadataRequestTopic(topic_id, None), MetadataRequestTopic(b"?" * 16, None)]
    )
    found, missing = client.ask(request, MetadataResponse, 12).topics
    assert (found.name, found.error_code) == ("orders", 0)
    assert (missing.name, missing.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_empty_name_beside_an_id_is_no_name(client: EmbeddedClient) -> None:
    topic_id = client.create("orders")
    request = MetadataRequest([MetadataRequestTopic(topic_id, "")])
    (found,) = client.ask(request, MetadataResponse, 13).topics
    assert (found.name, found.error_code) == ("orders", 0)


def test_the_cluster_is_described(client: EmbeddedClient) -> None:
    response = client.ask(DescribeClusterRequest(True), DescribeClusterResponse)
    assert (response.cluster_id, response.controller_id) == (client.broker.cluster_id, 0)
    assert [broker.broker_id for broker in response.brokers] == [0]
    assert response.cluster_authorized_operations > 0
    controllers = client.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse)
    assert controllers.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_partitions_are_described_page_by_page(client: EmbeddedClient) -> None:
    client.create("a", 3)
    client.create("b", 1)
    client.create("c", 2)
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    pages = 0
    while True:
        request = DescribeTopicPartitionsRequest([], 2, cursor)
        response = client.ask(request, DescribeTopicPartitionsResponse)
        pages += 1
        seen += [
            (topic.name, partition.partition_index)
            for topic in response.topics
            for partition in topic.partitions
        ]
        cursor = response.next_cursor
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]
    assert pages == 3


def test_a_topic_that_is_not_there_is_described_as_unknown(client: EmbeddedClient) -> None:
    request = DescribeTopicPartitionsRequest([TopicRequest("nope"), TopicRequest("no pe")])
    response = client.ask(request, DescribeTopicPartitionsResponse)
    assert [topic.error_code for topic in response.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


@pytest.mark.parametrize(("key_type", "topic"), [(0, GROUP_TOPIC), (1, TRANSACTION_TOPIC)])
def test_this_broker_coordinates_everything(
    client: EmbeddedClient, key_type: int, topic: str
) -> None:
    client.broker.advertise("PLAINTEXT", "example.org", 1234)
    one = client.ask(FindCoordinatorRequest("mine", key_type), FindCoordinatorResponse, 3)
    assert (one.error_code, one.node_id, one.host, one.port) == (0, 0, "example.org", 1234)
    many = client.ask(
        FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]),
        FindCoordinatorResponse,
        4,
    )
    assert [(found.key, found.port) for found in many.coordinators] == [("a", 1234), ("b", 1234)]
    made = client.broker.state.topics.get(topic)
    assert made is not None
    assert made.internal
    assert made.partition_count == 2
    assert made.config.compacts


def test_a_coordinator_of_nothing_is_not_found(client: EmbeddedClient) -> None:
    response = client.ask(FindCoordinatorRequest("share", 2), FindCoordinatorResponse, 3)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message
