"""Sink tasks: records out of topics, offsets after what was delivered."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from crc32c import crc32c

from broker import Broker
from broker.batch.codec import check_records, encode_batch
from broker.client import consumer, producer
from broker.client.record_consumer import Consumer
from broker.clock import ManualClock
from broker.errors import RequestTimeout
from broker.handlers import produce
from broker.model import TopicPartition
from connect.errors import RetriableError
from connect.records import SinkRecord
from connect.retries import RETRY_MS
from connect.state.task_state import TargetState
from connect.stop_signal import StopSignal
from tests.connect.running_worker import (
    SinkTurns,
    committed_offsets,
    make_topic,
    running_worker,
    write,
)
from tests.connect.scripted import ScriptedSinkTask, SinkScript
from tests.support.peer import wait_until
from tests.support.topics import read_topic

pytestmark = pytest.mark.slow

INTEGERS = "connect.converters.primitives:IntegerConverter"
IN = TopicPartition("in", 0)
AWAY = RetriableError("target away")


def wait_put(script: SinkScript, *values: object) -> None:
    wait_until(lambda: script.values() == list(values), f"{values}, got {script.values()}")


def wait_committed(broker: Broker, offset: int, group_id: str = "connect-snk") -> None:
    wait_until(
        lambda: committed_offsets(broker, group_id).get(IN) == offset, f"offset {offset} committed"
    )


def test_records_are_put_and_their_offsets_committed_at_the_end(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a", "b", None)
    with running_worker(broker) as worker:
        script, statuses = worker.sink(topics="in")
        wait_put(script, "a", "b", None)
        worker.stop("snk")
        assert script.log == ["started", "open in-0", "flush", "close in-0", "stopped"]
        assert statuses.seen == ["startup", "shutdown"]
        assert committed_offsets(broker, "connect-snk") == {IN: 3}
        assert worker.topics == {("snk", "in")}


def test_a_sink_record_knows_where_it_comes_from(broker: Broker) -> None:
    make_topic(broker, "in")
    make_topic(broker, "stamped", message_timestamp_type="LogAppendTime")
    write(broker, "in", "a")
    write(broker, "stamped", "b")
    with running_worker(broker) as worker:
        script, _ = worker.sink(topics="in,stamped")
        wait_until(lambda: len(script.values()) == 2, "both")
    by_topic = {record.topic: record for batch in script.batches for record in batch}
    plain, stamped = by_topic["in"], by_topic["stamped"]
    assert (plain.partition, plain.offset, plain.key, plain.value) == (0, 0, "k", "a")
    assert (plain.timestamp_ms, plain.timestamp_type) == (1_000, "CreateTime")
    assert (plain.original_topic, plain.original_partition, plain.original_offset) == ("in", 0, 0)
    assert stamped.timestamp_type == "LogAppendTime"
    assert (stamped.timestamp_ms or 0) > 1_600_000_000_000


def test_a_new_task_goes_on_where_the_last_one_ended(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    with running_worker(broker) as worker:
        first, _ = worker.sink(topics="in")
        wait_put(first, "a")
        worker.stop("snk")
        write(broker, "in", "b")
        second, _ = worker.sink(topics="in")
        wait_put(second, "b")


def test_topics_can_be_given_by_a_pattern(broker: Broker) -> None:
    for topic in ("orders-eu", "orders-us", "users"):
        make_topic(broker, topic)
        write(broker, topic, topic)
    with running_worker(broker) as worker:
        script, _ = worker.sink(topics_regex="orders-.*")
        wait_until(lambda: len(script.values()) == 2, "both")
        assert sorted(map(str, script.values())) == ["orders-eu", "orders-us"]


def test_settings_of_the_consumer_can_be_overridden(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", *"abcdef")
    with running_worker(broker) as worker:
        script, _ = worker.sink(
            topics="in", consumer_override_max_poll_records="2", consumer_override_group_id="mine"
        )
        wait_put(script, *"abcdef")
        worker.stop("snk")
    assert [len(batch) for batch in script.batches] == [2, 2, 2]
    assert committed_offsets(broker, "mine") == {IN: 6}


def test_an_unknown_setting_of_the_consumer_fails_the_task_by_name(broker: Broker) -> None:
    with running_worker(broker) as worker:
        _, statuses = worker.sink(topics="in", consumer_override_isolaton_level="read_committed")
        statuses.wait_for("failure")
        assert 'unknown setting "isolaton.level" of a consumer' in statuses.trace
        assert 'did you mean "isolation.level"?' in statuses.trace


# --- redelivery -----------------------------------------------------------------------------------


def test_a_retriable_error_has_the_same_batch_put_again_and_no_other_before_it(
    broker: Broker,
) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a", "b")
    script = SinkScript()
    script.errors = [AWAY, AWAY]
    script.on_put = lambda task, records: task.context.timeout(10)
    with running_worker(broker) as worker:
        _, statuses = worker.sink(script=script, topics="in")
        wait_until(lambda: len(script.attempts) >= 1, "the first attempt")
        write(broker, "in", "c")
        wait_put(script, "a", "b", "c")
        assert statuses.seen == ["startup"]
    attempts = [[record.value for record in attempt] for attempt in script.attempts]
    assert attempts[:3] == [["a", "b"]] * 3
    assert script.attempts[0] == script.attempts[2]


def test_the_wait_before_a_redelivery_is_what_the_task_asked_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = SinkTurns(monkeypatch)
    make_topic(broker, "in")
    write(broker, "in", "a")
    clock, script = ManualClock(), SinkScript()
    script.errors = [AWAY]
    script.on_put = lambda task, records: task.context.timeout(40_000) if records else None
    with running_worker(broker, clock=clock) as worker:
        worker.sink(script=script, topics="in")
        wait_until(lambda: len(script.attempts) == 1, "the first attempt")
        clock.advance(39_999)
        write(broker, "in", "b")
        turns.wait_for_more(2)  # the first of them may have begun before the time was set
        assert len(script.attempts) == 1
        assert script.values() == []
        clock.advance(1)
        wait_put(script, "a", "b")


def test_without_a_wish_of_the_task_redeliveries_come_later_and_later(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    clock, script = ManualClock(), SinkScript()
    script.errors = [AWAY] * 3
    with running_worker(broker, clock=clock) as worker:
        worker.sink(script=script, topics="in")

        def is_put() -> bool:
            clock.advance(100)
            return script.values() == ["a"]

        wait_until(is_put, "the record")
    waits = re.findall(r"will put the same 1 records again in (\d+) ms", caplog.text)
    assert waits == ["300", "600", "1200"]


def test_a_task_that_waits_to_put_again_stays_in_its_group(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    script = SinkScript()
    script.errors = [AWAY] * 8
    script.on_put = lambda task, records: task.context.timeout(200)
    with running_worker(broker) as worker:
        worker.sink(
            script=script,
            topics="in",
            consumer_override_session_timeout_ms="1000",
            consumer_override_heartbeat_interval_ms="100",
            consumer_override_max_poll_interval_ms="700",
        )
        wait_put(script, "a")
    assert [line for line in script.log if line.startswith(("open", "close"))] == [
        "open in-0",
        "close in-0",
    ]


def test_any_other_error_of_put_fails_the_task(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    with running_worker(broker) as worker:
        script = SinkScript()
        script.errors = [ZeroDivisionError("in put")]
        _, statuses = worker.sink(script=script, topics="in")
        statuses.wait_for("failure")
        assert "ZeroDivisionError: in put" in statuses.trace
        assert "Exiting WorkerSinkTask due to unrecoverable exception." in statuses.trace
        assert script.log[-2:] == ["close in-0", "stopped"]
        assert committed_offsets(broker, "connect-snk") == {}


# --- commits --------------------------------------------------------------------------------------


def test_offsets_are_committed_every_interval(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    clock = ManualClock()
    with running_worker(broker, clock=clock) as worker:
        script, _ = worker.sink(topics="in")
        wait_put(script, "a")
        assert committed_offsets(broker, "connect-snk") == {}
        clock.advance(60_000)
        wait_committed(broker, 1)
        assert worker.value("snk", "offset-commit-completion-total") == 1


def test_a_task_can_ask_for_a_commit(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    with running_worker(broker) as worker:
        script, _ = worker.sink(topics="in")
        wait_put(script, "a")
        script.task.context.request_commit()
        wait_committed(broker, 1)


def test_only_what_the_task_offers_is_committed(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", *"abcd")
    script = SinkScript()
    answers: list[Mapping[TopicPartition, int]] = [
        {},
        {IN: 2},
        {IN: 99, TopicPartition("other", 0): 1},
    ]
    script.pre_commit = lambda offsets: answers.pop(0) if answers else offsets
    with running_worker(broker) as worker:
        worker.sink(script=script, topics="in")
        wait_put(script, *"abcd")
        for expected in (None, 2, 2, 4):
            count = len(script.offered)
            script.task.context.request_commit()
            wait_until(lambda n=count: len(script.offered) > n, "a commit")  # type: ignore[misc]
            wait_until(
                lambda n=expected: committed_offsets(broker, "connect-snk").get(IN) == n,  # type: ignore[misc]
                f"offset {expected}",
            )
    assert script.offered[0] == {IN: 4}


def test_a_failed_pre_commit_goes_back_to_what_was_committed_last(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a", "b")
    script = SinkScript()

    def refuse(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        script.pre_commit = None
        raise OSError("disk full")

    with running_worker(broker) as worker:
        _, statuses = worker.sink(script=script, topics="in")
        wait_put(script, "a", "b")
        script.task.context.request_commit()
        wait_committed(broker, 2)
        write(broker, "in", "c", "d")
        wait_put(script, "a", "b", "c", "d")
        script.pre_commit = refuse
        script.task.context.request_commit()
        wait_put(script, "a", "b", "c", "d", "c", "d")
        assert statuses.seen == ["startup"]


def test_a_task_can_rewind_and_skip(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", *"abcd")
    script = SinkScript()
    script.on_open = lambda task: task.context.offset(IN, 2)
    with running_worker(broker) as worker:
        worker.sink(script=script, topics="in")
        wait_put(script, "c", "d")
        script.task.context.offset(IN, 1)
        wait_put(script, "c", "d", "b", "c", "d")


def test_a_task_can_pause_partitions_itself(broker: Broker) -> None:
    make_topic(broker, "in", partitions=2)
    script = SinkScript()
    second = TopicPartition("in", 1)
    script.on_open = lambda task: task.context.pause([second])
    with running_worker(broker) as worker:
        worker.sink(script=script, topics="in")
        write(broker, "in", "b", partition=1)
        write(broker, "in", "a", partition=0)
        wait_put(script, "a")
        assert script.task.context.assignment() == {IN, second}
        script.task.context.resume([second])
        wait_put(script, "a", "b")


# --- pauses and rebalances ------------------------------------------------------------------------


def test_a_paused_sink_commits_and_gets_nothing_until_it_is_resumed(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    with running_worker(broker) as worker:
        script, statuses = worker.sink(topics="in")
        wait_put(script, "a")
        worker.worker.set_target_state("snk", TargetState.PAUSED)
        statuses.wait_for("paused")
        wait_committed(broker, 1)
        write(broker, "in", "b")
        assert script.values() == ["a"]
        worker.worker.set_target_state("snk", TargetState.STARTED)
        statuses.wait_for("running")
        wait_put(script, "a", "b")
        assert script.log.count("open in-0") == 1


def test_a_sink_that_begins_paused_is_started_when_it_is_resumed(broker: Broker) -> None:
    make_topic(broker, "in")
    with running_worker(broker) as worker:
        script, statuses = worker.sink(topics="in", target=TargetState.PAUSED)
        statuses.wait_for("paused")
        assert script.log == []
        worker.worker.set_target_state("snk", TargetState.STARTED)
        statuses.wait_for("startup")


STRATEGIES = {
    "eager": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_tasks_share_partitions_and_give_them_up_with_a_commit(broker: Broker, kind: str) -> None:
    make_topic(broker, "in", partitions=4)
    with running_worker(broker) as worker:
        settings = {
            "topics": "in",
            "consumer_override_partition_assignment_strategy": STRATEGIES[kind],
            "consumer_override_heartbeat_interval_ms": "100",
        }
        first, _ = worker.sink(task=0, **settings)  # type: ignore[arg-type]
        wait_until(lambda: first.log[-1:] == ["open in-0,in-1,in-2,in-3"], "all partitions")
        for partition in range(4):
            write(broker, "in", f"early {partition}", partition=partition)
        wait_until(lambda: len(first.values()) == 4, "all records")
        second, _ = worker.sink(task=1, **settings)  # type: ignore[arg-type]
        wait_until(lambda: any(line.startswith("open") for line in second.log), "a share")
        (closed,) = [line for line in first.log if line.startswith("close")]
        (opened,) = [line for line in second.log if line.startswith("open")]
        assert opened.count("in-") == 2
        if kind == "eager":
            assert closed == "close in-0,in-1,in-2,in-3"
        else:
            assert closed.removeprefix("close ") == opened.removeprefix("open ")
        for partition in range(4):
            write(broker, "in", f"late {partition}", partition=partition)
        wait_until(lambda: len(first.values()) + len(second.values()) == 8, "each record once")
        late = [*first.values(), *second.values()]
        assert sorted(map(str, late)) == sorted(
            f"{w} {n}" for w in ("early", "late") for n in range(4)
        )
        assert len(second.values()) == 2


def test_a_batch_that_waits_is_dropped_when_its_partition_moves(broker: Broker) -> None:
    """The new owner gets the records: they were never committed."""
    make_topic(broker, "in", partitions=2)
    stubborn, willing = SinkScript(), SinkScript()
    stubborn.errors = [AWAY] * 1_000
    stubborn.on_put = lambda task, records: task.context.timeout(20)
    settings = {
        "topics": "in",
        "consumer_override_partition_assignment_strategy": STRATEGIES["cooperative"],
        "consumer_override_heartbeat_interval_ms": "100",
    }
    with running_worker(broker) as worker:
        worker.sink(task=0, script=stubborn, **settings)  # type: ignore[arg-type]
        wait_until(lambda: stubborn.log[-1:] == ["open in-0,in-1"], "both partitions")
        write(broker, "in", "x", partition=0)
        write(broker, "in", "y", partition=1)
        wait_until(lambda: len(stubborn.attempts) > 2, "attempts")
        worker.sink(task=1, script=willing, **settings)  # type: ignore[arg-type]
        wait_until(lambda: len(willing.values()) == 1, "the record of the partition that moved")
        (taken,) = willing.values()
        before = len(stubborn.attempts)
        wait_until(lambda: len(stubborn.attempts) > before + 1, "more attempts")
        assert [record.value for record in stubborn.attempts[-1]] == (
            ["y"] if taken == "x" else ["x"]
        )


# --- errors ---------------------------------------------------------------------------------------


def test_poison_records_go_to_the_dead_letter_topic_and_the_others_arrive(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "\0\0\0\1", "poison", "\0\0\0\2")
    with running_worker(broker) as worker:
        script, statuses = worker.sink(
            topics="in",
            value_converter=INTEGERS,
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="dead",
            errors_deadletterqueue_context_headers_enable="true",
        )
        wait_put(script, 1, 2)
        script.task.context.request_commit()
        wait_committed(broker, 3)
        (letter,) = read_topic(broker, "dead", committed=True)
        assert (letter.key, letter.value, letter.timestamp_ms) == (b"k", b"poison", 1_000)
        headers = dict(letter.headers)
        assert headers["__connect.errors.offset"] == b"1"
        assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
        assert headers["__connect.errors.connector.name"] == b"snk"
        assert worker.value("snk", "deadletterqueue-produce-requests") == 1
        assert worker.value("snk", "total-records-skipped") == 1
        assert worker.value("snk", "sink-record-read-total") == 3
        assert worker.value("snk", "sink-record-send-total") == 2
        assert worker.value("snk", "sink-record-active-count") == 0
        assert statuses.seen == ["startup"]


def test_a_poison_record_fails_a_task_that_tolerates_none(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "poison")
    with running_worker(broker) as worker:
        _, statuses = worker.sink(topics="in", value_converter=INTEGERS)
        statuses.wait_for("failure")
        assert 'topic "in" partition 0 offset 0' in statuses.trace


def test_a_batch_of_nothing_but_poison_is_committed(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "poison", "more poison")
    with running_worker(broker) as worker:
        script, _ = worker.sink(topics="in", value_converter=INTEGERS, errors_tolerance="all")
        wait_until(lambda: worker.value("snk", "total-records-skipped") == 2, "skipped")
        worker.stop("snk")
        assert script.values() == []
        assert committed_offsets(broker, "connect-snk") == {IN: 2}


def report_all(
    done: list[object],
) -> Callable[[ScriptedSinkTask, Sequence[SinkRecord]], None]:
    def report(task: ScriptedSinkTask, records: Sequence[SinkRecord]) -> None:
        for record in records:
            reporter = task.context.errant_record_reporter
            assert reporter is not None
            given = record if record.value != "b" else record.changed(value="changed")
            done.append(reporter.report(given, ValueError(f"cannot take {record.value}")))

    return report


def test_a_task_can_report_single_records(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a", "b")
    done: list[object] = []
    script = SinkScript()
    script.on_put = report_all(done)
    with running_worker(broker) as worker:
        worker.sink(
            script=script,
            topics="in",
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="dead",
            errors_deadletterqueue_context_headers_enable="true",
        )
        wait_until(lambda: len(done) == 2, "two reports")
        script.task.context.request_commit()
        wait_committed(broker, 2)
        first, second = read_topic(broker, "dead", committed=True)
        assert (first.value, second.value) == (b"a", b"changed")
        headers = dict(first.headers)
        assert headers["__connect.errors.stage"] == b"TASK_PUT"
        assert headers["__connect.errors.class.name"] == b"org.apache.kafka.connect.sink.SinkTask"
        assert headers["__connect.errors.exception.message"] == b"cannot take a"
        assert all(each.result() is None for each in done)  # type: ignore[attr-defined]


def test_a_poison_record_whose_dead_letter_is_refused_fails_the_task(broker: Broker) -> None:
    make_topic(broker, "in")
    make_topic(broker, "dead", max_message_bytes="200")
    write(broker, "in", "\0\0\0\1", "poison" * 100, "\0\0\0\2")
    with running_worker(broker, {"offset.flush.interval.ms": "100"}) as worker:
        _, statuses = worker.sink(
            topics="in",
            value_converter=INTEGERS,
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="dead",
        )
        statuses.wait_for("failure")
        assert 'cannot write a record to the dead letter queue topic "dead"' in statuses.trace
        assert 'topic "in" partition 0 offset 1' in statuses.trace
        assert worker.value("snk", "deadletterqueue-produce-failures") == 1
    assert committed_offsets(broker, "connect-snk") == {}


def test_dead_letters_are_acknowledged_before_the_records_after_them_are_put(
    broker: Broker,
) -> None:
    make_topic(broker, "in")
    write(broker, "in", "\0\0\0\1", "poison", "\0\0\0\2")
    seen: list[int] = []
    script = SinkScript()

    def look(task: ScriptedSinkTask, records: Sequence[SinkRecord]) -> None:
        if records:
            seen.append(len(read_topic(broker, "dead", committed=True)))

    script.on_put = look
    with running_worker(broker) as worker:
        worker.sink(
            script=script,
            topics="in",
            value_converter=INTEGERS,
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="dead",
            producer_override_linger_ms="1000",
        )
        wait_put(script, 1, 2)
    assert seen == [1]


def test_a_reported_record_whose_dead_letter_is_refused_fails_the_task(broker: Broker) -> None:
    make_topic(broker, "in")
    make_topic(broker, "dead", max_message_bytes="200")
    write(broker, "in", "a" * 1_000)
    script = SinkScript()
    script.on_put = report_all([])
    with running_worker(broker, {"offset.flush.interval.ms": "100"}) as worker:
        _, statuses = worker.sink(
            script=script,
            topics="in",
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="dead",
        )
        statuses.wait_for("failure")
        assert 'cannot write a record to the dead letter queue topic "dead"' in statuses.trace
    assert committed_offsets(broker, "connect-snk") == {}


def write_poison_batch(broker: Broker, topic: str, count: int) -> None:
    """A batch with a valid CRC whose records are nonsense, as an earlier broker would take it."""
    rows = [(b"k", b"%d" % number, (), 1_000) for number in range(count)]
    good = encode_batch(rows, compression="gzip")
    body = good[21:61] + b"\x7f" * (len(good) - 61)
    checksum: int = crc32c(body)
    poison = good[:17] + checksum.to_bytes(4, "big") + body
    facts = check_records(memoryview(good))
    with pytest.MonkeyPatch.context() as patched, producer(broker) as out:
        patched.setattr(produce, "check_records", lambda records: facts)
        out.send_batch(TopicPartition(topic, 0), poison).result()


def test_a_batch_that_cannot_be_read_fails_a_task_that_tolerates_none(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    write_poison_batch(broker, "in", 3)
    write(broker, "in", "b")
    with running_worker(broker) as worker:
        script, statuses = worker.sink(topics="in")
        statuses.wait_for("failure")
        assert "cannot read offsets 1 to 3" in statuses.trace
        assert 'topic "in" partition 0 offset 1' in statuses.trace
        assert "errors.tolerance=all" in statuses.trace
        assert script.values() == ["a"]
    assert committed_offsets(broker, "connect-snk") == {IN: 1}


def test_a_batch_that_cannot_be_read_is_one_dead_letter_if_errors_are_tolerated(
    broker: Broker,
) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    write_poison_batch(broker, "in", 3)
    write(broker, "in", "b")
    write_poison_batch(broker, "in", 2)
    with running_worker(broker) as worker:
        script, statuses = worker.sink(
            topics="in", errors_tolerance="all", errors_deadletterqueue_topic_name="dead"
        )
        wait_put(script, "a", "b")
        wait_until(lambda: worker.value("snk", "total-records-skipped") == 2, "both batches")
        worker.stop("snk")
        assert statuses.seen == ["startup", "shutdown"]
        assert committed_offsets(broker, "connect-snk") == {IN: 7}
        first, second = (
            dict(letter.headers) for letter in read_topic(broker, "dead", committed=True)
        )
        assert first["__connect.errors.stage"] == b"KAFKA_CONSUME"
        assert (first["__connect.errors.offset"], first["__connect.errors.next.offset"]) == (
            b"1",
            b"4",
        )
        assert second["__connect.errors.offset"] == b"5"


def test_reports_fail_a_task_that_tolerates_none(broker: Broker) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a")
    script = SinkScript()
    script.on_put = report_all([])
    with running_worker(broker) as worker:
        _, statuses = worker.sink(script=script, topics="in", errors_log_enable="true")
        statuses.wait_for("failure")
        assert "Tolerance exceeded in errant record reporter" in statuses.trace


def test_there_is_no_reporter_when_reports_would_not_be_read(broker: Broker) -> None:
    make_topic(broker, "in")
    with running_worker(broker) as worker:
        script, statuses = worker.sink(topics="in", errors_tolerance="all")
        statuses.wait_for("startup")
        assert script.task.context.errant_record_reporter is None


def test_the_lag_of_a_sink_is_measured(broker: Broker) -> None:
    make_topic(broker, "in")
    free = threading.Event()
    script = SinkScript()
    script.on_put = lambda task, records: None if not records else _wait(free)
    with running_worker(broker) as worker:
        worker.sink(script=script, topics="in", consumer_override_max_poll_records="2")
        write(broker, "in", *map(str, range(10)))
        wait_until(lambda: worker.value("snk", "sink-record-lag-max") > 0, "a lag")
        assert worker.value("snk", "partition-count") == 1
        free.set()
        wait_until(lambda: worker.value("snk", "sink-record-lag-max") == 0, "no lag")
        assert "millstream_connect_sink_record_lag_max" in worker.worker.metrics()


def _wait(event: threading.Event) -> None:
    assert event.wait(30)


def test_the_group_of_a_stopped_sink_has_no_members(broker: Broker) -> None:
    make_topic(broker, "in")
    with running_worker(broker) as worker, consumer(broker, group_id="connect-snk") as other:
        script, _ = worker.sink(topics="in")
        wait_until(lambda: "open in-0" in script.log, "assigned")
        worker.stop("snk")
        other.subscribe(["in"])
        wait_until(lambda: other.poll(100) == [] and other.assignment() == {IN}, "takes over")


def test_a_broker_that_refuses_polls_at_once_is_asked_again_after_a_while(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the task keeps a core busy, and the log gets thousands of lines a second."""
    make_topic(broker, "in")
    polls: list[int] = []
    waits: list[int] = []
    wait = StopSignal.wait

    def refuse(self: Consumer, timeout_ms: int | None = None, **named: int) -> None:
        polls.append(len(waits))
        raise RequestTimeout("not now")

    def note(self: StopSignal, timeout_ms: int) -> bool:
        if timeout_ms == RETRY_MS:
            waits.append(timeout_ms)
        return wait(self, timeout_ms)

    monkeypatch.setattr(Consumer, "poll", refuse)
    monkeypatch.setattr(StopSignal, "wait", note)
    with running_worker(broker) as worker:
        worker.sink(topics="in")
        wait_until(lambda: len(polls) >= 3, "three polls")
        assert polls[:3] == [0, 1, 2], "there is a wait between two polls"
