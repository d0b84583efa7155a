"""The network transport against a broker that answers, lies, stalls and hangs up."""

import os
import struct
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from broker.client.cluster import Cluster
from broker.client.config import ClusterConfig, NetworkConfig
from broker.client.network import NetworkTransport
from broker.client.transport import Node
from broker.errors import (
    ClientError,
    ConnectionFailed,
    ErrorCode,
    MalformedMessage,
    RequestTimeout,
    UnsupportedVersion,
)
from broker.model import TopicPartition
from broker.protocol.frame import Request
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from broker.protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.protocol.messages.produce import ProduceRequest
from tests.broker.client.fake_broker import FakeBroker, Script, all_versions, refused_versions

TIMEOUT_MS = 60_000


def connect(servers: str, **settings: object) -> NetworkTransport:
    return NetworkTransport(NetworkConfig(servers, **settings))  # type: ignore[arg-type]


def wait_for(future: Future[object]) -> object:
    return future.result(TIMEOUT_MS / 1000)


def answering(answer: Callable[[Request], object]) -> Script:
    """Versions as they are, everything else by the function."""

    def script(request: Request) -> object:
        return all_versions() if isinstance(request.body, ApiVersionsRequest) else answer(request)

    return script


def metadata(request: Request) -> object:
    return (
        MetadataResponse(cluster_id="fake") if isinstance(request.body, MetadataRequest) else None
    )


def test_a_request_is_sent_in_the_highest_version_both_sides_know() -> None:
    def script(request: Request) -> object:
        if isinstance(request.body, ApiVersionsRequest):
            return ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 7), ApiVersion(18, 0, 4)])
        return metadata(request)

    with FakeBroker(script) as fake:
        transport = connect(fake.address, client_id="tester")
        for version_max in (None, 5, 99):
            response = wait_for(
                transport.send(
                    None, MetadataRequest([]), timeout_ms=TIMEOUT_MS, version_max=version_max
                )
            )
            assert isinstance(response, MetadataResponse)
        with pytest.raises(UnsupportedVersion, match="does not support FetchRequest"):
            wait_for(transport.send(None, FetchRequest(), timeout_ms=TIMEOUT_MS))
        transport.close()
    assert [request.api_version for request in fake.requests] == [4, 7, 5, 7, 4]  # fetches connect
    assert {request.client_id for request in fake.requests} == {"tester"}


def test_an_old_broker_is_asked_for_its_versions_in_version_0() -> None:
    def script(request: Request) -> object:
        if isinstance(request.body, ApiVersionsRequest) and request.api_version > 0:
            return refused_versions(request.correlation_id)
        return answering(metadata)(request)

    with FakeBroker(script) as fake:
        transport = connect(fake.address)
        assert wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        transport.close()
    assert [request.api_version for request in fake.requests[:2]] == [4, 0]


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (struct.pack(">i", -1), "announces a response of -1 bytes"),
        (struct.pack(">i", 0), "announces a response of 0 bytes"),
        (struct.pack(">i", 2**31 - 1), "announces a response of 2147483647 bytes"),
        (struct.pack(">iiq", 12, 77, 0), "answered request 77 when"),
        (struct.pack(">ii", 4, 2), "ends too early"),
        (struct.pack(">iib", 5, 2, 127), "ends too early|tag"),
    ],
)
def test_frames_that_cannot_be_true_end_the_connection(lie: bytes, message: str) -> None:
    with FakeBroker(answering(lambda _: lie)) as fake:
        transport = connect(fake.address)
        with pytest.raises(MalformedMessage, match=message):
            wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        transport.close()


def test_a_response_that_nobody_asked_for_ends_the_connection() -> None:
    def script(request: Request) -> object:
        if isinstance(request.body, ApiVersionsRequest):
            return all_versions()
        return struct.pack(">iih", 6, request.correlation_id, 0) * 2

    with FakeBroker(script) as fake:
        transport = connect(fake.address)
        sent = [transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS) for _ in range(2)]
        for future in sent:
            with pytest.raises((MalformedMessage, ConnectionFailed)):
                wait_for(future)
        transport.close()


