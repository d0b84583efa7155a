"""The same requests to our broker and to Apache Kafka: the answers must be the same."""

import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from broker.errors import ErrorCode
from broker.protocol.frame import response_class
from broker.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.groups import HeartbeatRequest
from broker.protocol.messages.metadata import FindCoordinatorRequest
from broker.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.transactions import InitProducerIdRequest
from tests.compatibility.conftest import KAFKA_SETTINGS, SETTINGS
from tests.compatibility.conversations import CONVERSATIONS
from tests.support.apache_kafka import ApacheKafka, KafkaRelease
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.slow, pytest.mark.peer]

# What differs between any two brokers, or is there for people to read.
PRIVATE = {
    *("throttle_time_ms", "error_message", "batch_index_error_message", "record_errors"),
    *("host", "port", "cluster_id", "node_endpoints", "client_host", "documentation"),
    *("eligible_leader_replicas", "last_known_elr", "transaction_start_time_ms"),
    # Kafka has settings of tiered storage that a broker without it has not.
    "configs",
    # Epochs of a group only grow; by how much is the broker's own affair.
    *("member_epoch", "group_epoch", "assignment_epoch"),
    # Kafka tells it even for topics that are not there.
    "topic_authorized_operations",
}
# Names that a broker makes up: only whether there is one can be compared.
MADE_UP = {"topic_id", "member_id", "leader", "producer_id", "session_id", "log_append_time_ms"}
# Clients take null and nothing for the same.
EMPTY_OR_NULL = {"aborted_transactions", "protocol_name", "subscribed_topic_regex"}
# A broker that has just started its coordinators, or made a topic, asks to be asked again.
NOT_YET = {
    *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CONCURRENT_TRANSACTIONS),
    *(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
}


@pytest.fixture(scope="module")
def pair(
    apache_kafka: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The addresses of our broker and of a Kafka that is set up alike."""
    ours = MillstreamBroker(
        tmp_path_factory.mktemp("ours"), settings={**SETTINGS, "broker.id": "1"}
    )
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), settings=KAFKA_SETTINGS) as kafka, ours:
        for address in (ours.bootstrap, kafka.bootstrap):
            start_coordinators(address)
        yield ours.bootstrap, kafka.bootstrap


def start_coordinators(address: str) -> None:
    """Has the topics of the coordinators made: Kafka does so when they are first looked for."""
    for kind in (0, 1):
        settled(address, FindCoordinatorRequest(key_type=kind, coordinator_keys=["a"]), 4)
    not_yet = ErrorCode.NOT_COORDINATOR
    wait_until(
        lambda: not_yet not in codes(settled(address, InitProducerIdRequest("first", 60_000), 4)),
        "the start of the coordinator of transactions",
    )
    wait_until(
        lambda: not_yet not in codes(settled(address, HeartbeatRequest("first", 1, "none"), 4)),
        "the start of the coordinator of groups",
    )


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_strange_requests_get_kafkas_answers(pair: tuple[str, str], name: str) -> None:
    ours, kafkas = (noted(address, name) for address in pair)
    differences = [
        f"{request}\n    {line}"
        for (request, mine), (_, theirs) in zip(ours, kafkas, strict=True)
        for line in compare("", mine, theirs)
    ]
    assert not differences, "\n".join(["", *differences])


def noted(address: str, name: str) -> list[tuple[str, object]]:
    """Holds a conversation with a broker and returns what it was asked and answered."""
    notes: list[tuple[str, object]] = []

    def ask(request: object, version: int) -> object:
        try:
            answer = settled(address, request, version)
        except (EOFError, OSError) as error:
            # A request that the broker will not even answer ends the connection.
            answer = type(error).__name__
        notes.append((f"{request} v{version}"[:400], comparable(answer)))
        if isinstance(request, CreateTopicsRequest) and not request.validate_only:
            assert isinstance(answer, CreateTopicsResponse)
            made = answer.topics
            wait_until(lambda: not any(unserved(address, made)), "the start of new partitions")
        return answer

    CONVERSATIONS[name](ask)
    return notes


def unserved(address: str, made: list[CreatableTopicResult]) -> Iterator[int]:
    """Error codes of new partitions that are not read yet: Kafka makes their logs a bit later."""
    for topic in made:
        if topic.error_code == ErrorCode.NONE:
            parts = [ListOffsetsPartition(each, -1, -2) for each in range(topic.num_partitions)]
            request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic.name, parts)])
            yield from filter(None, codes(settled(address, request, 8)))


def settled(address: str, request: object, version: int) -> object:
    """The answer to a request, asked again while it only says that it is too early."""
    deadline = time.monotonic() + 60
    while True:
        with RawClient(address) as client:
            answer = client.ask(request, response_class(request), version)
        if time.monotonic() > deadline or not NOT_YET & set(codes(answer)):
            return answer


def codes(answer: object) -> Iterator[int]:
    """All error codes inside an answer."""
    if is_dataclass(answer):
        for field in fields(answer):
            value = getattr(answer, field.name)
            if field.name.endswith("error_code"):
                yield value
            yield from codes(value)
    elif isinstance(answer, list):
        for each in answer:
            yield from codes(each)


def comparable(answer: object) -> object:
    """An answer without what may differ between two brokers."""
    if is_dataclass(answer):
        return {
            field.name: shape(field.name, getattr(answer, field.name))
            for field in fields(answer)
            if field.name not in PRIVATE
        }
    if isinstance(answer, list):
        return sorted((comparable(each) for each in answer), key=str)
    if isinstance(answer, memoryview):
        return bytes(answer)
    return answer


def compare(path: str, mine: object, theirs: object) -> Iterator[str]:
    """One line for each place where two answers differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in mine:
            yield from compare(f"{path}.{name}", mine[name], theirs[name])
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for number, (each, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from compare(f"{path}[{number}]", each, other)
    elif mine != theirs:
        yield f"{path.removeprefix('.')}: ours {mine!r}, Kafka {theirs!r}"


def shape(name: str, value: object) -> object:
    if name in EMPTY_OR_NULL:
        return comparable(value or "")
    if name not in MADE_UP or is_dataclass(value):
        return comparable(value)
    return value not in (None, "", -1, 0, bytes(16))
