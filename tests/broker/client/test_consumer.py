"""The consumer on every kind of broker: reading, seeking, committing, transactions."""

import threading
import time
from collections.abc import Callable, Mapping

import pytest

from broker.batch.codec import decode_records
from broker.client import admin, consumer, producer
from broker.client.api import ConsumerRecord, OffsetAndMetadata
from broker.client.opening import Target
from broker.client.record_consumer import Consumer, WokenUp
from broker.errors import BrokerError, ClientError, ConfigError, ErrorCode, RequestTimeout
from broker.model import TopicPartition

MakeTopic = Callable[..., str]

DEADLINE_S = 60
BASE_MS = 1_700_000_000_000


def fill(target: Target, topic: str, count: int, *, partition: int = 0, start: int = 0) -> None:
    """Records with values 0, 1, 2, ... one second apart."""
    with producer(target) as out:
        for number in range(start, start + count):
            out.send(
                topic,
                b"%d" % number,
                partition=partition,
                timestamp_ms=BASE_MS + 1000 * number,
            )


def read(reader: Consumer, count: int, **options: int) -> list[ConsumerRecord]:
    """Poll until so many records are there."""
    found: list[ConsumerRecord] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
        found += reader.poll(timeout_ms=500, **options)
    return found


def numbers(records: list[ConsumerRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def test_records_come_in_order_with_all_their_parts(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with producer(target) as out:
        out.send(topic, b"v", b"k", timestamp_ms=BASE_MS, headers=[("h", b"1"), ("h", None)])
        out.send(topic, None, None, timestamp_ms=BASE_MS + 1)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        assert read(reader, 2) == [
            ConsumerRecord(topic, 0, 0, BASE_MS, b"k", b"v", (("h", b"1"), ("h", None))),
            ConsumerRecord(topic, 0, 1, BASE_MS + 1, None, None, ()),
        ]


def test_polls_give_at_most_so_many_records_and_lose_none(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(target, topic, 500)
    fill(target, topic, 500, partition=1)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        found: list[ConsumerRecord] = []
        while len(found) < 1000:
            polled = reader.poll(timeout_ms=500, max_records=7)
            assert len(polled) <= 7
            found += polled
        for partition in (0, 1):
            here = [record for record in found if record.partition == partition]
            assert numbers(here) == list(range(500))


@pytest.mark.slow
def test_a_long_poll_ends_when_a_record_comes(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with consumer(
        target, auto_offset_reset="earliest", fetch_max_wait_ms=2 * DEADLINE_S * 1000
    ) as reader:
        reader.assign([TopicPartition(topic, 0)])
        assert reader.poll(timeout_ms=300) == []
        fill(target, topic, 1)
        assert numbers(read(reader, 1)) == [0]  # within the deadline


def test_raw_batches_hold_the_bytes_of_the_log(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with producer(target, linger_ms=50, compression_type="zstd") as out:
        for number in range(300):
            out.send(topic, b"%d" % number)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        reader.seek(TopicPartition(topic, 0), 10)
        values: list[int] = []
        while len(values) < 290:
            for batch in reader.poll_batches(timeout_ms=500):
                assert batch.topic_partition == TopicPartition(topic, 0)
                records = decode_records(batch.data)
                assert records[0].offset == batch.first_offset
                assert records[-1].offset == batch.last_offset
                values += [
                    int(record.value or b"")
                    for record in records
                    if record.offset >= batch.start_offset
                ]
        assert values == list(range(10, 300))
        assert reader.position(TopicPartition(topic, 0)) == 300


def test_a_batch_that_was_polled_in_part_comes_whole_as_raw_batch(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with producer(target, linger_ms=100) as out:
        for number in range(10):
            out.send(topic, b"%d" % number)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        assert numbers(read(reader, 3, max_records=3)) == [0, 1, 2]
        (batch,) = reader.poll_batches(timeout_ms=1000)
        assert (batch.first_offset, batch.start_offset, batch.last_offset) == (0, 3, 9)
        assert reader.position(TopicPartition(topic, 0)) == 10


@pytest.mark.slow
def test_seeking_goes_anywhere_and_drops_what_was_fetched(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 100)
    tp = TopicPartition(topic, 0)
    with consumer(target, auto_offset_reset="earliest", fetch_max_wait_ms=50) as reader:
        reader.assign([tp])
        assert numbers(read(reader, 5, max_records=5)) == [0, 1, 2, 3, 4]
        reader.seek(tp, 90)
        assert numbers(read(reader, 10)) == list(range(90, 100))
        reader.seek_to_beginning()
        assert reader.position(tp) == 0
        assert numbers(read(reader, 1, max_records=1)) == [0]
        reader.seek_to_end([tp])
        assert reader.position(tp) == 100
        reader.seek(tp, OffsetAndMetadata(42))
        assert numbers(read(reader, 1, max_records=1)) == [42]


def test_only_a_partition_that_was_paused_notifies_the_listener_when_it_is_resumed(
    target: Target, make_topic: MakeTopic
) -> None:
    tp = TopicPartition(make_topic(), 0)
    calls: list[str] = []
    with consumer(target) as reader:
        reader.assign([tp])
        reader.on_ready(lambda: calls.append("ready"))
        reader.resume([tp])
        assert not calls  # a caller that resumes before each poll would poll without end
        reader.pause([tp])
        reader.resume([tp])
        assert calls


@pytest.mark.slow
def test_paused_partitions_stay_silent_and_lose_nothing(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(target, topic, 50)
    fill(target, topic, 50, partition=1)
    quiet, loud = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([quiet, loud])
        reader.pause([quiet])
        assert reader.paused() == {quiet}
        assert {record.partition for record in read(reader, 50)} == {1}
        assert reader.poll(timeout_ms=100) == []
        reader.resume([quiet])
        assert numbers(read(reader, 50)) == list(range(50))


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_a_consumer_knows_whose_time_records_have(
    target: Target, make_topic: MakeTopic, kind: str
) -> None:
    topic = make_topic(message_timestamp_type=kind)
    fill(target, topic, 1)
    tp = TopicPartition(topic, 0)
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([tp])
        read(reader, 1)
        assert reader.has_append_time(tp) is (kind == "LogAppendTime")


def test_offsets_are_found_by_time(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(target, topic, 20)
    tp = TopicPartition(topic, 0)
    with consumer(target) as reader:
        found = reader.offsets_for_times({tp: BASE_MS + 4_500})[tp]
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (5, BASE_MS + 5_000)
        assert reader.offsets_for_times({tp: BASE_MS + 60_000}) == {tp: None}
        assert reader.beginning_offsets([tp]) == {tp: 0}
        assert reader.end_offsets([tp]) == {tp: 20}
        assert reader.partitions_for(topic) == [0]


@pytest.mark.parametrize(("policy", "expected"), [("earliest", 0), ("latest", 10)])
def test_without_a_commit_the_policy_says_where_to_begin(
    target: Target, make_topic: MakeTopic, policy: str, expected: int
) -> None:
    topic = make_topic()
    fill(target, topic, 10)
    with consumer(target, auto_offset_reset=policy) as reader:
        reader.assign([TopicPartition(topic, 0)])
        assert reader.position(TopicPartition(topic, 0)) == expected


def test_without_a_policy_it_is_for_the_caller_to_solve(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer(target, auto_offset_reset="none", group_id=f"g-{topic}") as reader:
        reader.assign([tp])
        with pytest.raises(ClientError, match="no offset is committed"):
            reader.poll(timeout_ms=DEADLINE_S * 1000)
        reader.seek(tp, 1_000)
        with pytest.raises(BrokerError) as caught:
            read(reader, 1)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        reader.seek(tp, 9)
        assert numbers(read(reader, 1)) == [9]


def test_an_offset_that_was_deleted_is_reset_by_the_policy(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer(target, auto_offset_reset="earliest") as reader, admin(target) as administration:
        administration.delete_records({tp: 6}).all()
        reader.assign([tp])
        reader.seek(tp, 2)
        assert numbers(read(reader, 4)) == [6, 7, 8, 9]


def test_commits_are_where_the_next_consumer_begins(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(target, topic, 30)
    tp = TopicPartition(topic, 0)
    settings = {"group_id": f"g-{topic}", "enable_auto_commit": False}
    with consumer(target, auto_offset_reset="earliest", **settings) as reader:
        reader.assign([tp])
        read(reader, 10, max_records=10)
        reader.commit()
        read(reader, 5, max_records=5)  # not committed
        assert reader.committed([tp, TopicPartition(topic, 9)])[tp] == OffsetAndMetadata(10, 0)
    with consumer(target, **settings) as reader:
        reader.assign([tp])
        assert numbers(read(reader, 1, max_records=1)) == [10]
        reader.commit({tp: OffsetAndMetadata(20, metadata="a note")})
        committed = reader.committed([tp])[tp]
        assert committed is not None
        assert (committed.offset, committed.metadata) == (20, "a note")


@pytest.mark.slow
def test_commits_without_waiting_report_to_their_callback(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 3)
    tp = TopicPartition(topic, 0)
    told: list[tuple[Mapping[TopicPartition, OffsetAndMetadata], object]] = []
    with consumer(target, auto_offset_reset="earliest", group_id=f"g-{topic}") as reader:
        reader.assign([tp])
        read(reader, 3)
        reader.commit_async(callback=lambda offsets, error: told.append((offsets, error)))
        while not told:
            reader.poll(timeout_ms=50)
        assert told == [({tp: OffsetAndMetadata(3, 0)}, None)]
        reader.commit_async({tp: OffsetAndMetadata(1)}, lambda o, e: told.append((o, e)))
    assert len(told) == 2, "close waits for commits under way"


@pytest.mark.slow
def test_automatic_commits_come_with_time_and_with_close(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 10)
    tp = TopicPartition(topic, 0)
    settings = {
        "group_id": f"g-{topic}",
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 50,
    }
    with consumer(target, **settings) as reader, admin(target) as administration:
        reader.assign([tp])
        read(reader, 4, max_records=4)
        deadline = time.monotonic() + DEADLINE_S
        reader.pause([tp])
        while not administration.list_group_offsets(f"g-{topic}").values:
            assert time.monotonic() < deadline
            reader.poll(timeout_ms=50)
        reader.resume([tp])
        read(reader, 6)
    with admin(target) as administration:
        assert administration.list_group_offsets(f"g-{topic}")[tp].offset == 10


@pytest.mark.slow
@pytest.mark.parametrize("raw", [False, True])
def test_readers_of_committed_records_see_no_aborted_and_no_open_transaction(
    target: Target, make_topic: MakeTopic, raw: bool
) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    with producer(target, transactional_id=f"t-{topic}") as out:
        out.init_transactions()
        for number, commits in enumerate([True, False, False, True]):
            out.begin_transaction()
            for part in range(3):
                out.send(topic, b"%d" % (10 * number + part))
                out.flush()
            if commits:
                out.commit_transaction()
            else:
                out.abort_transaction()
        out.begin_transaction()
        out.send(topic, b"99")
        out.flush()
        expected = [0, 1, 2, 30, 31, 32]
        with consumer(
            target, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as reader:
            reader.assign([tp])
            assert read_values(reader, 6, raw=raw) == expected
            assert reader.poll(timeout_ms=100) == []
            assert reader.end_offsets([tp])[tp] == reader.position(tp) == 16
            assert reader.current_lag(tp) == 0
            out.commit_transaction()
            assert read_values(reader, 1, raw=raw) == [99]
    with consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([tp])
        assert len(read_values(reader, 13, raw=raw)) == 13


def read_values(reader: Consumer, count: int, *, raw: bool) -> list[int]:
    """Values by either way of polling."""
    if not raw:
        return numbers(read(reader, count))
    found: list[int] = []
    while len(found) < count:
        for batch in reader.poll_batches(timeout_ms=500):
            assert not batch.header.is_control
            found += [int(record.value or b"") for record in decode_records(batch.data)]
    return found


def test_offsets_of_a_transaction_count_when_it_commits(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 10)
    tp = TopicPartition(topic, 0)
    group_id = f"g-{topic}"
    with (
        consumer(
            target, group_id=group_id, auto_offset_reset="earliest", enable_auto_commit=False
        ) as reader,
        producer(target, transactional_id=f"t-{topic}") as out,
    ):
        reader.subscribe([topic])
        read(reader, 10)
        out.init_transactions()
        for offset, commits in ((4, True), (7, False)):
            out.begin_transaction()
            out.send_offsets_to_transaction(
                {tp: OffsetAndMetadata(offset)}, reader.group_metadata()
            )
            if commits:
                out.commit_transaction()
            else:
                out.abort_transaction()
        committed = reader.committed([tp])[tp]
        assert committed is not None
        assert committed.offset == 4


def test_wakeup_ends_a_poll_of_another_thread(target: Target, make_topic: MakeTopic) -> None:
    with consumer(target) as reader:
        reader.assign([TopicPartition(make_topic(), 0)])
        threading.Timer(0.1, reader.wakeup).start()
        started = time.monotonic()
        with pytest.raises(WokenUp):
            reader.poll(timeout_ms=2 * DEADLINE_S * 1000)
        assert time.monotonic() - started < DEADLINE_S
        assert reader.poll(timeout_ms=10) == []


def test_small_fetches_still_bring_large_records(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with producer(target) as out:
        for number in range(6):
            out.send(topic, b"%d" % number * 50_000, partition=number % 2)
    with consumer(
        target,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1_000,
        fetch_max_bytes=2_000,
        fetch_buffer_bytes=1_000,
    ) as reader:
        reader.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        assert len(read(reader, 6)) == 6


@pytest.mark.slow
def test_a_topic_that_does_not_exist_is_waited_for(target: Target, make_topic: MakeTopic) -> None:
    topic = f"{make_topic()}-later"
    settings = {"allow_auto_create_topics": False, "auto_offset_reset": "earliest"}
    with consumer(target, **settings) as reader:
        reader.assign([TopicPartition(topic, 0)])
        assert reader.poll(timeout_ms=200) == []
        with pytest.raises(RequestTimeout):
            reader.position(TopicPartition(topic, 0), timeout_ms=200)
        with producer(target) as out:
            out.send(topic, b"0").result(DEADLINE_S * 1000)
        assert numbers(read(reader, 1)) == [0]


def test_wrong_use_is_told_what_to_do(embedded_target: Target) -> None:
    alone = consumer(embedded_target)
    with pytest.raises(ClientError, match="this consumer has nothing to read"):
        alone.poll()
    with pytest.raises(ClientError, match="needs a group"):
        alone.subscribe(["t"])
    with pytest.raises(ClientError, match="without a group"):
        alone.commit()
    with pytest.raises(ClientError, match="not assigned"):
        alone.seek(TopicPartition("t", 0), 1)
    alone.assign([TopicPartition("t", 0)])
    with pytest.raises(ClientError, match="cannot seek"):
        alone.seek(TopicPartition("t", 0), -1)
    alone.close()
    alone.close()
    with pytest.raises(ClientError, match="closed"):
        alone.poll()
    with consumer(embedded_target, group_id="g") as member:
        member.subscribe(["t"])
        with pytest.raises(ClientError, match="unsubscribe first"):
            member.assign([TopicPartition("t", 0)])
        with pytest.raises(BrokerError, match="not currently a member of the group"):
            member.commit()
        with pytest.raises(ClientError, match="pass a list"):
            member.subscribe("t")


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_offset_reset": "middle"},
        {"isolation_level": "none"},
        {"max_poll_records": 0},
        {"partition_assignment_strategy": ()},
        {"partition_assignment_strategy": ("random",), "group_id": "g"},
        {"sesion_timeout_ms": 1},
    ],
)
def test_settings_that_cannot_work_are_refused(
    embedded_target: Target, settings: dict[str, object]
) -> None:
    with pytest.raises(ConfigError):
        consumer(embedded_target, **settings)
