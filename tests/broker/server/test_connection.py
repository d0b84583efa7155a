"""The server over real sockets: pieces, pipelines, limits, slow and rude clients."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.errors import ConfigError, ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.frame import decode_response
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from broker.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from broker.protocol.messages.produce import ProduceResponse
from broker.server import Server
from broker.server.connection import ConnectionContext
from tests.broker.handlers.embedded import batch_of, produce_request, values_of
from tests.broker.server.conftest import StartServer
from tests.support.peer import wait_until
from tests.support.raw_client import RawClient, correlation_id_of, frame_of

METADATA = MetadataRequest(None)
BATCHES = 14


def broker_of(server: Server) -> Broker:
    return server._broker


def create(server: Server, topic: str, partitions: int = 1) -> None:
    broker = broker_of(server)
    with broker.lock:
        broker.state.topics.create(topic, partition_count=partitions)


def fetch_request(topic: str, offset: int = 0, *, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=50_000_000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50_000_000,
        topics=[FetchTopic(topic, partitions=[partition])],
    )


def test_a_request_may_arrive_byte_by_byte(server: Server) -> None:
    with RawClient(server.bootstrap) as client:
        for byte in frame_of(METADATA, 12):
            client.send(bytes([byte]))
        response = decode_response(MetadataResponse, 12, memoryview(client.receive_frame()))
        assert response.brokers[0].port == server.endpoints[0].port


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    create(server, "orders")
    frames = []
    for number in range(50):
        if number % 3:
            frames.append(frame_of(METADATA, 12, number))
        else:
            frames.append(frame_of(produce_request("orders", batch_of("x")), 9, number))
    with RawClient(server.bootstrap) as client:
        client.send(b"".join(frames))
        assert [correlation_id_of(client.receive_frame()) for _ in range(50)] == list(range(50))


def test_requests_behind_a_waiting_fetch_wait_too(server: Server) -> None:
    create(server, "orders")
    with RawClient(server.bootstrap) as reader, RawClient(server.bootstrap) as writer:
        waiting = frame_of(fetch_request("orders", max_wait_ms=10_000), 12, 1)
        reader.send(waiting + frame_of(METADATA, 12, 2))
        reader.send(frame_of(METADATA, 12, 3))
        writer.ask(produce_request("orders", batch_of("a")), ProduceResponse, 9)
        first = reader.receive_frame()
        assert correlation_id_of(first) == 1
        response = decode_response(FetchResponse, 12, memoryview(first))
        assert values_of(response.responses[0].partitions[0].records) == ["a"]
        assert [correlation_id_of(reader.receive_frame()) for _ in range(2)] == [2, 3]


def test_a_fetch_is_answered_when_its_time_is_up(server: Server) -> None:
    create(server, "orders")
    with RawClient(server.bootstrap) as client:
        response = client.ask(fetch_request("orders", max_wait_ms=30), FetchResponse, 12)
        assert response.responses[0].partitions[0].high_watermark == 0


def test_acks_none_gets_no_answer(server: Server) -> None:
    create(server, "orders")
    with RawClient(server.bootstrap) as client:
        client.send(frame_of(produce_request("orders", batch_of("a"), acks=0), 9, 1))
        client.send(frame_of(METADATA, 12, 2))
        assert correlation_id_of(client.receive_frame()) == 2
        client.send(frame_of(produce_request("missing", batch_of("a"), acks=0), 9, 3))
        assert client.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(server: Server) -> None:
    header = ApiKey.API_VERSIONS.to_bytes(2, "big") + (99).to_bytes(2, "big") + b"\0\0\0\7"
    with RawClient(server.bootstrap) as client:
        body = header + b"\0\3raw" + b"\1whatever"
        client.send(len(body).to_bytes(4, "big") + body)
        frame = client.receive_frame()
        assert correlation_id_of(frame) == 7
        response = decode_response(ApiVersionsResponse, 0, memoryview(frame))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert len(response.api_keys) > 30
        known = client.ask(ApiVersionsRequest("raw", "1"), ApiVersionsResponse, 3)
        assert known.error_code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        (200_000_000).to_bytes(4, "big"),
        (4).to_bytes(4, "big") + b"oops",
        (12).to_bytes(4, "big") + b"\x03\xe7" + bytes(10),
        (12).to_bytes(4, "big") + b"\0\3\0\x63" + bytes(8),
        (14).to_bytes(4, "big") + b"\0\3\0\x0c\0\0\0\1\0\x09ab\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["negative", "oversized", "short", "unknown api", "unknown version", "cut off", "http"],
)
def test_what_is_no_request_closes_the_connection(server: Server, data: bytes) -> None:
    with RawClient(server.bootstrap) as client:
        client.send(data)
        assert client.is_closed()
    wait_until(lambda: broker_of(server).metrics.connections_open == 0, "the connection's end")
    with RawClient(server.bootstrap) as client:
        client.ask(METADATA, MetadataResponse)


def test_a_client_that_leaves_while_it_waits_is_forgotten(server: Server) -> None:
    create(server, "orders")
    with RawClient(server.bootstrap) as client:
        client.send(frame_of(fetch_request("orders", max_wait_ms=1_000_000_000), 12))
        wait_until(lambda: broker_of(server).metrics.requests != {}, "the fetch's arrival")
    wait_until(lambda: broker_of(server).metrics.connections_open == 0, "the connection's end")
    (log,) = broker_of(server).state.storage.logs()
    assert not log._subscribers


def test_a_half_closed_client_still_gets_its_answer(server: Server) -> None:
    with RawClient(server.bootstrap) as client:
        client.send(frame_of(METADATA, 12))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive_frame()
        assert client.is_closed()


@pytest.mark.slow
def test_a_slow_reader_costs_no_memory_and_gets_everything(server: Server) -> None:
    create(server, "big")
    value = bytes(range(256)) * 3000
    batch = encode_batch([(None, value, (), 1_700_000_000_000)])
    with RawClient(server.bootstrap) as client:
        for _ in range(BATCHES):
            client.ask(produce_request("big", batch), ProduceResponse, 9)
    before = resident_bytes()
    readers = [RawClient(server.bootstrap, receive_buffer_bytes=32_768) for _ in range(8)]
    for reader in readers:
        reader.send(frame_of(fetch_request("big"), 12))
    with RawClient(server.bootstrap) as client:
        client.ask(METADATA, MetadataResponse)  # others are served meanwhile
    assert resident_bytes() - before < 20_000_000
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(lambda reader: len(reader.receive_frame()), readers))
    assert min(sizes) >= BATCHES * len(batch)
    for reader in readers:
        reader.socket.close()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_connections_are_limited_in_all_and_per_address(start_server: StartServer) -> None:
    server = start_server(max_connections_per_ip=2)
    with RawClient(server.bootstrap) as one, RawClient(server.bootstrap) as two:
        one.ask(METADATA, MetadataResponse)
        two.ask(METADATA, MetadataResponse)
        with RawClient(server.bootstrap) as three:
            assert three.is_closed()
    wait_until(lambda: broker_of(server).metrics.connections_open == 0, "the connections' end")
    with RawClient(server.bootstrap) as again:
        again.ask(METADATA, MetadataResponse)
    assert broker_of(server).metrics.connections_refused == 1


def test_an_idle_connection_is_closed(start_server: StartServer) -> None:
    server = start_server(connections_max_idle_ms=50)
    with RawClient(server.bootstrap) as client:
        client.ask(METADATA, MetadataResponse)
        assert client.is_closed()


def test_a_request_must_be_smaller_than_the_limit(start_server: StartServer) -> None:
    server = start_server(socket_request_max_bytes=1000)
    create(server, "orders")
    with RawClient(server.bootstrap) as client:
        client.send(frame_of(produce_request("orders", batch_of("x" * 2000)), 9))
        assert client.is_closed()


def surroundings(server: Server) -> ConnectionContext:
    assert server._connections is not None
    return server._connections._context


def test_requests_wait_when_those_in_pieces_hold_all_memory(start_server: StartServer) -> None:
    server = start_server(queued_max_request_bytes=1)
    create(server, "orders")
    frame = frame_of(produce_request("orders", batch_of("x" * 1000)), 9)
    with RawClient(server.bootstrap) as first, RawClient(server.bootstrap) as second:
        first.send(frame[:500])
        around = surroundings(server)
        wait_until(lambda: around.pool.bytes_in_use > 0, "the first piece")
        second.send(frame_of(METADATA, 12))
        wait_until(lambda: bool(around.held), "the second client being held")
        first.send(frame[500:])
        assert first.receive_frame()
        assert second.receive_frame()


def test_requests_in_pieces_hold_no_more_memory_than_allowed_and_one_request(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, size, count = 200_000, 500_000, 10
    server = start_server(queued_max_request_bytes=limit)
    create(server, "orders")
    frame = frame_of(produce_request("orders", batch_of("x" * size)), 9)
    around = surroundings(server)
    held_bytes = []
    grow = around.pool.grow

    def record_growth(buffer: bytearray, size: int) -> bytearray:
        held_bytes.append(around.pool.bytes_in_use)
        return grow(buffer, size)

    monkeypatch.setattr(around.pool, "grow", record_growth)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.bootstrap)) for _ in range(count)]
        for client in clients:
            client.send(frame[:50_000])
        wait_until(lambda: bool(around.held), "memory being full")
        senders = [
            threading.Thread(target=client.send, args=(frame[50_000:],)) for client in clients
        ]
        for sender in senders:
            sender.start()
        for client in clients:
            assert client.receive_frame()
        for sender in senders:
            sender.join()
    wait_until(lambda: around.pool.bytes_in_use == 0, "all memory being released")
    assert max(held_bytes) <= limit + 2 * size
    wait_until(lambda: around.completing is None, "the last request being done")


def test_a_client_that_leaves_lets_others_complete_their_requests(
    start_server: StartServer,
) -> None:
    server = start_server(queued_max_request_bytes=1)
    create(server, "orders")
    frame = frame_of(produce_request("orders", batch_of("x" * 1000)), 9)
    around = surroundings(server)
    with RawClient(server.bootstrap) as patient:
        with RawClient(server.bootstrap) as leaving:
            leaving.send(frame[:500])
            wait_until(lambda: around.pool.bytes_in_use > 0, "the first piece")
            leaving.send(frame[500:600])
            wait_until(lambda: around.completing is not None, "the one that may go on")
            patient.send(frame)
            wait_until(lambda: bool(around.held), "the second client being held")
        assert patient.receive_frame()


def test_a_big_produce_request_goes_through(server: Server) -> None:
    broker = broker_of(server)
    with broker.lock:
        broker.state.topics.create(
            "big", partition_count=1, overrides={"max.message.bytes": "10000000"}
        )
    batch = batch_of("x" * 4_000_000)
    with RawClient(server.bootstrap) as client:
        produced = client.ask(produce_request("big", batch), ProduceResponse, 9)
        assert produced.responses[0].partition_responses[0].error_code == 0
        fetched = client.ask(fetch_request("big"), FetchResponse, 12)
        assert values_of(fetched.responses[0].partitions[0].records) == ["x" * 4_000_000]


def test_in_fsync_mode_answers_come_from_the_flusher_in_order(start_server: StartServer) -> None:
    server = start_server(durability="fsync")
    create(server, "orders")
    frames = [frame_of(produce_request("orders", batch_of("x")), 9, n) for n in range(20)]
    with RawClient(server.bootstrap) as client:
        client.send(b"".join(frames))
        assert [correlation_id_of(client.receive_frame()) for _ in range(20)] == list(range(20))
        fetched = client.ask(fetch_request("orders"), FetchResponse, 12)
        assert len(values_of(fetched.responses[0].partitions[0].records)) == 20


def test_shutdown_finishes_what_is_in_flight(start_server: StartServer) -> None:
    server = start_server()
    create(server, "orders")
    with RawClient(server.bootstrap) as waiting, RawClient(server.bootstrap) as idle:
        idle.ask(METADATA, MetadataResponse)
        waiting.send(frame_of(fetch_request("orders", max_wait_ms=100), 12))
        wait_until(
            lambda: "FETCH" in broker_of(server).metrics.requests, "the arrival of the fetch"
        )
        closing = threading.Thread(target=server.close)
        closing.start()
        assert idle.is_closed()
        assert waiting.receive_frame()
        assert waiting.is_closed()
        closing.join()
    with pytest.raises(ConnectionRefusedError):
        RawClient(server.bootstrap)


def test_an_address_in_use_is_named(start_server: StartServer, tmp_path: Path) -> None:
    taken = start_server().bootstrap
    config = BrokerConfig(listeners=(f"PLAINTEXT://{taken}",))
    with (
        Broker(config, data_directory=str(tmp_path / "other")) as broker,
        pytest.raises(ConfigError, match=taken),
    ):
        Server(broker).start()
