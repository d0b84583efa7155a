"""Transactions of a sink's tasks: each part of a micro-batch is written once."""

import os
import signal
import subprocess
import sys

import pytest

from broker.client.record_producer import RecordProducer
from broker.errors import MillstreamError
from sql.backends.spark import transactions
from sql.backends.spark.options import SinkOptions
from sql.backends.spark.transactions import TaskBatch, abandon, begin, close_kept, commit
from tests.sql.backends.spark.cluster import create, numbers_in

pytestmark = pytest.mark.slow

QUERY = "11111111-2222-3333-4444-555555555555"


def write(part: TaskBatch, options: SinkOptions, topic: str) -> bool:
    """Write a number that tells task and batch; whether it was not there yet."""
    opened = begin(part, options, topic)
    if opened is None:
        return False
    send(opened, part, topic)
    commit(opened, part, options)
    return True


def send(opened: RecordProducer, part: TaskBatch, topic: str) -> None:
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
                close_kept()
                assert not write(part, options, topic), "by the marker"
    assert numbers_in(servers, topic) == [0, 1, 100, 101, 200, 201]


def test_an_attempt_that_fails_leaves_nothing(servers: str) -> None:
    topic, options = create(servers, "fails"), SinkOptions(servers)
    part = TaskBatch("fails", 0, QUERY, 0)
    opened = begin(part, options, topic)
    assert opened is not None
    send(opened, part, topic)
    abandon(opened)
    assert numbers_in(servers, topic) == []
    assert write(part, options, topic)
    assert numbers_in(servers, topic) == [0]


def test_a_late_attempt_is_fenced_by_a_newer_one(servers: str) -> None:
    topic, options = create(servers, "late"), SinkOptions(servers)
    part = TaskBatch("late", 0, QUERY, 0)
    late = begin(part, options, topic)
    assert late is not None
    send(late, part, topic)
    assert write(part, options, topic)
    with pytest.raises(MillstreamError):
        late.commit_transaction()
    abandon(late)
    assert numbers_in(servers, topic) == [0]


def test_a_producer_whose_place_was_taken_is_replaced_before_it_takes_rows(servers: str) -> None:
    topic, options = create(servers, "taken"), SinkOptions(servers)
    close_kept()
    assert write(TaskBatch("taken", 0, QUERY, 0), options, topic)
    ((name, kept),) = transactions._kept.items()
    transactions._kept.clear()  # another process does not know it
    assert write(TaskBatch("taken", 0, QUERY, 1), options, topic)
    close_kept()
    transactions._kept[name] = kept
    assert write(TaskBatch("taken", 0, QUERY, 2), options, topic)
    assert numbers_in(servers, topic) == [0, 100, 200]


def test_a_new_checkpoint_does_not_believe_old_markers(servers: str) -> None:
    topic, options = create(servers, "anew"), SinkOptions(servers)
    assert write(TaskBatch("anew", 0, QUERY, 5), options, topic)
    close_kept()
    assert write(TaskBatch("anew", 0, "another query", 0), options, topic)
    assert numbers_in(servers, topic) == [0, 500]


KILLED = """
import os, signal, sys
from sql.backends.spark.options import SinkOptions
from sql.backends.spark.transactions import TaskBatch, begin, commit
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
