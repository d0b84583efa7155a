"""The producer on every kind of broker: round trips, batches, limits, closing."""

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.batch.codec import encode_batch
from broker.client import producer
from broker.client.accumulator import BatchQueue
from broker.client.api import RecordMetadata
from broker.client.cluster import Cluster
from broker.client.opening import Target
from broker.client.partitioner import partition_for_key
from broker.client.record_producer import Producer
from broker.errors import BrokerError, ClientError, ConfigError, CorruptBatch, ErrorCode
from broker.model import TopicPartition
from tests.broker.client.conftest import read_all
from tests.broker.client.scripted import ScriptedTransport

MakeTopic = Callable[..., str]

TIMEOUT_MS = 60_000


def test_a_record_comes_back_as_it_was_sent(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    headers = [("trace", b"\x00\xff"), ("empty", b""), ("none", None), ("trace", b"again")]
    with producer(target) as out:
        sent = out.send(topic, b"value", b"key", timestamp_ms=1_234_567, headers=headers)
        assert sent.result(TIMEOUT_MS) == RecordMetadata(topic, 0, 0, 1_234_567)
        assert sent.done()
    (record,) = read_all(target, topic, 1)
    assert (record.key, record.value, record.timestamp_ms) == (b"key", b"value", 1_234_567)
    assert list(record.headers) == headers


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_carries_records_of_every_size(
    target: Target, make_topic: MakeTopic, compression: str
) -> None:
    topic = make_topic()
    source = random.Random(7)
    values = [source.randbytes(size) for size in (0, 1, 63, 64, 8_191, 16_384, 200_000)]
    values += [b"repeated " * 9_000, *(b"%d" % number for number in range(500))]
    with producer(target, compression_type=compression, linger_ms=1) as out:
        for value in values:
            out.send(topic, value)
        out.send(topic, None, b"tombstone")
        out.flush(TIMEOUT_MS)
    records = read_all(target, topic, len(values) + 1)
    assert [record.value for record in records] == [*values, None]


def test_records_keep_their_order_and_get_consecutive_offsets(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with producer(target, batch_size=512, linger_ms=0) as out:
        sent = [out.send(topic, b"%d" % number) for number in range(2_000)]
        out.flush(TIMEOUT_MS)
        assert [each.result(0).offset for each in sent] == list(range(2_000))
    values = [record.value for record in read_all(target, topic, 2_000)]
    assert values == [b"%d" % number for number in range(2_000)]


def test_keys_choose_partitions_as_in_java_and_records_without_a_key_use_them_all(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(4)
    with producer(target, batch_size=256) as out:
        keyed = {
            key: out.send(topic, b"v", key) for key in (b"%d" % number for number in range(50))
        }
        free = [out.send(topic, b"x" * 100) for _ in range(200)]
        chosen = out.send(topic, b"here", b"key", partition=3)
        out.flush(TIMEOUT_MS)
        assert all(
            sent.result(0).partition == partition_for_key(key, 4) for key, sent in keyed.items()
        )
        assert {sent.result(0).partition for sent in free} == {0, 1, 2, 3}
        assert chosen.result(0).partition == 3


def test_callbacks_get_the_place_of_their_record(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    told: list[tuple[RecordMetadata | None, BaseException | None]] = []
    with producer(target) as out:
        for _ in range(10):
            out.send(topic, b"v", callback=lambda *outcome: told.append(outcome))
        out.flush(TIMEOUT_MS)
    assert [metadata.offset for metadata, error in told if metadata] == list(range(10))
    assert all(error is None for _, error in told)


def test_threads_that_learn_of_a_topic_at_once_find_each_partition_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = Producer(Cluster(ScriptedTransport({"topic": 2})))
    refresh = threading.Thread(target=out._update_routes)
    find = out._accumulator.queue

    def find_while_another_does(tp: TopicPartition) -> BatchQueue:
        if refresh.ident is None:
            refresh.start()
            refresh.join(0.05)  # it must wait for us; if it does not, it is over by then
        return find(tp)

    monkeypatch.setattr(out._accumulator, "queue", find_while_another_does)
    route = out._route("topic")
    refresh.join()
    assert [queue.tp.partition for queue in route.queues] == [0, 1]
    assert route.count == 2
    out.close()


def test_many_threads_may_send(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with producer(target, linger_ms=1) as out, ThreadPoolExecutor(8) as threads:

        def send(thread: int) -> None:
            for number in range(200):
                out.send(topic, b"%d-%d" % (thread, number), b"%d" % thread)

        list(threads.map(send, range(8)))
        out.flush(TIMEOUT_MS)
    records = read_all(target, topic, 1_600)
    for thread in range(8):
        mine = [record.value for record in records if record.key == b"%d" % thread]
        assert mine == [b"%d-%d" % (thread, number) for number in range(200)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_level_of_acknowledgement_delivers(
    target: Target, make_topic: MakeTopic, acks: int | str
) -> None:
    topic = make_topic()
    with producer(target, acks=acks) as out:
        offsets = [out.send(topic, b"%d" % number).result(TIMEOUT_MS).offset for number in range(3)]
    assert offsets == ([-1, -1, -1] if acks == 0 else [0, 1, 2])
    assert [record.value for record in read_all(target, topic, 3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_whole_batch_is_delivered_as_it_is(
    target: Target, make_topic: MakeTopic, idempotent: bool
) -> None:
    topic = make_topic(2)
    tp = TopicPartition(topic, 1)
    rows = [(b"k", b"%d" % number, (), 1_000 + number) for number in range(5)]
    batch = encode_batch(rows, compression="lz4")
    with producer(target, enable_idempotence=idempotent) as out:
        assert out.send_batch(tp, batch).result(TIMEOUT_MS) == RecordMetadata(topic, 1, 0, 1_000)
        assert out.send_batch(tp, memoryview(batch)).result(TIMEOUT_MS).offset == 5
    records = read_all(target, topic, 10)
    assert [(r.offset, r.value, r.timestamp_ms) for r in records] == [
        (offset, b"%d" % (offset % 5), 1_000 + offset % 5) for offset in range(10)
    ]


def test_bytes_that_are_no_batch_are_refused_before_they_are_sent(
    target: Target, make_topic: MakeTopic
) -> None:
    tp = TopicPartition(make_topic(), 0)
    batch = encode_batch([(None, b"v", (), 0)])
    with producer(target) as out:
        with pytest.raises(CorruptBatch):
            out.send_batch(tp, batch[:-1] + b"\xff")
        with pytest.raises(ClientError, match="one record batch, not 2"):
            out.send_batch(tp, batch * 2)


def test_log_append_time_is_told_by_the_broker(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    with producer(target) as out:
        sent = out.send(topic, b"v", timestamp_ms=1).result(TIMEOUT_MS)
    (record,) = read_all(target, topic, 1)
    assert sent.timestamp_ms == record.timestamp_ms > 1


def test_a_batch_the_broker_finds_too_large_is_sent_in_parts(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="5000")
    told: list[int] = []
    with producer(target, batch_size=100_000, linger_ms=50) as out:
        sent = [
            out.send(
                topic,
                b"%04d" % number * 100,
                callback=lambda metadata, _: told.append(metadata.offset if metadata else -1),
            )
            for number in range(100)
        ]
        out.flush(TIMEOUT_MS)
        assert [each.result(0).offset for each in sent] == list(range(100))
        assert sorted(told) == list(range(100))
        alone = out.send(topic, b"x" * 6_000).exception(TIMEOUT_MS)
        assert isinstance(alone, BrokerError)
        assert alone.code is ErrorCode.MESSAGE_TOO_LARGE
        assert out.send(topic, b"after").result(TIMEOUT_MS).offset == 100
    values = [record.value for record in read_all(target, topic, 101)]
    assert values == [*(b"%04d" % number * 100 for number in range(100)), b"after"]


@pytest.mark.slow
def test_a_partition_that_is_not_there_is_named(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with (
        producer(target, max_block_ms=1_000) as out,
        pytest.raises(ClientError, match=f'"{topic}" has no partition 2'),
    ):
        out.send(topic, b"v", partition=2)


def test_closing_delivers_what_was_sent(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    out = producer(target, linger_ms=60_000)
    sent = [out.send(topic, b"v") for _ in range(10)]
    out.close(TIMEOUT_MS)
    out.close()
    assert [each.result(0).offset for each in sent] == list(range(10))
    with pytest.raises(ClientError, match="closed"):
        out.send(topic, b"too late")


def test_waiting_inside_a_callback_is_refused(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    refused: list[BaseException] = []
    with producer(target) as out:

        def wait(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            try:
                out.flush()
            except ClientError as caught:
                refused.append(caught)

        out.send(topic, b"v", callback=wait).result(TIMEOUT_MS)
        out.flush(TIMEOUT_MS)
    assert "in a delivery callback" in str(refused[0])


def test_a_child_process_cannot_use_the_parents_producer(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with producer(target) as out:
        out.send(topic, b"v").result(TIMEOUT_MS)
        child = os.fork()
        if child == 0:
            try:
                out.flush()
            except ClientError:
                out.close()
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert out.send(topic, b"v").result(TIMEOUT_MS).offset == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lingerms": 5}, 'did you mean "linger_ms"'),
        ({"compression_type": "brotli"}, '"compression_type"'),
        ({"acks": 2}, '"acks" is 2'),
        ({"acks": 1, "enable_idempotence": True}, 'needs acks="all"'),
        ({"transactional_id": "t", "acks": 1}, 'needs acks="all"'),
        (
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
            "max_in_flight_requests_per_connection",
        ),
        ({"batch_size": -1}, '"batch_size"'),
        ({"security_protocol": "TLS"}, '"security_protocol"'),
        ({"security_protocol": "SASL_SSL"}, '"sasl_username"'),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        producer("localhost:9092", **settings)


@pytest.mark.parametrize("servers", ["", "host", "host:", ":9092", "host:99999", "a:1,b"])
def test_wrong_bootstrap_servers_are_named(servers: str) -> None:
    with pytest.raises(ConfigError, match="bootstrap"):
        producer(servers)


@pytest.mark.parametrize(
    ("value", "key", "headers"),
    [("text", None, ()), (5, None, ()), (b"v", "text", ()), (b"v", None, [("name", "text")])],
)
def test_what_is_not_bytes_is_refused_at_once(
    embedded_target: Target, value: object, key: object, headers: object
) -> None:
    with producer(embedded_target) as out, pytest.raises(ClientError, match="not bytes"):
        out.send("anything", value, key, headers=headers)  # type: ignore[arg-type]


def test_a_buffer_may_be_reused_after_send(embedded_target: Target) -> None:
    buffer = bytearray(b"first")
    with producer(embedded_target, linger_ms=50) as out:
        out.send("reused", buffer)  # type: ignore[arg-type]  # buffers are accepted, and copied
        buffer[:] = b"later"
    assert read_all(embedded_target, "reused", 1)[0].value == b"first"


def test_producers_leave_no_threads_behind(embedded_target: Target) -> None:
    before = threading.active_count()
    for _ in range(3):
        with producer(embedded_target) as out:
            out.send("threads", b"v").result(TIMEOUT_MS)
    assert threading.active_count() == before
