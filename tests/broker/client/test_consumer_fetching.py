"""Fetching from a scripted broker on a manual clock: bounds, errors, lies and truncation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from crc32c import crc32c

from broker.batch.codec import encode_batch
from broker.client.cluster import Cluster
from broker.client.consumer_config import ConsumerConfig
from broker.client.record_consumer import Consumer
from broker.clock import ManualClock
from broker.errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    CorruptBatchError,
    ErrorCode,
)
from broker.model import TopicPartition
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderTopicResult,
    PartitionData,
)
from broker.protocol.messages.metadata import MetadataRequest
from tests.broker.client.scripted import ScriptedTransport, topic_id

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
END = 1_000_000
# The scripted broker answers at once: with the default, each poll would fetch a megabyte ahead.
AHEAD_BYTES = 5_000


@dataclass
class Leader:
    """A log of one batch of ten records for every tenth offset, and faults to be had from it."""

    transport: ScriptedTransport
    faults: list[ErrorCode | Exception] = field(default_factory=list)
    change: Callable[[bytes], bytes] | None = None
    end_offset: int = END
    epoch_end: int = END
    answers: bool = True

    def __post_init__(self) -> None:
        self.transport.answer(FetchRequest, self.fetch)
        self.transport.answer(ListOffsetsRequest, self.list_offsets)
        self.transport.answer(OffsetForLeaderEpochRequest, self.end_of_epoch)

    def fetch(self, request: FetchRequest) -> object:
        fault = self.faults.pop(0) if self.faults else ErrorCode.NONE
        if isinstance(fault, Exception):
            return fault
        return self.respond(request, fault) if self.answers else None

    def respond(self, request: FetchRequest, code: ErrorCode = ErrorCode.NONE) -> FetchResponse:
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic_id=topic.topic_id,
                    topic=topic.topic,
                    partitions=[
                        PartitionData(
                            partition_index=asked.partition,
                            error_code=code,
                            high_watermark=self.end_offset,
                            records=None if code else self.batch(asked.fetch_offset),
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def batch(self, offset: int) -> bytes:
        if offset >= self.end_offset:
            return b""
        base = offset - offset % 10
        rows = [(None, b"%d" % number, (), 0) for number in range(base, base + 10)]
        data = encode_batch(rows, base_offset=base, leader_epoch=0)
        return data if self.change is None else self.change(data)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=asked.partition_index,
                            offset=0 if asked.timestamp == -2 else self.end_offset,
                            leader_epoch=0,
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def end_of_epoch(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        OffsetForLeaderEpochResponseEpochEndOffset(
                            partition=asked.partition,
                            leader_epoch=asked.leader_epoch,
                            end_offset=self.epoch_end,
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


@dataclass
class Setting:
    """A consumer of two partitions, its broker and time."""

    clock: ManualClock
    transport: ScriptedTransport
    leader: Leader
    reader: Consumer

    def poll(self, **options: int) -> list[int]:
        """What one poll gives; pauses that the consumer wants pass at once."""
        for _ in range(20):
            records = self.reader.poll(timeout_ms=0, **options)
            if records:
                return [int(record.value or b"-1") for record in records]
            self.clock.advance(200)
        return []

    def fetches(self) -> list[FetchRequest]:
        return self.transport.requests(FetchRequest)


def make_setting(**config: object) -> Setting:
    clock = ManualClock()
    transport = ScriptedTransport({"t": 2})
    leader = Leader(transport)
    chosen = {
        "auto_offset_reset": "earliest",
        "max_partition_fetch_bytes": AHEAD_BYTES,
        **config,
    }
    settings = ConsumerConfig(**chosen)  # type: ignore[arg-type]
    return Setting(clock, transport, leader, Consumer(Cluster(transport, clock), settings))


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = make_setting()
    made.reader.assign([T0])
    yield made
    made.reader.close()


def test_fetching_ahead_stops_at_the_bound_of_each_partition() -> None:
    made = make_setting(max_partition_fetch_bytes=1_000)
    made.reader.assign([T0, T1])
    assert made.poll(max_records=1) == [0]
    size = len(made.leader.batch(0))
    per_partition = 1_000 // size + 1
    before = len(made.fetches())
    assert before <= 2 * per_partition + 2
    for _ in range(10):
        made.poll(max_records=1)
    assert len(made.fetches()) <= before + 4, "only what was taken is fetched again"
    made.reader.close()


def test_fetching_ahead_stops_at_the_bound_of_the_consumer() -> None:
    made = make_setting(fetch_buffer_bytes=500)
    made.reader.assign([T0, T1])
    made.poll(max_records=1)
    held = sum(state.buffered_bytes for state in made.reader._positions.states())
    assert 500 <= held <= 500 + 2 * len(made.leader.batch(0))
    made.reader.close()


def test_requests_name_topics_by_id_and_by_name_where_there_is_no_id() -> None:
    for has_ids in (True, False):
        made = make_setting()
        made.transport.has_topic_ids = has_ids
        made.reader.assign([T0])
        assert made.poll(max_records=3) == [0, 1, 2]
        sent = next(s for s in made.transport.sent if isinstance(s.request, FetchRequest))
        assert sent.version_max == (None if has_ids else 12)
        expected = topic_id("t") if has_ids else bytes(16)
        assert made.fetches()[0].topics[0].topic_id == expected
        made.reader.close()


@pytest.mark.parametrize(
    "fault",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ConnectionFailed("gone"),
    ],
)
def test_after_errors_that_pass_metadata_is_asked_for_and_reading_goes_on(
    setting: Setting, fault: ErrorCode | Exception
) -> None:
    setting.leader.faults = [fault, fault]
    assert setting.poll(max_records=2) == [0, 1]
    assert len(setting.transport.requests(MetadataRequest)) > 1


def test_errors_for_the_caller_are_raised_and_tried_again_after_that(setting: Setting) -> None:
    setting.leader.faults = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(BrokerError) as caught:
        setting.poll()
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert caught.value.at == "t-0"
    assert setting.poll(max_records=1) == [0]


def test_an_offset_outside_the_log_begins_anew_by_the_policy(setting: Setting) -> None:
    setting.reader.seek(T0, 500)
    setting.leader.faults = [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert setting.poll(max_records=1) == [0]


def test_a_corrupt_batch_comes_after_the_good_ones_and_can_be_passed(setting: Setting) -> None:
    def spoil(data: bytes) -> bytes:
        return data[:-1] + b"?" if data[:8] == (20).to_bytes(8, "big") else data

    setting.leader.change = spoil
    assert setting.poll() == list(range(20))
    with pytest.raises(CorruptBatchError) as caught:
        setting.poll()
    assert caught.value.at == 'topic "t" partition 0 offset 20'
    assert (caught.value.offset, caught.value.next_offset) == (20, 30)
    with pytest.raises(CorruptBatchError):
        setting.poll()
    setting.reader.seek(T0, caught.value.next_offset)
    assert setting.poll(max_records=1) == [30]


def nonsense_in(base: int) -> Callable[[bytes], bytes]:
    """Replace the records of one batch, with a CRC that is right."""

    def spoil(data: bytes) -> bytes:
        if data[:8] != base.to_bytes(8, "big"):
            return data
        body = data[21:61] + b"\x7f" * (len(data) - 61)
        checksum: int = crc32c(body)
        return data[:17] + checksum.to_bytes(4, "big") + body

    return spoil


def test_nonsense_under_a_valid_crc_is_an_error_with_its_offsets(setting: Setting) -> None:
    setting.leader.change = nonsense_in(20)
    setting.reader.seek(T0, 15)
    assert setting.poll() == list(range(15, 20))
    with pytest.raises(CorruptBatchError, match="offsets 20 to 29") as caught:
        setting.poll()
    assert (caught.value.topic, caught.value.partition) == T0
    setting.reader.seek(T0, caught.value.next_offset)
    assert setting.poll(max_records=1) == [30]


def test_a_raw_batch_of_nonsense_says_where_it_is_when_it_is_decoded(setting: Setting) -> None:
    setting.leader.change = nonsense_in(0)
    setting.reader.seek(T0, 3)
    batches = setting.reader.poll_batches() or setting.reader.poll_batches()
    for decode in (batches[0].records, batches[0].lists):
        with pytest.raises(CorruptBatchError) as caught:
            decode()
        assert (caught.value.offset, caught.value.next_offset) == (3, 10)


def test_records_of_other_partitions_do_not_hide_a_batch_that_cannot_be_read(
    setting: Setting,
) -> None:
    whole = setting.leader.batch

    def respond(request: FetchRequest) -> FetchResponse:
        answer = setting.leader.respond(request)
        for part in answer.responses[0].partitions:
            if part.partition_index == 1:
                part.records = nonsense_in(0)(whole(0))
        return answer

    setting.transport.answer(FetchRequest, respond)
    setting.reader.assign([T0, T1])
    setting.reader.seek(T0, 0)
    setting.reader.seek(T1, 0)

    def poll_three_times() -> None:
        for _ in range(3):
            setting.poll(max_records=1)  # partition 0 has records for every poll

    with pytest.raises(CorruptBatchError) as caught:
        poll_three_times()
    assert (caught.value.topic, caught.value.partition) == T1


def test_what_was_fetched_before_an_error_is_taken_before_it_is_raised(setting: Setting) -> None:
    assert setting.poll(max_records=1) == [0]  # ten records are there, the next fetch is under way
    setting.reader.seek(T0, 0)
    setting.leader.change = lambda data: data if data[:8] == bytes(8) else bytes(100)
    assert setting.poll(max_records=5) == [0, 1, 2, 3, 4]
    assert setting.poll(max_records=5) == [5, 6, 7, 8, 9]
    with pytest.raises(CorruptBatchError) as caught:
        setting.poll()
    assert (caught.value.offset, caught.value.next_offset) == (10, 11)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:40],
        lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
        lambda data: data[:16] + b"\x01" + data[17:],
        lambda data: bytes(100),
    ],
)
def test_bytes_that_are_no_batches_are_an_error_not_a_loop(
    setting: Setting, change: Callable[[bytes], bytes]
) -> None:
    setting.leader.change = change
    with pytest.raises(BrokerError):
        setting.poll()


def test_answers_about_partitions_nobody_asked_for_are_ignored(setting: Setting) -> None:
    def lie(request: FetchRequest) -> FetchResponse:
        answer = setting.leader.respond(request)
        stranger = PartitionData(partition_index=7, records=setting.leader.batch(0))
        answer.responses[0].partitions.append(stranger)
        answer.responses.append(FetchableTopicResponse(topic_id=b"?" * 16, partitions=[stranger]))
        return answer

    setting.transport.answer(FetchRequest, lie)
    records = setting.reader.poll(timeout_ms=0) or setting.reader.poll(timeout_ms=0)
    assert {record.partition for record in records} == {0}


def test_an_answer_that_comes_after_a_seek_is_dropped(setting: Setting) -> None:
    setting.leader.answers = False
    setting.poll()
    late = setting.transport.waiting(FetchRequest)[0]
    setting.reader.seek(T0, 70)
    setting.leader.answers = True
    late.future.set_result(setting.leader.respond(late.request))  # type: ignore[arg-type]
    assert setting.poll(max_records=1) == [70]


def test_an_answer_that_comes_after_another_assignment_is_dropped(setting: Setting) -> None:
    setting.leader.answers = False
    setting.poll()
    late = setting.transport.waiting(FetchRequest)[0]
    setting.reader.assign([T1])
    setting.leader.answers = True
    late.future.set_result(setting.leader.respond(late.request))  # type: ignore[arg-type]
    records = setting.reader.poll(timeout_ms=0) or setting.reader.poll(timeout_ms=0)
    assert {record.partition for record in records} == {1}


def test_a_slow_broker_has_one_fetch_under_way_and_polls_end_in_time(setting: Setting) -> None:
    setting.leader.answers = False
    for _ in range(5):
        assert setting.reader.poll(timeout_ms=0) == []
    assert len(setting.transport.waiting(FetchRequest)) == 1


def lead_anew(setting: Setting) -> None:
    """Another broker is elected and the consumer hears of it."""
    setting.transport.leader_epoch = 1
    setting.reader._cluster.invalidate("t")
    setting.clock.advance(1_000)


def test_a_new_leader_that_has_everything_changes_nothing(setting: Setting) -> None:
    setting.poll(max_records=15)
    lead_anew(setting)
    assert setting.poll(max_records=1) == [15]
    asked = setting.transport.requests(OffsetForLeaderEpochRequest)
    assert [item.leader_epoch for item in asked[0].topics[0].partitions] == [0]
    assert setting.fetches()[-1].topics[0].partitions[0].current_leader_epoch == 1


def test_a_new_leader_that_has_less_sends_the_consumer_back(setting: Setting) -> None:
    setting.poll(max_records=15)
    setting.leader.epoch_end = 12
    lead_anew(setting)
    assert setting.poll(max_records=1) == [12]


def test_truncation_is_for_the_caller_when_there_is_no_policy() -> None:
    made = make_setting(auto_offset_reset="none")
    made.reader.assign([T0])
    made.reader.seek(T0, 0)
    made.poll(max_records=15)
    made.leader.epoch_end = 12
    lead_anew(made)
    with pytest.raises(ClientError, match="truncated to offset 12"):
        made.poll()
    made.reader.close()


# --- how much is still ahead ----------------------------------------------------------------------


def test_an_answer_that_does_not_know_the_end_does_not_unlearn_the_lag(setting: Setting) -> None:
    setting.leader.end_offset = 10

    def fetch(request: FetchRequest) -> object:
        at_end = request.topics[0].partitions[0].fetch_offset >= 10
        return None if at_end else setting.leader.respond(request)

    setting.transport.answer(FetchRequest, fetch)
    assert setting.poll() == list(range(10))
    assert setting.reader.current_lag(T0) == 0
    waiting = setting.transport.waiting(FetchRequest)[0]
    assert isinstance(waiting.request, FetchRequest)
    answer = setting.leader.respond(waiting.request)
    for data in answer.responses[0].partitions:
        data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
    waiting.future.set_result(answer)
    assert setting.reader.current_lag(T0) == 0


def test_a_lag_that_no_fetch_has_told_is_asked_for(setting: Setting) -> None:
    setting.leader.answers = False  # nothing new: the fetch waits at the broker
    setting.leader.end_offset = 0
    setting.reader.poll(timeout_ms=0)
    assert setting.reader.position(T0) == 0
    asked = len(setting.transport.requests(ListOffsetsRequest))
    assert setting.reader.current_lag(T0) is None
    assert setting.reader.current_lag(T0) is None
    setting.reader.poll(timeout_ms=0)
    assert setting.reader.current_lag(T0) == 0
    assert len(setting.transport.requests(ListOffsetsRequest)) == asked + 1


def test_the_end_of_a_log_is_asked_for_again_after_a_failure_but_not_at_once(
    setting: Setting,
) -> None:
    setting.leader.answers = False
    setting.reader.poll(timeout_ms=0)
    assert setting.reader.position(T0) == 0
    setting.transport.answer(ListOffsetsRequest, lambda _: ConnectionFailed("gone"))
    asked = len(setting.transport.requests(ListOffsetsRequest))
    for _ in range(5):
        assert setting.reader.current_lag(T0) is None
        setting.reader.poll(timeout_ms=0)
    assert len(setting.transport.requests(ListOffsetsRequest)) == asked + 1
    setting.transport.answer(ListOffsetsRequest, setting.leader.list_offsets)
    setting.clock.advance(1_000)
    setting.reader.poll(timeout_ms=0)
    assert setting.reader.current_lag(T0) == END