def test_a_broken_connection_fails_its_requests_and_the_next_one_connects_again() -> None:
    answers = iter([None, MetadataResponse(cluster_id="second")])
    with FakeBroker(answering(lambda _: next(answers))) as fake:
        transport = connect(fake.address, reconnect_backoff_ms=1)
        with pytest.raises(ConnectionFailed, match="closed the connection"):
            wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        assert wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        transport.close()
    assert fake.connections_made == 2


@pytest.mark.slow
def test_a_broker_that_does_not_answer_times_out() -> None:
    with FakeBroker(answering(lambda _: b"")) as fake:
        transport = connect(fake.address)
        future = transport.send(None, MetadataRequest([]), timeout_ms=2_000)  # connected by then
        behind = transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS)
        with pytest.raises(RequestTimeout, match="Metadata to broker -1"):
            wait_for(future)
        with pytest.raises(ConnectionFailed, match="stopped answering"):
            wait_for(behind)
        transport.close()


@pytest.mark.slow
def test_a_broker_that_does_not_open_the_session_counts_as_unreachable() -> None:
    with FakeBroker(lambda _: b"") as fake:
        transport = connect(fake.address, socket_connection_setup_timeout_ms=300)
        with pytest.raises(ConnectionFailed, match="did not accept the connection within 300 ms"):
            wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        transport.close()


def test_the_next_bootstrap_address_is_tried_when_one_does_not_answer() -> None:
    with FakeBroker(answering(metadata)) as fake:
        servers = f"127.0.0.1:1,127.0.0.1:2,{fake.address}"
        cluster = Cluster(connect(servers), config=ClusterConfig(retry_backoff_ms=10))
        cluster.refresh(timeout_ms=TIMEOUT_MS)
        assert cluster.cluster_id == "fake"
        cluster.close()


def test_no_broker_at_all_is_told_with_the_address_and_the_reason() -> None:
    cluster = Cluster(connect("127.0.0.1:1"))
    with pytest.raises(RequestTimeout) as failed:
        cluster.partitions("orders", timeout_ms=200)
    assert 'looking up topic "orders" did not succeed within 200 ms' in str(failed.value)
    assert "cannot connect to 127.0.0.1:1: connection refused" in str(failed.value)
    cluster.close()


def test_many_requests_are_in_flight_and_answered_in_order() -> None:
    with FakeBroker(
        answering(lambda request: MetadataResponse(cluster_id=str(request.correlation_id)))
    ) as fake:
        transport = connect(fake.address, requests_in_flight_max=7)
        sent = [
            transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS) for _ in range(300)
        ]
        numbers = [int(wait_for(future).cluster_id) for future in sent]  # type: ignore[attr-defined]
        assert numbers == list(range(2, 302))
        transport.close()


def test_a_large_response_arrives_whole_and_its_records_are_views_of_one_buffer() -> None:
    records = os.urandom(3_000_000)
    answer = FetchResponse(
        responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, records=records)])] * 2
    )
    with FakeBroker(answering(lambda _: answer)) as fake:
        transport = connect(fake.address)
        for _ in range(2):
            response = wait_for(
                transport.send(None, FetchRequest(), timeout_ms=TIMEOUT_MS, version_max=12)
            )
            assert isinstance(response, FetchResponse)
            views = [topic.partitions[0].records for topic in response.responses]
            assert all(isinstance(view, memoryview) for view in views)
            assert views == [records, records]
            assert views[0].obj is views[1].obj  # type: ignore[union-attr]
        transport.close()


