"""Transactions of a sink's tasks: each part of a micro-batch is written once."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from broker.client import admin
from broker.client.api import OffsetAndMetadata
from broker.client.record_producer import Producer
from broker.errors import ConfigError, MillstreamError
from broker.model import TopicPartition
from sql.backends.spark import transactions
from sql.backends.spark.marks import Mark, PackingChanged, TaskBatch
from sql.backends.spark.options import SinkOptions
from sql.backends.spark.sink import check_topic
from sql.backends.spark.transactions import abandon, begin, check_time, close_idle, commit
from tests.sql.backends.spark.cluster import SETTINGS, create, numbers_in
from tests.support.millstream_broker import MillstreamBroker

pytestmark = pytest.mark.slow

QUERY = "11111111-2222-3333-4444-555555555555"


def write(part: TaskBatch, options: SinkOptions, topic: str) -> bool:
    """Write a number that tells task and batch; whether it was not there yet."""
    opened = begin(part, options, topic)
    if isinstance(opened, Mark):
        return False
    send(opened, part, topic)
    commit(opened, part, options)
    return True


def send(opened: Producer, part: TaskBatch, topic: str) -> None:
    """The record of a part."""
    opened.send(topic, b"%d" % (part.batch_id * 100 + part.task))


def test_a_part_that_is_done_again_writes_nothing(servers: str) -> None:
    topic, options = create(servers, "again"), SinkOptions(servers)
    for batch_id in range(3):
        for task in range(2):
            part = TaskBatch("again", task, QUERY, batch_id)
            assert write(part, options, topic)
            assert not write(part, options, topic), "by the producer that is kept"
            if task:
                close_idle()
                assert not write(part, options, topic), "by the marker"
    assert numbers_in(servers, topic) == [0, 1, 100, 101, 200, 201]


def test_an_attempt_that_fails_leaves_nothing(servers: str) -> None:
    topic, options = create(servers, "fails"), SinkOptions(servers)
    part = TaskBatch("fails", 0, QUERY, 0)
    opened = begin(part, options, topic)
    assert isinstance(opened, Producer)
    send(opened, part, topic)
    abandon(opened)
    assert numbers_in(servers, topic) == []
    assert write(part, options, topic)
    assert numbers_in(servers, topic) == [0]


def test_a_late_attempt_is_fenced_by_a_newer_one(servers: str) -> None:
    topic, options = create(servers, "late"), SinkOptions(servers)
    part = TaskBatch("late", 0, QUERY, 0)
    late = begin(part, options, topic)
    assert isinstance(late, Producer)
    send(late, part, topic)
    assert write(part, options, topic)
    with pytest.raises(MillstreamError):
        late.commit_transaction()
    abandon(late)
    assert numbers_in(servers, topic) == [0]


def test_a_producer_whose_place_was_taken_is_replaced_before_it_takes_rows(servers: str) -> None:
    topic, options = create(servers, "taken"), SinkOptions(servers)
    close_idle()
    assert write(TaskBatch("taken", 0, QUERY, 0), options, topic)
    ((name, kept),) = transactions._idle_producers.items()
    transactions._idle_producers.clear()  # another process does not know it
    assert write(TaskBatch("taken", 0, QUERY, 1), options, topic)
    close_idle()
    transactions._idle_producers[name] = kept
    assert write(TaskBatch("taken", 0, QUERY, 2), options, topic)
    assert numbers_in(servers, topic) == [0, 100, 200]


def test_a_new_checkpoint_does_not_believe_old_markers(servers: str) -> None:
    topic, options = create(servers, "anew"), SinkOptions(servers)
    assert write(TaskBatch("anew", 0, QUERY, 5), options, topic)
    close_idle()
    assert write(TaskBatch("anew", 0, "another query", 0), options, topic)
    assert numbers_in(servers, topic) == [0, 500]


def test_a_mark_of_an_earlier_version_counts(servers: str) -> None:
    topic, options = create(servers, "earlier"), SinkOptions(servers)
    part = TaskBatch("earlier", 0, QUERY, 3, "millstream/0")
    mark = {TopicPartition(topic, 0): OffsetAndMetadata(4, metadata=QUERY)}
    with admin(servers) as administration:
        administration.alter_group_offsets(part.marker_group, mark).all()
    assert not write(part, options, topic)
    assert write(replace(part, batch_id=4), options, topic)


def test_another_packing_of_a_part_that_is_written_is_refused(servers: str) -> None:
    topic, options = create(servers, "packing"), SinkOptions(servers)
    part = TaskBatch("packing", 0, QUERY, 7, "kafka/0")
    other = replace(part, packing="millstream/2")
    assert write(part, options, topic)
    with pytest.raises(PackingChanged, match=r'micro-batch 7 of "packing".*kafka/0.*millstream/2'):
        begin(other, options, topic)  # by the producer that is kept
    close_idle()
    with pytest.raises(PackingChanged, match="micro-batch 7"):
        begin(other, options, topic)
    close_idle()
    assert not write(part, options, topic), "with the packing that it had it goes on"
    assert write(replace(other, batch_id=8), options, topic), "the next may have another one"
    assert numbers_in(servers, topic) == [700, 800]


def test_a_task_that_no_longer_exists_keeps_others_from_writing_its_rows(servers: str) -> None:
    topic, options = create(servers, "fewer"), SinkOptions(servers)
    assert write(TaskBatch("fewer", 3, QUERY, 0, "kafka/0"), options, topic)
    close_idle()
    with pytest.raises(PackingChanged, match="delivery"):
        begin(TaskBatch("fewer", 0, QUERY, 0, "millstream/2"), options, topic)
    assert numbers_in(servers, topic) == [3]


def test_a_task_that_outlives_its_transaction_says_so() -> None:
    part, fenced = TaskBatch("slow", 3, QUERY, 7), MillstreamError("the epoch is not valid")
    options = SinkOptions("localhost:1", client={"transaction_timeout_ms": 1_000})
    check_time(part, options, fenced, 999)
    check_time(part, options, KeyboardInterrupt(), 5_000)
    with pytest.raises(ConfigError, match="task 3 of micro-batch 7 took 5000 ms") as refused:
        check_time(part, options, fenced, 5_000)
    assert "max_offsets_per_trigger" in str(refused.value)


def test_a_topic_that_the_broker_may_create_is_created(servers: str) -> None:
    options = SinkOptions(servers)
    assert write(TaskBatch("created", 0, QUERY, 0), options, "created-by-the-sink")
    assert numbers_in(servers, "created-by-the-sink") == [0]


def test_a_topic_that_does_not_exist_is_named_at_once(tmp_path: Path) -> None:
    settings = {**SETTINGS, "auto.create.topics.enable": "false"}
    with MillstreamBroker(tmp_path, settings=settings) as broker:
        options = SinkOptions(broker.bootstrap, topic="nowhere")
        with pytest.raises(ConfigError, match='topic "nowhere" does not exist'):
            begin(TaskBatch("nowhere", 0, QUERY, 0), options, "nowhere")
        with pytest.raises(ConfigError, match="create it first"):
            check_topic(options)


KILLED = """
import os, signal, sys
from sql.backends.spark.options import SinkOptions
from sql.backends.spark.marks import TaskBatch
from sql.backends.spark.transactions import begin, commit
servers, topic, query, moment = sys.argv[1:]
options, part = SinkOptions(servers), TaskBatch("killed-" + moment, 0, query, 0)
opened = begin(part, options, topic)
opened.send(topic, b"0")
opened.flush()
if moment == "after":
    commit(opened, part, options)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_killed_around_its_commit_writes_once(servers: str, moment: str) -> None:
    topic, options = create(servers, f"killed-{moment}"), SinkOptions(servers)
    command = [sys.executable, "-c", KILLED, servers, topic, QUERY, moment]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": "."}, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert write(TaskBatch(f"killed-{moment}", 0, QUERY, 0), options, topic) == (moment == "before")
    assert numbers_in(servers, topic) == [0]
