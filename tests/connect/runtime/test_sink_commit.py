"""SinkCommit: when a sink task has to look at its commits again."""

from types import SimpleNamespace
from typing import Any, cast

from broker.clock import ManualClock
from broker.model import TopicPartition
from connect.runtime.metrics import SinkMetrics
from connect.runtime.sink.commit import SinkCommit
from connect.runtime.sink.offsets import SinkOffsets
from connect.runtime.sink.setup import SinkSetup

IN = TopicPartition("in", 0)
INTERVAL_MS, TIMEOUT_MS = 1_000, 5_000


def commit_of_one_record(clock: ManualClock, answers: list[Any]) -> SinkCommit:
    """A commit whose requests are answered by whoever calls the answers."""
    consumer = SimpleNamespace(
        assignment=lambda: {IN}, commit_async=lambda offsets, answer: answers.append(answer)
    )
    setup = SimpleNamespace(
        clock=clock,
        consumer=consumer,
        dead_letters=None,
        flush_interval_ms=INTERVAL_MS,
        flush_timeout_ms=TIMEOUT_MS,
        metrics=SinkMetrics(clock),
        task=SimpleNamespace(pre_commit=lambda offsets: offsets),
        task_id="snk-0",
    )
    offsets = SinkOffsets()
    offsets.read(IN, first=0, last=0)
    offsets.batch_done()
    return SinkCommit(cast(SinkSetup, setup), offsets)


def test_nothing_is_due_while_a_commit_is_under_way() -> None:
    clock, answers = ManualClock(), list[Any]()
    commit = commit_of_one_record(clock, answers)
    assert commit.due_in_ms() == INTERVAL_MS
    clock.advance(INTERVAL_MS)
    assert commit.due_in_ms() == 0
    assert commit.step(requested=False)
    clock.advance(2 * INTERVAL_MS)
    assert commit.due_in_ms() == TIMEOUT_MS - 2 * INTERVAL_MS
    answers.pop()(None, None)
    assert commit.due_in_ms() == 0


def test_a_commit_that_is_not_answered_in_time_makes_room_for_the_next() -> None:
    clock, answers = ManualClock(), list[Any]()
    commit = commit_of_one_record(clock, answers)
    assert commit.step(requested=True)
    clock.advance(TIMEOUT_MS)
    assert commit.due_in_ms() == 0
    assert not commit.step(requested=False)
    assert commit.step(requested=False)