def test_a_fetch_that_waits_does_not_hold_up_other_requests() -> None:
    def script(request: Request) -> object:
        return b"" if isinstance(request.body, FetchRequest) else metadata(request)

    with FakeBroker(answering(script)) as fake:
        transport = connect(fake.address)
        waiting = transport.send(None, FetchRequest(), timeout_ms=TIMEOUT_MS)
        assert wait_for(transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        assert not waiting.done()
        transport.close()
        with pytest.raises(ClientError, match="closed"):
            wait_for(waiting)


def test_a_request_without_an_answer_completes_when_it_is_handed_over() -> None:
    with FakeBroker(answering(metadata)) as fake:
        transport = connect(fake.address)
        produce = ProduceRequest(acks=0)
        assert wait_for(transport.send(None, produce, timeout_ms=TIMEOUT_MS)) is None
        transport.close()


def test_a_closed_transport_refuses_requests() -> None:
    transport = connect("127.0.0.1:1")
    transport.close()
    transport.close()
    with pytest.raises(ClientError, match="closed"):
        transport.send(None, MetadataRequest([]), timeout_ms=TIMEOUT_MS)


def test_a_node_that_is_not_known_cannot_be_asked() -> None:
    with FakeBroker(answering(metadata)) as fake:
        transport = connect(fake.address)
        transport.update_nodes([Node(1, "127.0.0.1", fake.port)])
        assert wait_for(transport.send(1, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        with pytest.raises(ConnectionFailed, match="broker 5 is not in"):
            wait_for(transport.send(5, MetadataRequest([]), timeout_ms=TIMEOUT_MS))
        transport.close()


class Moving:
    """Metadata whose leader and errors a test changes."""

    def __init__(self) -> None:
        self.port = 0
        self.leader = 1
        self.epoch = 1
        self.error = ErrorCode.NONE
        self.coordinators = iter([ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE])

    def __call__(self, request: Request) -> object:
        if isinstance(request.body, FindCoordinatorRequest):
            code = next(self.coordinators)
            found = Coordinator("readers", 2, "127.0.0.1", self.port, code)
            return FindCoordinatorResponse(coordinators=[found])
        brokers = [MetadataResponseBroker(node, "127.0.0.1", self.port) for node in (1, 2)]
        partition = MetadataResponsePartition(0, 0, self.leader, self.epoch)
        topic = MetadataResponseTopic(self.error, "orders", bytes(15) + b"1", False, [partition])
        return MetadataResponse(brokers=brokers, topics=[topic])


def test_leaders_follow_the_metadata_but_never_back_to_an_older_epoch() -> None:
    moving = Moving()
    tp = TopicPartition("orders", 0)
    with FakeBroker(answering(moving)) as fake:
        moving.port = fake.port
        cluster = Cluster(connect(fake.address))
        assert cluster.leader(tp) == 1
        moving.leader, moving.epoch = 2, 2
        cluster.invalidate("orders")
        cluster.refresh()
        assert cluster.known_leader(tp) == 2
        moving.leader, moving.epoch = 1, 1
        cluster.refresh()
        assert cluster.known_leader(tp) == 2
        assert cluster.learn_leader(tp, 1, 3)
        assert cluster.leader(tp) == 1
        assert not cluster.learn_leader(tp, 9, 4), "a broker nobody knows is no leader"
        cluster.close()


def test_a_topic_that_does_not_exist_is_told_with_what_to_do() -> None:
    moving = Moving()
    moving.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with FakeBroker(answering(moving)) as fake:
        moving.port = fake.port
        cluster = Cluster(connect(fake.address), config=ClusterConfig(retry_backoff_ms=10))
        with pytest.raises(RequestTimeout, match='topic "orders"') as failed:
            cluster.topic("orders", timeout_ms=100)
        assert "create it" in failed.value.hint
        cluster.close()


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    moving = Moving()
    with FakeBroker(answering(moving)) as fake:
        moving.port = fake.port
        cluster = Cluster(connect(fake.address), config=ClusterConfig(retry_backoff_ms=10))
        cluster.refresh()
        assert cluster.coordinator("group", "readers") == 2
        assert cluster.known_coordinator("group", "readers") == 2
        cluster.forget_coordinator("group", "readers")
        assert cluster.known_coordinator("group", "readers") is None
        cluster.close()
