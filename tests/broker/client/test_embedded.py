"""The embedded transport: calls instead of frames, answers that come later, closing."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.client.cluster import Cluster
from broker.client.embedded import EmbeddedTransport
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import ClientError, ConnectionFailed, RequestTimeout
from broker.model import ConnectionInfo, TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


class LateBroker:
    """Answers every request later: when the test completes the pending answer."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.pending: list[Pending[object]] = []
        self.requests: list[tuple[ApiKey, int, object, ConnectionInfo]] = []
        self.abandoned: list[Pending[object]] = []

    def handle(
        self, api_key: ApiKey, version: int, request: object, connection: ConnectionInfo
    ) -> object:
        self.requests.append((api_key, version, request, connection))
        self.pending.append(Pending())
        return self.pending[-1]

    def when_done(self, pending: Pending[object], callback: Callable[[object], None]) -> None:
        with self.lock:
            pending.then(callback)

    def abandon(self, pending: Pending[object]) -> None:
        self.abandoned.append(pending)


@pytest.fixture
def late() -> LateBroker:
    return LateBroker()


def test_an_answer_that_comes_later_completes_outside_the_brokers_lock(late: LateBroker) -> None:
    transport = EmbeddedTransport(late, client_id="tester")
    future = transport.send(None, MetadataRequest([]), timeout_ms=10_000, version_max=5)
    free = threading.Event()

    def look(_: object) -> None:
        if late.lock.acquire(timeout=60):
            late.lock.release()
            free.set()

    future.add_done_callback(look)
    answer = MetadataResponse(cluster_id="late")
    with late.lock:
        late.pending[0].complete(answer)
        assert not free.wait(0.02), (
            "the callback runs in another thread, which finds the lock taken"
        )
    assert future.result(60) is answer
    assert free.wait(60)
    (api_key, version, _, connection) = late.requests[0]
    assert (api_key, version, connection.client_id) == (ApiKey.METADATA, 5, "tester")
    transport.close()


def test_an_answer_that_does_not_come_times_out_and_is_abandoned(late: LateBroker) -> None:
    clock = ManualClock()
    transport = EmbeddedTransport(late, clock=clock)
    future = transport.send(None, MetadataRequest([]), timeout_ms=1_000)
    clock.advance(1_001)
    with pytest.raises(RequestTimeout, match="MetadataRequest was not answered within 1000 ms"):
        future.result(60)
    assert late.abandoned == late.pending
    late.pending[0].complete(MetadataResponse())
    transport.close()


def test_closing_fails_what_still_waits(late: LateBroker) -> None:
    transport = EmbeddedTransport(late)
    future = transport.send(None, MetadataRequest([]), timeout_ms=60_000)
    transport.close()
    with pytest.raises(ConnectionFailed, match="closed"):
        future.result(60)
    with pytest.raises(ClientError, match="closed"):
        transport.send(None, MetadataRequest([]), timeout_ms=1_000)
    transport.close()


def test_the_broker_gets_copies_of_the_batches_it_writes_offsets_into(late: LateBroker) -> None:
    transport = EmbeddedTransport(late)
    records = b"a record batch"
    data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])]
    transport.send(None, ProduceRequest(None, -1, 1_000, data), timeout_ms=1_000)
    request = late.requests[0][2]
    assert isinstance(request, ProduceRequest)
    given = request.topic_data[0].partition_data[0].records
    assert isinstance(given, memoryview)
    given[:1] = b"X"
    assert records == b"a record batch"
    transport.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(BrokerConfig(), data_directory=str(tmp_path)) as running:
        yield running


def test_the_cluster_of_an_embedded_broker_is_that_broker(broker: Broker) -> None:
    cluster = Cluster(EmbeddedTransport(broker))
    assert cluster.partitions("made-on-demand") == [0]
    assert cluster.leader(TopicPartition("made-on-demand", 0)) == broker.config.broker_id
    assert cluster.cluster_id == broker.cluster_id
    assert [node.id for node in cluster.nodes()] == [broker.config.broker_id]
    cluster.close()


def test_a_broker_that_was_closed_cannot_be_reached(tmp_path: Path) -> None:
    broker = Broker(BrokerConfig(), data_directory=str(tmp_path)).start()
    cluster = Cluster(EmbeddedTransport(broker))
    broker.close()
    with pytest.raises(RequestTimeout, match="the broker is not running"):
        cluster.refresh(["orders"], timeout_ms=100)
    cluster.close()
