"""Our worker on a real Apache Kafka."""

import pytest

from broker.client import admin
from broker.model import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.records import SourceRecord
from connect.runtime.worker_group import GroupTimeouts, WorkerGroup
from connect.state.group_offsets import alter_offsets, list_offsets, reset_offsets
from connect.state.task_state import TargetState
from tests.connect.running_worker import (
    committed_offsets,
    make_topic,
    running_worker,
    string_values,
    write,
)
from tests.connect.scripted import SinkScript
from tests.support.apache_kafka import ApacheKafka
from tests.support.kafka_for_all import MARKS as KAFKA
from tests.support.peer import wait_until
from tests.support.topics import read_topic

pytestmark = KAFKA


@pytest.fixture
def kafka(kafka_for_all: ApacheKafka) -> str:
    """Its address."""
    return kafka_for_all.bootstrap


def rows(topic: str, first: int, last: int) -> list[SourceRecord]:
    return [
        SourceRecord({"topic": topic}, {"n": number}, topic, value=str(number))
        for number in range(first, last + 1)
    ]


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_source_writes_records_and_offsets(kafka: str, support: str) -> None:
    topic = f"out-{support}"
    settings = {"exactly.once.source.support": support}
    with running_worker(kafka, settings) as worker:
        script, statuses = worker.source(
            support,
            topic_creation_default_partitions="1",
            topic_creation_default_replication_factor="1",
        )
        script.feed(rows(topic, 1, 500), rows(topic, 501, 501))
        metric = "source-record-write-total"
        wait_until(lambda: worker.value(support, metric) == 501, "all written")
        worker.stop(support)
        assert statuses.seen == ["startup", "shutdown"]
        assert worker.stored(support, topic=topic) == {"n": 501}
    assert string_values(kafka, topic) == [str(number) for number in range(1, 502)]


def test_a_zombie_is_fenced(kafka: str) -> None:
    settings = {"exactly.once.source.support": "enabled"}
    make_topic(kafka, "fenced")
    with running_worker(kafka, settings) as old, running_worker(kafka, settings) as new:
        zombie, zombie_statuses = old.source("zombie", transaction_boundary="interval")
        zombie.feed(rows("fenced", 1, 2))
        wait_until(lambda: len(read_topic(kafka, "fenced", committed=False)) == 2, "sent")
        script, statuses = new.source("zombie")
        statuses.wait_for("startup")
        old.worker.set_target_state("zombie", TargetState.PAUSED)  # which wants to commit
        zombie_statuses.wait_for("failure")
        script.feed(rows("fenced", 10, 11))
        wait_until(lambda: new.stored("zombie", topic="fenced") == {"n": 11}, "committed")
    assert string_values(kafka, "fenced") == ["10", "11"]


def test_a_sink_puts_again_commits_and_can_be_reset(kafka: str) -> None:
    tp = TopicPartition("in", 0)
    make_topic(kafka, "in")
    write(kafka, "in", "a", "b", "c")
    script = SinkScript()
    script.errors = [RetriableError("away")] * 2
    with running_worker(kafka) as worker, admin(kafka) as administration:
        _, statuses = worker.sink("sinking", script=script, topics="in")
        wait_until(lambda: script.values() == ["a", "b", "c"], "all")
        worker.stop("sinking")
        assert statuses.seen == ["startup", "shutdown"]
        assert committed_offsets(kafka, "connect-sinking") == {tp: 3}
        alter_offsets(administration, "connect-sinking", {tp: 2})
        again, _ = worker.sink("sinking", topics="in")
        wait_until(lambda: again.values() == ["c"], "the last")
        worker.stop("sinking")
        reset_offsets(administration, "connect-sinking")
        assert list_offsets(administration, "connect-sinking") == []


def test_one_worker_owns_a_group(kafka: str) -> None:
    lost: list[ConnectError] = []
    # As short as the broker allows.
    timeouts = GroupTimeouts(session_ms=6_000, heartbeat_ms=200, rebalance_ms=30_000)

    def worker() -> WorkerGroup:
        return WorkerGroup(kafka, "one-worker", {}, lost.append, timeouts)

    first, second, again = worker(), worker(), worker()
    first.join("a:1")
    with pytest.raises(ConnectError, match='connectors of group "one-worker": a:1'):
        second.join("b:2")
    assert not lost
    again.join("a:1")  # as after kill -9
    wait_until(lambda: bool(lost), "the end of the first")
    assert 'another worker with the id "a:1"' in str(lost[0])
    first.close()
    again.close()
    second.join("b:2")  # at once: the others have left
    second.close()
