"""Pre-encoded requests over a plain socket: the broker's throughput without client overhead."""

import socket
import struct
import time

from broker.batch.codec import encode_batch
from broker.protocol.frame import decode_response, encode_request
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BATCH_BYTES = 64_000
IN_FLIGHT = 5
PRODUCE_VERSION = 9
FETCH_VERSION = 12
FETCH_BYTES = 1_048_576


def _connect(bootstrap: str) -> socket.socket:
    host, port = bootstrap.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _frame(message: object, version: int) -> bytes:
    parts = encode_request(message, version, correlation_id=1, client_id="raw")
    return b"".join(bytes(part) for part in parts)  # type: ignore[call-overload]


def _receive(connection: socket.socket, buffer: bytearray) -> memoryview:
    """Receive one frame into the buffer; return its body."""
    view = memoryview(buffer)
    _receive_exactly(connection, view[:4])
    (size,) = struct.unpack_from(">i", buffer)
    _receive_exactly(connection, view[:size])
    return view[:size]


def _receive_exactly(connection: socket.socket, view: memoryview) -> None:
    while len(view):
        got = connection.recv_into(view)
        assert got, "the broker closed the connection"
        view = view[got:]


def _produce(connection: socket.socket, topic: str, requests: int) -> float:
    record = (None, bytes(1000), (), int(time.time() * 1000))
    batch = encode_batch([record] * (BATCH_BYTES // 1000))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, batch)])
    message = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    frame = _frame(message, PRODUCE_VERSION)
    buffer = bytearray(65_536)
    started = time.perf_counter()
    for index in range(requests + IN_FLIGHT):
        if index < requests:
            connection.sendall(frame)
        if index >= IN_FLIGHT:
            body = _receive(connection, buffer)
    answer = decode_response(ProduceResponse, PRODUCE_VERSION, body)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return requests / (time.perf_counter() - started)


def _fetch(connection: socket.socket, topic: str, requests: int) -> float:
    partition = FetchPartition(partition=0, partition_max_bytes=FETCH_BYTES)
    message = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    frame = _frame(message, FETCH_VERSION)
    buffer = bytearray(FETCH_BYTES * 2)
    received = 0
    started = time.perf_counter()
    for _ in range(requests):
        connection.sendall(frame)
        received += len(_receive(connection, buffer))
    seconds = time.perf_counter() - started
    answer = decode_response(FetchResponse, FETCH_VERSION, memoryview(buffer))
    assert answer.error_code == 0
    return received / seconds / 1e6


def _wait_for_leader(connection: socket.socket, topic: str) -> None:
    """Wait until the topic has a leader: metadata of a cluster is eventually consistent."""
    frame = _frame(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 8)
    buffer = bytearray(65_536)
    for _ in range(1000):
        connection.sendall(frame)
        answer = decode_response(MetadataResponse, 8, _receive(connection, buffer))
        if answer.topics[0].error_code == 0 and answer.topics[0].partitions[0].error_code == 0:
            return
    raise TimeoutError(f'topic "{topic}" has no leader')


def run(bootstrap: str, topic: str, requests: int) -> tuple[float, float]:
    """Return produce requests per second and fetched MB per second, on one connection."""
    connection = _connect(bootstrap)
    _wait_for_leader(connection, topic)
    produced = _produce(connection, topic, requests)
    fetched = _fetch(connection, topic, max(requests // 8, 1))
    connection.close()
    return produced, fetched
