"""Records that are pulled become what they become one by one, whatever happens to them."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.handlers import Answer, DeadLetter
from streams.processor import NodeContext, Process, PunctuationType
from streams.runtime import pulling
from streams.topology import Topology
from tests.streams.engine.both_ways import (
    ANSWERS,
    Outcome,
    Raw,
    raw_records,
    same_in_both_ways,
)
from tests.streams.engine.harness import LoneTask
from tests.streams.engine.topologies import node, sink, source, topology

VALUES = st.sampled_from(
    [*(b'{"n":%d}' % number for number in range(-2, 9)), b"{}", b"7", b"not JSON", b"", None]
)
STEPS = ("filter", "filter_not", "map_values", "map_values_with_key", "map", "select_key")


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    log = logging.getLogger("streams")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


# Any: functions of users take what they like.
def functions(told: list[object]) -> dict[str, Callable[..., Any]]:
    """Functions that tell what they see; some values they cannot take, or make no bytes of."""

    def smaller(key: str, value: Any) -> bool:
        told.append(("smaller", key, value))
        return bool(value["n"] < 6)

    def divided(value: Any) -> object:
        told.append(("divided", value))
        number = value["n"]
        return {"n": 12 // number} if number != 5 else {1, 2}

    def next_key(key: str | None, value: Any) -> object:
        told.append(("next_key", key))
        return 17 if value["n"] == 4 else f"{key}-{value['n']}"

    return {
        "filter": smaller,
        "filter_not": smaller,
        "map_values": divided,
        "map_values_with_key": lambda key, value: divided(value),
        "map": lambda key, value: (next_key(key, value), value),
        "select_key": next_key,
    }


def chain(steps: tuple[str, ...]) -> Callable[[list[object]], Topology]:
    """A source, some steps and a sink."""

    def build(told: list[object]) -> Topology:
        builder = StreamsBuilder()
        stream: Any = builder.stream("in", key=str, value=dict[str, Any])
        for step in steps:
            if step == "map_values_with_key":
                stream = stream.map_values(functions(told)[step], with_key=True)
            else:
                stream = getattr(stream, step)(functions(told)[step])
        stream.to("out", key=str, value=dict[str, Any])
        return builder.build()

    return build


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), max_size=3).map(tuple),
    raw_records(VALUES),
    st.tuples(ANSWERS, ANSWERS) | st.tuples(ANSWERS, ANSWERS, ANSWERS),
    st.integers(1, 12),
)
def test_pulled_records_become_what_they_become_one_by_one(
    steps: tuple[str, ...],
    chunks: list[list[Raw]],
    answers: tuple[Answer | DeadLetter, ...],
    limit: int,
) -> None:
    same_in_both_ways(chain(steps), chunks, answers, limit=limit)


def outcome_of(*steps: str, numbers: list[int]) -> Outcome:
    rows: list[Raw] = [
        (b"k", b'{"n":%d}' % each, 7 + index, ()) for index, each in enumerate(numbers)
    ]
    return same_in_both_ways(chain(steps), [rows], (Answer.FAIL, Answer.FAIL))


def test_records_before_one_that_fails_are_sent_and_those_after_it_wait_for_the_next_run() -> None:
    outcome = outcome_of("filter", "map_values", numbers=[1, 7, 0, 2, 3])
    assert [each.value for each in outcome.sent if each.topic == "out"] == [
        b'{"n":12}',
        b'{"n":6}',
        b'{"n":4}',
    ]
    (error,) = outcome.errors
    assert 'node "KSTREAM-MAPVALUES' in error
    assert "ZeroDivisionError" in error
    assert "offset 2" in error


def test_functions_are_called_record_by_record() -> None:
    outcome = outcome_of("filter", "map_values", numbers=[1, 2])
    assert [each[0] for each in outcome.told if isinstance(each, tuple)] == [
        "smaller",
        "divided",
        "smaller",
        "divided",
    ]


def ticking(told: list[object]) -> Callable[[NodeContext], Process]:
    """A node whose punctuator runs every ten milliseconds of stream time."""

    def open_node(context: NodeContext) -> Process:
        context.schedule(10, PunctuationType.STREAM_TIME, told.append)
        return context.forward

    return open_node


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_punctuators_run_between_records(times: list[int]) -> None:
    def build(told: list[object]) -> Topology:
        return topology(
            [
                source("in"),
                source("other"),
                node("ticking", ticking(told), "other"),
                sink("out", "out", "in", "ticking"),
            ]
        )

    outcome = same_in_both_ways(build, [[(b"k", b"1", each, ()) for each in times]], ())
    assert outcome.told, "the first is due as soon as time is known"


def test_short_runs_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = topology([source("in"), sink("out", "out", "in")])
    lone = LoneTask(tree)
    monkeypatch.setattr(pulling, "iter", None, raising=False)  # only the other way can work
    lone.add("in", [(f"k{each}", b"1", each) for each in range(pulling.ROWS_MIN - 1)])
    lone.run()
    assert len(lone.values) == pulling.ROWS_MIN - 1
