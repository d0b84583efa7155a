"""Creating, growing and deleting topics, and what is in them."""

from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.coordinator.topics import NewTopic
from broker.errors import ErrorCode
from broker.model import GROUP_TOPIC
from broker.protocol.messages.configs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from broker.protocol.messages.metadata import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from broker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    TopicPartitions,
)
from tests.broker.handlers.embedded import EmbeddedClient, batch_of


def create(client: EmbeddedClient, *topics: CreatableTopic, **options: bool) -> list[int]:
    """The error codes of a CreateTopics request."""
    request = CreateTopicsRequest(list(topics), **options)
    return [topic.error_code for topic in client.ask(request, CreateTopicsResponse).topics]


def assigned(name: str, *replicas: list[int], first: int = 0) -> CreatableTopic:
    """A topic with replicas assigned by hand."""
    return CreatableTopic(
        name,
        -1,
        -1,
        [CreatableReplicaAssignment(first + number, ids) for number, ids in enumerate(replicas)],
    )


def with_config(name: str, key: str, value: str | None) -> CreatableTopic:
    return CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(key, value)])


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic("new", 3, 1), ErrorCode.NONE),
        (CreatableTopic("new", -1, -1), ErrorCode.NONE),
        (CreatableTopic("new", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", 10**6, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("old", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("o.ld", 1, 1), ErrorCode.NONE),
        (CreatableTopic("dot.ted", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("sp ace", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic(GROUP_TOPIC, 1, 1), ErrorCode.INVALID_REQUEST),
        (assigned("new", [0], [0]), ErrorCode.NONE),
        (assigned("new", [0], [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("new", [0, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("new", [0], first=1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (with_config("new", "retention.ms", "1000"), ErrorCode.NONE),
        (with_config("new", "retention.ms", "soon"), ErrorCode.INVALID_CONFIG),
        (with_config("new", "retention.ms", None), ErrorCode.INVALID_CONFIG),
        (with_config("new", "no.such.setting", "1"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_topics_are_made_by_kafkas_rules(
    client: EmbeddedClient, topic: CreatableTopic, code: ErrorCode
) -> None:
    client.create("old")
    client.create("dot_ted")
    assert create(client, topic) == [code]
    assert (client.broker.state.topics.get(topic.name) is not None) == (
        code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    )


def test_the_answer_describes_the_new_topic(client: EmbeddedClient) -> None:
    request = CreateTopicsRequest([with_config("new", "retention.ms", "1000")])
    (made,) = client.ask(request, CreateTopicsResponse).topics
    topic = client.broker.state.topics.get("new")
    assert topic is not None
    assert (made.topic_id, made.num_partitions, made.replication_factor) == (topic.id, 1, 1)
    configs = {config.name: config for config in made.configs or ()}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )


def test_validation_alone_makes_nothing(client: EmbeddedClient) -> None:
    assert create(client, CreatableTopic("new", 3, 1), validate_only=True) == [0]
    assert create(client, CreatableTopic("new", 0, 1), validate_only=True) == [
        ErrorCode.INVALID_PARTITIONS
    ]
    assert client.broker.state.topics.names() == []


def test_topics_of_one_request_must_differ(client: EmbeddedClient) -> None:
    codes = create(client, *(CreatableTopic(name, 1, 1) for name in ("a", "b", "a", "c.d", "c_d")))
    assert codes == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert client.broker.state.topics.names() == ["b", "c.d"]


def delete(client: EmbeddedClient, *topics: DeleteTopicState) -> list[tuple[str | None, int]]:
    response = client.ask(DeleteTopicsRequest(list(topics)), DeleteTopicsResponse)
    return [(answer.name, answer.error_code) for answer in response.responses]


def test_topics_are_deleted_by_name_and_by_id(client: EmbeddedClient) -> None:
    client.create("a")
    topic_id = client.create("b")
    client.produce("a", "x")
    assert delete(client, DeleteTopicState("a"), DeleteTopicState(None, topic_id)) == [
        ("a", 0),
        ("b", 0),
    ]
    assert client.broker.state.storage.logs() == []
    client.create("a")
    assert client.fetch("a").high_watermark == 0


def test_what_cannot_be_deleted_says_why(client: EmbeddedClient) -> None:
    topic_id = client.create("a")
    client.broker.state.topics.ensure_internal(GROUP_TOPIC)
    answers = delete(
        client,
        DeleteTopicState("nope"),
        DeleteTopicState(None, b"?" * 16),
        DeleteTopicState("a", topic_id),
        DeleteTopicState(GROUP_TOPIC),
    )
    assert [code for _, code in answers] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    old = client.ask(DeleteTopicsRequest(topic_names=["a"]), DeleteTopicsResponse, 5)
    assert old.responses[0].error_code == 0


def test_deletion_can_be_switched_off(tmp_path: Path) -> None:
    clock = ManualClock()
    config = BrokerConfig(delete_topic_enable=False)
    with Broker(config, clock=clock, data_directory=str(tmp_path)) as broker:
        client = EmbeddedClient(broker, clock)
        client.create("a")
        assert delete(client, DeleteTopicState("a")) == [("a", ErrorCode.TOPIC_DELETION_DISABLED)]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("a", 4, None, ErrorCode.NONE),
        ("a", 3, [[0]], ErrorCode.NONE),
        ("a", 4, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("a", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("nope", 4, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GROUP_TOPIC, 4, None, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_topics_grow_by_kafkas_rules(
    client: EmbeddedClient,
    name: str,
    count: int,
    assignments: list[list[int]] | None,
    code: ErrorCode,
    validate_only: bool,
) -> None:
    client.create("a", 2)
    client.broker.state.topics.ensure_internal(GROUP_TOPIC)
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(ids) for ids in assignments]
    asked = CreatePartitionsTopic(name, count, given)
    request = CreatePartitionsRequest([asked], validate_only=validate_only)
    (answer,) = client.ask(request, CreatePartitionsResponse).results
    assert answer.error_code == code
    grown = code == ErrorCode.NONE and not validate_only
    if grown:
        assert client.produce("a", "x", partition=count - 1).error_code == 0
    topic = client.broker.state.topics.get("a")
    assert topic is not None
    assert topic.partition_count == (count if grown else 2)


@pytest.mark.parametrize(
    ("topic", "offset", "expected"),
    [
        ("orders", 2, (2, 0)),
        ("orders", -1, (3, 0)),
        ("orders", 0, (0, 0)),
        ("orders", 4, (-1, ErrorCode.OFFSET_OUT_OF_RANGE)),
        ("orders", -2, (-1, ErrorCode.OFFSET_OUT_OF_RANGE)),
        ("nope", 0, (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        ("compacted", 0, (-1, ErrorCode.POLICY_VIOLATION)),
        (GROUP_TOPIC, 0, (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)),
    ],
)
def test_records_are_deleted_up_to_an_offset(
    client: EmbeddedClient, topic: str, offset: int, expected: tuple[int, int]
) -> None:
    client.create("orders")
    client.create("compacted", cleanup_policy="compact")
    client.broker.state.topics.ensure_internal(GROUP_TOPIC)
    for value in "abc":
        client.produce("orders", value)
    asked = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    response = client.ask(DeleteRecordsRequest([asked]), DeleteRecordsResponse)
    answer = response.topics[0].partitions[0]
    assert (answer.low_watermark, answer.error_code) == expected


def test_the_data_directory_is_described(client: EmbeddedClient, tmp_path: Path) -> None:
    client.create("orders", 2)
    client.produce("orders", "a")
    response = client.ask(DescribeLogDirsRequest(None), DescribeLogDirsResponse)
    (directory,) = response.results
    assert directory.log_dir == str(tmp_path)
    assert 0 < directory.usable_bytes <= directory.total_bytes
    (topic,) = directory.topics
    sizes = [(part.partition_index, part.partition_size) for part in topic.partitions]
    assert sizes == [(0, len(batch_of("a"))), (1, 0)]
    asked = [DescribableLogDirTopic("orders", [1, 7]), DescribableLogDirTopic("nope", [0])]
    response = client.ask(DescribeLogDirsRequest(asked), DescribeLogDirsResponse)
    (topic,) = response.results[0].topics
    assert [part.partition_index for part in topic.partitions] == [1]


def test_no_election_is_needed(client: EmbeddedClient) -> None:
    client.create("orders")
    request = ElectLeadersRequest(0, [TopicPartitions("orders", [0, 1])])
    response = client.ask(request, ElectLeadersResponse)
    codes = [part.error_code for part in response.replica_election_results[0].partition_result]
    assert codes == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    everything = client.ask(ElectLeadersRequest(0, None), ElectLeadersResponse)
    assert (everything.error_code, everything.replica_election_results) == (0, [])


def test_nothing_is_reassigned(client: EmbeddedClient) -> None:
    response = client.ask(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    assert (response.error_code, response.topics) == (0, [])


def test_a_topic_that_another_request_creates_exists_when_that_is_done(
    client: EmbeddedClient,
) -> None:
    """A client that was refused at once looked for a topic that was not there yet."""
    catalog = client.broker.state.topics
    catalog.stage_new([NewTopic("a", 1, {})])
    assert catalog.get("a") is None
    assert create(client, CreatableTopic("a", 1, 1)) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert catalog.get("a") is not None


def test_a_disk_that_refuses_is_told_per_topic(client: EmbeddedClient, tmp_path: Path) -> None:
    client.create("a", 2)
    (tmp_path / "topics.json.tmp").mkdir()
    assert create(client, CreatableTopic("new", 1, 1)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert delete(client, DeleteTopicState("a")) == [("a", ErrorCode.KAFKA_STORAGE_ERROR)]
    request = CreatePartitionsRequest([CreatePartitionsTopic("a", 4, None)])
    (answer,) = client.ask(request, CreatePartitionsResponse).results
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    wanted = MetadataRequest([MetadataRequestTopic(name="new")])
    (topic,) = client.ask(wanted, MetadataResponse).topics
    assert topic.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    found = client.ask(FindCoordinatorRequest("mine"), FindCoordinatorResponse, 3)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert client.produce("a", "x").error_code == 0
