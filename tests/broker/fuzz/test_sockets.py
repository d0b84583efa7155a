"""Damaged frames over real connections: the broker answers or hangs up, and goes on serving."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct

import pytest

from broker.batch.codec import encode_batch
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.broker.fuzz.corpus import TOPIC, requests
from tests.broker.fuzz.mutation import HARD_VALUES, Mutator
from tests.support.millstream_broker import MillstreamBroker
from tests.support.raw_client import SIZE, RawClient
from tests.support.seeds import seed_of

FRAME_BYTES_MAX = 2 << 20
MEMORY_GROWTH_MAX = 120 << 20
API_KEY = Struct(">h")

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "socket.request.max.bytes": str(FRAME_BYTES_MAX),
}
FRAMES_PER_CONNECTION = 5
ANSWER_SECONDS_MAX = 60.0
LAST_CORRELATION_ID = b"last"
LAST_FRAME = API_KEY.pack(ApiKey.API_VERSIONS) + bytes(2) + LAST_CORRELATION_ID + b"\xff\xff"
# Requests that wait or make a great deal by themselves, damaged or not.
SLOW_APIS = {
    ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.FETCH, ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP, ApiKey.DELETE_TOPICS,
}  # fmt: skip


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillstreamBroker]:
    with MillstreamBroker(tmp_path_factory.mktemp("fuzz"), settings=SETTINGS) as started:
        with RawClient(started.bootstrap) as client:
            topic = CreatableTopic(TOPIC, num_partitions=2, replication_factor=1)
            client.ask(CreateTopicsRequest([topic], 10_000), CreateTopicsResponse, 5)
        yield started


def check_healthy(broker: MillstreamBroker, memory_before: int) -> None:
    """The broker serves, has not grown, and nothing in it failed unexpectedly."""
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(MetadataRequest(topics=None), MetadataResponse, 9)
    assert TOPIC in [topic.name for topic in answer.topics]
    printed = broker.log_file.read_text(errors="replace")
    assert "Traceback" not in printed, printed[printed.index("Traceback") - 200 :][:3000]
    assert "ERROR" not in printed
    assert memory_of(broker) - memory_before < MEMORY_GROWTH_MAX


def memory_of(broker: MillstreamBroker) -> int:
    """Resident bytes of the broker's process."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def fuzz_sockets(broker: MillstreamBroker, *, seed: int, count: int) -> None:
    random = Random(seed)
    frames = [frame for frame in requests(random) if API_KEY.unpack_from(frame)[0] not in SLOW_APIS]
    mutator = Mutator(random)
    memory_before = memory_of(broker)
    for _ in range(count // FRAMES_PER_CONNECTION):
        batch = [
            mutator.damaged_frame(random.choice(frames), frames)
            for _ in range(FRAMES_PER_CONNECTION)
        ]
        with RawClient(broker.bootstrap, timeout_s=ANSWER_SECONDS_MAX) as client:
            send_frames(client, [frame for frame in batch if not is_slow(frame)], random)
    check_healthy(broker, memory_before)


def is_slow(frame: bytearray) -> bool:
    """Whether a frame asks for something that may take its time."""
    return len(frame) >= API_KEY.size and API_KEY.unpack_from(frame)[0] in SLOW_APIS


def send_frames(client: RawClient, frames: list[bytearray], random: Random) -> None:
    """Sends frames; if the broker reads on to the last, it answers what comes after them."""
    try:
        for frame in frames:
            client.send_frame(frame)
        if random.random() < 0.1:
            # A size that promises more, or less, or nonsense; the broker waits, or hangs up.
            client.send(SIZE.pack(random.choice(HARD_VALUES)) + bytes(10))
            return
        client.send_frame(LAST_FRAME)
        while client.receive_frame()[:4] != LAST_CORRELATION_ID:
            pass
    except (EOFError, ConnectionError):
        pass


@pytest.mark.slow
def test_damaged_frames_end_in_an_answer_or_a_closed_connection(broker: MillstreamBroker) -> None:
    fuzz_sockets(broker, seed=seed_of("sockets"), count=20_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_many_damaged_frames_end_in_an_answer_or_a_closed_connection(
    broker: MillstreamBroker,
) -> None:
    fuzz_sockets(broker, seed=6, count=100_000)


@pytest.mark.slow
@pytest.mark.parametrize("size", [-1, -(2**31), FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_a_frame_of_a_size_out_of_bounds_is_refused_at_once(
    broker: MillstreamBroker, size: int
) -> None:
    memory_before = memory_of(broker)
    with RawClient(broker.bootstrap) as client:
        client.send(SIZE.pack(size))
        with pytest.raises((EOFError, ConnectionError)):
            client.receive_frame()
    check_healthy(broker, memory_before)


@pytest.mark.slow
def test_frames_that_never_end_hold_no_more_memory_than_was_sent(
    broker: MillstreamBroker,
) -> None:
    memory_before = memory_of(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(RawClient(broker.bootstrap))
            client.send(SIZE.pack(FRAME_BYTES_MAX) + bytes(100))
        check_healthy(broker, memory_before)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_stored_unopened(
    broker: MillstreamBroker, compression: str
) -> None:
    memory_before = memory_of(broker)
    bomb = encode_batch([(None, bytes(16 << 20), (), 0)], compression=compression)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, bomb)])],
    )
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(request, ProduceResponse, 9)
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.NONE
    check_healthy(broker, memory_before)


@pytest.mark.slow
def test_a_batch_with_a_wrong_checksum_is_refused(broker: MillstreamBroker) -> None:
    batch = bytearray(encode_batch([(b"key", b"value", (), 0)]))
    batch[-1] ^= 1
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, bytes(batch))])
        ],
    )
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(request, ProduceResponse, 9)
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.CORRUPT_MESSAGE
