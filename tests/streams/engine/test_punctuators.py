"""Punctuators: when they run, in which order, and what they see."""

from collections.abc import Callable
from functools import partial

import pytest

from broker.clock import ManualClock
from streams.errors import StreamsError
from streams.processor import Cancellable, NodeContext, Process, PunctuationType
from streams.record import Headers, Position
from streams.topology import Topology
from tests.streams.engine.harness import LoneTask
from tests.streams.engine.topologies import node, sink, source, topology

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


def ticking(interval_ms: int, kind: PunctuationType) -> Topology:
    """Drops records, and forwards the time of each punctuation."""

    def opened(context: NodeContext) -> Process:
        forward = context.forward
        context.schedule(interval_ms, kind, lambda time: forward("tick", time, time, ()))
        return ignore

    return topology([source("in"), node("p", opened, "in"), sink("out", "out", "p")])


def ignore(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
    """Nothing."""


def pipe(lone: LoneTask, *times: int) -> list[int]:
    """Process records of these times; the times of the punctuations they let run."""
    before = len(lone.outbox.sent)
    lone.add("in", [("k", b"1", time) for time in times])
    lone.run()
    return [record.timestamp_ms for record in lone.outbox.sent[before:]]


def test_stream_time_punctuates_at_once_and_then_at_multiples_of_the_interval() -> None:
    lone = LoneTask(ticking(10, STREAM))
    assert pipe(lone, 42) == [42]
    assert pipe(lone, 42, 49) == []
    assert pipe(lone, 51) == [51]
    assert pipe(lone, 52, 59) == []
    assert pipe(lone, 60) == [60]


def test_missed_stream_times_are_not_made_up() -> None:
    lone = LoneTask(ticking(20, STREAM))
    assert pipe(lone, 20, 142) == [20, 142]
    assert pipe(lone, 155, 159) == []
    assert pipe(lone, 160, 161) == [160]


def test_an_older_record_does_not_move_stream_time() -> None:
    lone = LoneTask(ticking(10, STREAM))
    assert pipe(lone, 42, 5, 50) == [42, 50]


def test_punctuations_come_between_the_records_of_a_run() -> None:
    seen: list[str] = []

    def opened(context: NodeContext) -> Process:
        context.schedule(10, STREAM, lambda time: seen.append(f"tick {time}"))
        return lambda key, value, timestamp_ms, headers: seen.append(f"record {timestamp_ms}")

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    pipe(lone, 1, 2, 11, 12)
    assert seen == ["record 1", "tick 1", "record 2", "record 11", "tick 11", "record 12"]


def test_the_wall_clock_punctuates_after_the_first_interval() -> None:
    clock = ManualClock(0)
    lone = LoneTask(ticking(10, WALL), clock=clock)
    found = []
    for step in (5, 9, 1, 20, 5):
        clock.advance(step)
        lone.task.punctuate_wall_clock()
        found.append([record.timestamp_ms for record in lone.outbox.sent])
        lone.outbox.sent.clear()
    assert found == [[], [14], [], [35], [40]]
    assert lone.task.next_wall_clock_ms == 50


def test_records_do_not_run_wall_clock_punctuators() -> None:
    lone = LoneTask(ticking(10, WALL))
    assert pipe(lone, 1000) == []


def test_equal_times_run_parents_first_and_then_in_order_of_scheduling() -> None:
    seen: list[str] = []

    def noted(name: str, time_ms: int) -> None:
        seen.append(name)

    def scheduling(*names: str) -> Callable[[NodeContext], Process]:
        def opened(context: NodeContext) -> Process:
            for name in names:
                context.schedule(10, STREAM, partial(noted, name))
            return context.forward

        return opened

    lone = LoneTask(
        topology(
            [source("in"), node("p", scheduling("p1", "p2"), "in"), node("c", scheduling("c"), "p")]
        )
    )
    pipe(lone, 1)
    assert seen == ["p1", "p2", "c"]


def test_a_punctuator_may_end_itself() -> None:
    seen: list[int] = []
    schedules: list[Cancellable] = []

    def once(time: int) -> None:
        seen.append(time)
        schedules[0].cancel()

    def opened(context: NodeContext) -> Process:
        schedules.append(context.schedule(10, STREAM, once))
        return ignore

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    pipe(lone, 1, 20, 30)
    assert seen == [1]


def test_a_punctuator_may_be_scheduled_by_a_record() -> None:
    seen: list[int] = []

    def opened(context: NodeContext) -> Process:
        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if timestamp_ms == 5:
                context.schedule(10, STREAM, seen.append)

        return process

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    pipe(lone, 3, 5, 6, 12)
    assert seen == [5, 12]


def test_a_punctuator_belongs_to_no_record() -> None:
    seen: list[Position | None] = []

    def opened(context: NodeContext) -> Process:
        context.schedule(10, STREAM, lambda time: seen.append(context.position))

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            seen.append(context.position)

        return process

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    pipe(lone, 1, 2)
    assert seen == [Position("in", 0, 0), None, Position("in", 0, 1)]


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(StreamsError, match="interval of a punctuator is 0 ms") as caught:
        LoneTask(ticking(0, STREAM))
    assert caught.value.at == 'node "p"'
