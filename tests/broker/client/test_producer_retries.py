"""The sender against scripted answers, on a clock moved by hand: retries, sequences, timeouts."""

from dataclasses import dataclass, field
from random import Random

import pytest

from broker.batch.codec import decode_records
from broker.batch.layout import BatchHeader, read_header
from broker.client.accumulator import Accumulator
from broker.client.api import RecordMetadata
from broker.client.cluster import Cluster
from broker.client.config import ClusterConfig, ProducerConfig
from broker.client.produced_batch import Delivery, row_bytes
from broker.client.sender import Sender
from broker.client.sequences import EPOCH_MAX, Sequences
from broker.clock import ManualClock
from broker.errors import (
    AuthenticationFailed,
    BrokerError,
    BufferFull,
    ConnectionFailed,
    ErrorCode,
    RequestTimeout,
)
from broker.model import ProducerIdentity, TopicPartition
from broker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from broker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.client.scripted import ScriptedTransport, Sent

TOPIC = "orders"
TP = TopicPartition(TOPIC, 0)


def answer_to(sent: Sent, code: ErrorCode = ErrorCode.NONE, offset: int = 0) -> None:
    """Answer a produce request for all its partitions."""
    assert isinstance(sent.request, ProduceRequest)
    sent.future.set_result(
        ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    partition_responses=[
                        PartitionProduceResponse(part.index, code, offset)
                        for part in topic.partition_data
                    ],
                )
                for topic in sent.request.topic_data
            ]
        )
    )


def batch_of(sent: Sent) -> BatchHeader:
    """The header of the one batch of a produce request."""
    assert isinstance(sent.request, ProduceRequest)
    (topic,) = sent.request.topic_data
    (partition,) = topic.partition_data
    assert isinstance(partition.records, bytes | memoryview)
    decode_records(memoryview(partition.records))  # the CRC must fit what was renumbered
    return read_header(partition.records)


@dataclass
class Bench:
    """A sender without its thread: the test calls the rounds."""

    settings: dict[str, object] = field(default_factory=dict)
    idempotent: bool = True

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.transport = ScriptedTransport({TOPIC: 2})
        self.transport.answer(
            InitProducerIdRequest, lambda _: InitProducerIdResponse(producer_id=9)
        )
        cluster = Cluster(self.transport, self.clock, ClusterConfig(), random=Random(1))
        cluster.refresh([TOPIC])
        config = ProducerConfig(linger_ms=0, **self.settings)  # type: ignore[arg-type]
        self.accumulator = Accumulator(config, self.clock)
        self.sequences = Sequences() if self.idempotent else None
        self.sender = Sender(cluster, config, self.accumulator, self.sequences, None)

    def send(self, value: bytes = b"v", partition: int = 0) -> Delivery:
        """One record that makes a batch of its own."""
        queue = self.accumulator.queue(TopicPartition(TOPIC, partition))
        row = (None, value, (), self.clock.now_ms())
        delivery = self.accumulator.append(queue, row, row_bytes(row), None)
        queue.open = None
        return delivery

    def rounds(self) -> list[Sent]:
        """Let the sender work until it has nothing to do; the produce requests without answer."""
        while self.sender.round() == 0:
            pass
        return self.transport.waiting(ProduceRequest)

    def introduced(self) -> "Bench":
        """The broker knows the producer: one batch was acknowledged."""
        self.send(b"first")
        (sent,) = self.rounds()
        answer_to(sent)
        self.rounds()
        return self


def test_batches_of_a_partition_are_numbered_and_up_to_five_are_in_flight() -> None:
    bench = Bench().introduced()
    deliveries = [bench.send() for _ in range(7)]
    in_flight = bench.rounds()
    assert [batch_of(sent).base_sequence for sent in in_flight] == [1, 2, 3, 4, 5]
    assert all(batch_of(sent).producer_id == 9 for sent in in_flight)
    for offset, sent in enumerate(in_flight):
        answer_to(sent, offset=offset + 1)
    rest = bench.rounds()
    assert [batch_of(sent).base_sequence for sent in rest] == [6, 7]
    assert [delivery.result(0).offset for delivery in deliveries[:5]] == [1, 2, 3, 4, 5]


def test_the_second_batch_waits_until_the_broker_knows_the_producer() -> None:
    bench = Bench()
    bench.send(), bench.send()
    (first,) = bench.rounds()
    answer_to(first)
    (second,) = bench.rounds()
    assert [batch_of(sent).base_sequence for sent in (first, second)] == [0, 1]


