"""The metrics page."""

import http.client
import socket
from contextlib import ExitStack, suppress

import pytest

from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from broker.protocol.messages.produce import ProduceResponse
from broker.rest import idle_connections
from broker.server import Server
from tests.broker.handlers.embedded import batch_of, produce_request
from tests.broker.server.conftest import StartServer
from tests.support.raw_client import RawClient


def get(server: Server, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.metrics_port or 0, timeout=60)
    connection.request(method, path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def samples(text: str) -> dict[str, float]:
    """Values by name and labels, in the text's own spelling."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


@pytest.mark.slow
def test_silent_clients_do_not_keep_others_out(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_connections, "SILENT_SECONDS_MAX", 600.0)  # none ends by itself
    server = start_server(metrics_port=0)
    with ExitStack() as stack:
        address = ("127.0.0.1", server.metrics_port or 0)
        silent = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(120)]
        assert get(server)[0] == 200
        assert silent[0].recv(1) == b"", "the oldest one was closed"


def test_the_page_tells_requests_topics_logs_and_connections(start_server: StartServer) -> None:
    server = start_server(metrics_port=0)
    with RawClient(server.bootstrap) as client:
        client.ask(MetadataRequest(None), MetadataResponse)
        with server._broker.lock:
            server._broker.state.topics.create("or.ders", partition_count=1)
        batch = batch_of("a", "b")
        client.ask(produce_request("or.ders", batch), ProduceResponse, 9)
        status, text = get(server)
    assert status == 200
    found = samples(text)
    assert found['millstream_requests_total{api="METADATA"}'] == 1
    assert found['millstream_requests_total{api="PRODUCE"}'] == 1
    assert found['millstream_request_seconds_total{api="PRODUCE",part="local"}'] > 0
    assert found['millstream_topic_messages_in_total{topic="or.ders"}'] == 2
    assert found['millstream_topic_bytes_in_total{topic="or.ders"}'] == len(batch)
    assert found['millstream_log_end_offset{partition="0",topic="or.ders"}'] == 2
    assert found['millstream_log_size_bytes{partition="0",topic="or.ders"}'] == len(batch)
    assert found["millstream_connections_open"] == 1
    assert found["millstream_bytes_received_total"] > len(batch)
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_open_fds"] > 3


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 200),
        ("/metrics?x=1", "GET", 200),
        ("/metrics", "HEAD", 200),
        ("/nope", "GET", 404),
        ("/metrics", "POST", 405),
    ],
)
def test_only_the_page_is_served(
    start_server: StartServer, path: str, method: str, status: int
) -> None:
    server = start_server(metrics_port=0)
    assert get(server, path, method)[0] == status


def test_a_request_that_never_ends_is_dropped(start_server: StartServer) -> None:
    server = start_server(metrics_port=0)
    with RawClient(f"127.0.0.1:{server.metrics_port}") as client:
        client.send(b"GET /metrics HTTP/1.1\r\nx: " + b"x" * 100_000)
        answer = b""
        # The server closes the connection with bytes that it has not read: after the answer, the
        # client may see a reset.
        with suppress(ConnectionResetError):
            while part := client.socket.recv(1000):
                answer += part
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_without_a_port_there_is_no_page(server: Server) -> None:
    assert server.metrics_port is None


def test_the_page_tells_the_lag_of_groups(start_server: StartServer) -> None:
    server = start_server(metrics_port=0)
    with server._broker.lock:
        server._broker.state.topics.create("orders", partition_count=1)
    with RawClient(server.bootstrap) as client:
        client.ask(produce_request("orders", batch_of("a", "b", "c")), ProduceResponse, 9)
        committed = OffsetCommitRequestPartition(0, 1)
        request = OffsetCommitRequest(
            "readers", -1, topics=[OffsetCommitRequestTopic("orders", partitions=[committed])]
        )
        response = client.ask(request, OffsetCommitResponse, 8)
        assert response.topics[0].partitions[0].error_code == 0
    found = samples(get(server)[1])
    assert found['millstream_group_offset{group="readers",partition="0",topic="orders"}'] == 1
    assert found['millstream_group_lag{group="readers",partition="0",topic="orders"}'] == 2
    assert found['millstream_group_members{group="readers",state="Empty"}'] == 0
