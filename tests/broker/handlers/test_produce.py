"""Produce requests on an embedded broker."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from broker.batch.codec import RecordFacts, check_batches, check_records
from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import BrokerError, ErrorCode
from broker.model import (
    GROUP_TOPIC,
    TRANSACTION_TOPIC,
    ConnectionInfo,
    FileSlice,
    ProducerIdentity,
)
from broker.pending import Pending
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.broker.batch.poison import POISON, with_max_timestamp
from tests.broker.handlers.embedded import (
    EmbeddedClient,
    batch_of,
    completed,
    produce_request,
    records_of,
    values_of,
)

PRODUCER = ProducerIdentity(7, 0)


def test_offsets_follow_each_other(client: EmbeddedClient) -> None:
    client.create("orders")
    assert client.produce("orders", "a", "b").base_offset == 0
    answer = client.produce("orders", "c")
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (0, 2, 0)
    assert answer.log_append_time_ms == -1
    assert values_of(client.fetch("orders").records) == ["a", "b", "c"]


def test_log_append_time_is_told(client: EmbeddedClient) -> None:
    client.create("orders", message_timestamp_type="LogAppendTime")
    assert client.produce("orders", "a").log_append_time_ms == client.clock.now_ms()


def test_one_bad_partition_does_not_stop_the_others(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    request = produce_request("orders", batch_of("a"))
    request.topic_data += produce_request("orders", batch_of("b"), partition=9).topic_data
    request.topic_data += produce_request("orders", batch_of("c"), partition=1).topic_data
    response = client.ask(request, ProduceResponse, 9)
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def old_magic(batch: bytes) -> bytes:
    return batch[:16] + b"\x01" + batch[17:]


@pytest.mark.parametrize(
    ("topic", "batch", "code"),
    [
        ("missing", batch_of("a"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GROUP_TOPIC, batch_of("a"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("orders", None, ErrorCode.INVALID_RECORD),
        ("orders", b"", ErrorCode.INVALID_RECORD),
        ("orders", b"x" * 30, ErrorCode.INVALID_RECORD),
        ("orders", bytes(100), ErrorCode.CORRUPT_MESSAGE),
        ("orders", batch_of("a")[:-1], ErrorCode.INVALID_RECORD),
        ("orders", damaged(batch_of("a")), ErrorCode.CORRUPT_MESSAGE),
        ("orders", old_magic(batch_of("a")), ErrorCode.INVALID_RECORD),
        ("orders", batch_of("a") + batch_of("b"), ErrorCode.INVALID_RECORD),
        ("orders", batch_of("x" * 2000), ErrorCode.MESSAGE_TOO_LARGE),
        ("careful", batch_of("a"), ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_a_bad_batch_is_refused_with_its_code(
    client: EmbeddedClient, topic: str, batch: bytes | None, code: ErrorCode
) -> None:
    client.create("orders", max_message_bytes="1000")
    client.create("careful", min_insync_replicas="2")
    client.broker.state.topics.ensure_internal(GROUP_TOPIC)
    answer = client.produce_batch(topic, batch)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.error_message


@pytest.mark.parametrize("batch", POISON.values(), ids=POISON.keys())
def test_a_valid_checksum_around_nonsense_is_refused(client: EmbeddedClient, batch: bytes) -> None:
    client.create("orders")
    answer = client.produce_batch("orders", batch)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert answer.error_message
    assert client.fetch("orders").high_watermark == 0


@pytest.mark.parametrize("compression", ["gzip", "lz4", "zstd"])  # snappy shrinks to a 20th only
def test_a_decompression_bomb_is_refused(client: EmbeddedClient, compression: str) -> None:
    client.create("orders", max_message_bytes="4000000")
    bomb = batch_of("x" * (40 << 20), compression=compression)
    assert len(bomb) < 4_000_000
    answer = client.produce_batch("orders", bomb)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_records_that_fail_their_checksum_can_be_sent_again(client: EmbeddedClient) -> None:
    client.create("orders")
    torn = POISON["nonsense"][:-1] + b"?"
    assert client.produce_batch("orders", torn).error_code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("said_ms", [-1, 0, 5_000, 1 << 40])
def test_a_wrong_largest_timestamp_is_made_right(client: EmbeddedClient, said_ms: int) -> None:
    client.create("orders")
    batch = with_max_timestamp(batch_of("a", "b", timestamp_ms=1_000), said_ms)
    assert client.produce_batch("orders", batch).error_code == 0
    stored = client.fetch("orders").records
    assert isinstance(stored, FileSlice)
    (header,) = check_batches(memoryview(stored.read()), batch_bytes_max=1_000)
    assert header.max_timestamp == 1_001
    assert [record.timestamp_ms for record in records_of(stored)] == [1_000, 1_001]


def test_records_are_read_before_the_lock_is_taken(client: EmbeddedClient) -> None:
    client.create("orders")
    held = []

    def check(view: memoryview) -> RecordFacts:
        held.append(client.broker.lock._is_owned())  # type: ignore[attr-defined]
        return check_records(view)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.handlers.produce.check_records", check)
        patch.setattr("broker.storage.partition_log.check_records", check)
        assert client.produce("orders", "a").error_code == 0
    assert held == [False]


def test_zstd_needs_a_client_that_knows_it(client: EmbeddedClient) -> None:
    client.create("orders")
    batch = batch_of("a" * 100, compression="zstd")
    old = client.produce_batch("orders", batch, version=6)
    assert old.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert client.produce_batch("orders", batch, version=7).error_code == 0


def test_acks_other_than_all_one_and_none_are_refused(client: EmbeddedClient) -> None:
    client.create("orders")
    answer = client.produce_batch("orders", batch_of("a"), acks=2)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert client.fetch("orders").high_watermark == 0


def test_acks_none_gets_no_answer_and_an_error_ends_the_connection(client: EmbeddedClient) -> None:
    client.create("orders")
    assert client.start(produce_request("orders", batch_of("a"), acks=0), 9) is None
    assert client.fetch("orders").high_watermark == 1
    with pytest.raises(BrokerError) as refused:
        client.start(produce_request("missing", batch_of("a"), acks=0), 9)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_sent_twice_is_written_once(client: EmbeddedClient) -> None:
    client.create("orders")
    first = batch_of("a", "b", producer=PRODUCER, base_sequence=0)
    assert client.produce_batch("orders", first).base_offset == 0
    again = client.produce_batch("orders", first)
    assert (again.error_code, again.base_offset) == (0, 0)
    assert client.fetch("orders").high_watermark == 2
    gap = batch_of("d", producer=PRODUCER, base_sequence=3)
    assert client.produce_batch("orders", gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_topics_come_by_id_since_version_13(client: EmbeddedClient) -> None:
    topic_id = client.create("orders")
    request = produce_request("", batch_of("a"))
    request.topic_data[0].topic_id = topic_id
    request.topic_data += produce_request("", batch_of("b")).topic_data
    request.topic_data[1].topic_id = b"?" * 16
    response = client.ask(request, ProduceResponse, 13)
    assert [topic.topic_id for topic in response.responses] == [topic_id, b"?" * 16]
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_transactional_batch_needs_its_transaction(client: EmbeddedClient) -> None:
    client.create("orders")
    batch = bytearray(batch_of("a", producer=PRODUCER, base_sequence=0))
    batch[22] |= 0x10
    request = produce_request("orders", bytes(batch))
    response = client.ask(request, ProduceResponse, 9)
    assert (
        response.responses[0].partition_responses[0].error_code
        == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    )
    request = produce_request("orders", bytes(batch))
    request.transactional_id = "mine"
    response = client.ask(request, ProduceResponse, 9)
    assert response.responses[0].partition_responses[0].error_code != 0
    assert client.fetch("orders").high_watermark == 0


def test_counters_tell_what_went_in(client: EmbeddedClient) -> None:
    client.create("orders")
    batch = batch_of("a", "b")
    client.produce_batch("orders", batch)
    client.produce_batch("orders", b"")
    stats = client.broker.metrics.topic("orders")
    assert (stats.bytes_in, stats.messages_in) == (len(batch), 2)
    assert stats.produce_failures == 1


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Broker]:
    """A broker that acknowledges only what is on disk, on a real clock for its flusher."""
    config = BrokerConfig(durability="fsync")
    with Broker(config, data_directory=str(tmp_path)) as broker:
        yield broker


def test_in_fsync_mode_an_answer_waits_for_the_disk(durable: Broker) -> None:
    client = EmbeddedClient(durable, ManualClock())
    client.create("orders")
    with durable.lock:  # the flusher cannot finish while the lock is held
        answer = client.start(produce_request("orders", batch_of("a")), 9)
        assert completed(answer, ProduceResponse) is None
    answered = wait_for(durable, answer)
    assert answered.responses[0].partition_responses[0].error_code == 0
    assert client.fetch("orders").high_watermark == 1


def wait_for(broker: Broker, answer: object) -> ProduceResponse:
    assert isinstance(answer, Pending)
    arrived: Future[object] = Future()
    broker.when_done(answer, arrived.set_result)
    response = arrived.result(timeout=60)
    assert isinstance(response, ProduceResponse)
    return response


def test_an_empty_request_is_answered_empty(client: EmbeddedClient) -> None:
    assert client.ask(ProduceRequest(acks=1), ProduceResponse, 9).responses == []


@pytest.mark.parametrize("topic", [GROUP_TOPIC, TRANSACTION_TOPIC])
@pytest.mark.parametrize("client_id", ["__admin_client", "me", ""])
def test_no_client_writes_to_internal_topics_whatever_it_calls_itself(
    client: EmbeddedClient, topic: str, client_id: str
) -> None:
    client.broker.state.topics.ensure_internal(topic)
    client.connection = ConnectionInfo(client_id=client_id)
    answer = client.produce_batch(topic, batch_of("a"))
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