@pytest.mark.parametrize("look", [1, 2])
def test_a_record_that_comes_in_the_middle_of_the_first_round_waits_for_an_identity(
    look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    looks = 0
    now_ms = bench.clock.monotonic_ms

    def send_at_look() -> int:
        nonlocal looks
        looks += 1
        if looks == look:
            bench.send()
        return now_ms()

    monkeypatch.setattr(bench.clock, "monotonic_ms", send_at_look)
    bench.sender.round()
    (sent,) = bench.rounds()
    assert batch_of(sent).producer_id == 9
    assert looks > 2


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.INVALID_RECORD])
def test_a_flush_that_begins_while_callbacks_are_told_waits_for_them(code: ErrorCode) -> None:
    bench = Bench()
    queue = bench.accumulator.queue(TP)
    row = (None, b"v", (), 0)
    settled: list[bool] = []

    def look(metadata: RecordMetadata | None, error: BaseException | None) -> None:
        settled.extend(batch.is_settled() for batch in bench.accumulator.begin_flush())

    delivery = bench.accumulator.append(queue, row, row_bytes(row), look)
    (sent,) = bench.rounds()
    answer_to(sent, code)
    bench.rounds()
    assert settled == [False]
    assert delivery[0].is_settled()
    assert bench.accumulator.begin_flush() == []


def test_partitions_of_one_leader_share_a_request() -> None:
    bench = Bench()
    bench.send(partition=0), bench.send(partition=1)
    (sent,) = bench.rounds()
    assert isinstance(sent.request, ProduceRequest)
    (topic,) = sent.request.topic_data
    assert sorted(part.index for part in topic.partition_data) == [0, 1]


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionFailed("cut"),
        RequestTimeout("slow"),
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CORRUPT_MESSAGE,
    ],
)
def test_a_failed_batch_and_those_behind_it_go_out_again_in_order_with_their_sequences(
    failure: Exception | ErrorCode,
) -> None:
    bench = Bench().introduced()
    deliveries = [bench.send() for _ in range(3)]
    in_flight = bench.rounds()
    if isinstance(failure, ErrorCode):
        answer_to(in_flight[0], failure)
    else:
        in_flight[0].future.set_exception(failure)
    assert bench.rounds() == in_flight[1:], "nothing overtakes what is in flight"
    for sent in in_flight[1:]:
        answer_to(sent, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert bench.rounds() == [], "the backoff has not passed"
    again = []
    for offset in range(3):
        bench.clock.advance(2_000)
        (sent,) = bench.rounds()
        again.append(batch_of(sent).base_sequence)
        answer_to(sent, offset=offset)
    bench.rounds()
    assert again == [1, 2, 3]
    assert [delivery.result(0).offset for delivery in deliveries] == [0, 1, 2]


def test_nothing_overtakes_a_batch_that_is_sent_again() -> None:
    bench = Bench().introduced()
    deliveries = [bench.send() for _ in range(6)]
    lost, *others = bench.rounds()
    lost.future.set_exception(ConnectionFailed("cut"))
    for offset, sent in enumerate(others, start=2):
        answer_to(sent, offset=offset)  # the first one was stored, too
    bench.rounds()
    for failure in (ConnectionFailed("cut"), None):
        bench.clock.advance(2_000)
        (again,) = bench.rounds()
        assert batch_of(again).base_sequence == 1
        if failure is None:
            answer_to(again, offset=1)
        else:
            again.future.set_exception(failure)
            assert bench.rounds() == [], "the backoff has not passed"
    (last,) = bench.rounds()
    assert batch_of(last).base_sequence == 6
    answer_to(last, offset=6)
    bench.rounds()
    assert [delivery.result(0).offset for delivery in deliveries] == [1, 2, 3, 4, 5, 6]


def test_a_duplicate_counts_as_delivered() -> None:
    bench = Bench()
    delivery = bench.send()
    (sent,) = bench.rounds()
    answer_to(sent, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, offset=-1)
    bench.rounds()
    assert delivery.result(0).offset == -1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_RECORD,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
def test_a_batch_that_is_refused_fails_and_the_rest_starts_in_a_new_epoch(code: ErrorCode) -> None:
    bench = Bench().introduced()
    refused, behind = bench.send(b"refused"), bench.send(b"behind")
    first, second = bench.rounds()
    answer_to(first, code)
    answer_to(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    bench.rounds()
    error = refused.exception(0)
    assert isinstance(error, BrokerError)
    assert error.code is code
    bench.clock.advance(2_000)
    (again,) = bench.rounds()
    header = batch_of(again)
    assert (header.producer_epoch, header.base_sequence) == (1, 0)
    answer_to(again, offset=1)
    bench.rounds()
    assert behind.result(0).offset == 1


def test_an_uncertain_batch_is_settled_under_its_old_number_before_the_epoch_moves() -> None:
    bench = Bench().introduced()
    refused, uncertain = bench.send(), bench.send()
    first, second = bench.rounds()
    second.future.set_exception(ConnectionFailed("cut"))
    answer_to(first, ErrorCode.INVALID_RECORD)
    bench.rounds()
    assert refused.exception(0) is not None
    bench.clock.advance(2_000)
    (again,) = bench.rounds()
    assert (batch_of(again).producer_epoch, batch_of(again).base_sequence) == (0, 2)
    answer_to(again, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)  # so it was never stored
    bench.rounds()
    bench.clock.advance(2_000)
    (renumbered,) = bench.rounds()
    assert (batch_of(renumbered).producer_epoch, batch_of(renumbered).base_sequence) == (1, 0)
    answer_to(renumbered, offset=5)
    bench.rounds()
    assert uncertain.result(0).offset == 5


def test_after_the_last_epoch_a_new_producer_id_is_asked_for() -> None:
    bench = Bench()
    assert bench.sequences is not None
    bench.sequences.start(ProducerIdentity(9, EPOCH_MAX))
    bench.send()
    (sent,) = bench.rounds()
    answer_to(sent, ErrorCode.INVALID_RECORD)
    bench.transport.answer(InitProducerIdRequest, lambda _: InitProducerIdResponse(producer_id=10))
    bench.rounds()
    bench.send()
    (fresh,) = bench.rounds()
    assert (batch_of(fresh).producer_id, batch_of(fresh).producer_epoch) == (10, 0)


def test_a_producer_the_broker_forgot_starts_again_without_loss() -> None:
    bench = Bench().introduced()
    delivery = bench.send()
    (sent,) = bench.rounds()
    answer_to(sent, ErrorCode.UNKNOWN_PRODUCER_ID)
    bench.rounds()
    bench.clock.advance(2_000)
    (again,) = bench.rounds()
    assert (batch_of(again).producer_epoch, batch_of(again).base_sequence) == (1, 0)
    answer_to(again, offset=3)
    bench.rounds()
    assert delivery.result(0).offset == 3


def test_the_delivery_timeout_gives_up_and_says_how_the_last_attempt_failed() -> None:
    bench = Bench({"delivery_timeout_ms": 10_000})
    delivery = bench.send()
    (sent,) = bench.rounds()
    sent.future.set_exception(ConnectionFailed("cannot connect to localhost:9092"))
    bench.rounds()
    bench.clock.advance(10_001)
    bench.rounds()
    error = delivery.exception(0)
    assert isinstance(error, RequestTimeout)
    assert "1 records for orders-0 were not delivered in 10001 ms" in str(error)
    assert "cannot connect to localhost:9092" in str(error)


def test_what_cannot_pass_is_not_tried_again() -> None:
    bench = Bench()
    delivery = bench.send()
    (sent,) = bench.rounds()
    sent.future.set_exception(AuthenticationFailed("wrong password"))
    assert bench.rounds() == []
    assert isinstance(delivery.exception(0), AuthenticationFailed)


def test_retries_are_counted() -> None:
    bench = Bench({"retries": 2, "enable_idempotence": False}, idempotent=False)
    delivery = bench.send()
    for _ in range(3):
        bench.clock.advance(2_000)
        (sent,) = bench.rounds()
        answer_to(sent, ErrorCode.NOT_ENOUGH_REPLICAS)
        bench.rounds()
    bench.clock.advance(2_000)
    assert bench.rounds() == []
    error = delivery.exception(0)
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS


def test_without_idempotence_batches_carry_no_sequence() -> None:
    bench = Bench({"enable_idempotence": False}, idempotent=False)
    bench.send()
    (sent,) = bench.rounds()
    assert (batch_of(sent).producer_id, batch_of(sent).base_sequence) == (-1, -1)
    assert bench.transport.requests(InitProducerIdRequest) == []


@pytest.mark.parametrize("code", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_without_a_producer_id_nothing_is_sent(code: ErrorCode) -> None:
    bench = Bench()
    bench.transport.answer(InitProducerIdRequest, lambda _: InitProducerIdResponse(error_code=code))
    delivery = bench.send()
    assert bench.rounds() == []
    error = delivery.exception(0)
    assert isinstance(error, BrokerError)
    assert error.code is code


def test_a_partition_without_an_answer_is_tried_again() -> None:
    bench = Bench()
    delivery = bench.send()
    (sent,) = bench.rounds()
    sent.future.set_result(ProduceResponse([]))
    bench.rounds()
    bench.clock.advance(2_000)
    (again,) = bench.rounds()
    answer_to(again, offset=4)
    bench.rounds()
    assert delivery.result(0).offset == 4


def test_memory_is_given_back_when_batches_are_settled() -> None:
    bench = Bench({"buffer_memory": 1_000, "max_block_ms": 0})
    bench.send(b"x" * 800)
    with pytest.raises(BufferFull, match="no buffer memory for 821 bytes"):
        bench.send(b"y" * 800)
    (sent,) = bench.rounds()
    answer_to(sent)
    bench.rounds()
    bench.send(b"y" * 800)


def test_a_record_larger_than_the_buffer_is_refused() -> None:
    bench = Bench({"buffer_memory": 1_000})
    with pytest.raises(BrokerError, match="larger than buffer_memory") as refused:
        bench.send(b"x" * 2_000)
    # A BufferFull would be tried again for ever, by a source task of Connect for example.
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
