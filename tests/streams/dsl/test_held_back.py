"""Results held back until the commit: the last one of each key, whatever keys are."""

from typing import Any

import pytest

from broker.serde import JsonSerde
from streams import StreamsBuilder
from streams.operators.emitting import key_identity
from streams.processor import CacheBudget
from streams.record import Windowed
from streams.testing import TopologyTestDriver
from tests.streams.engine.harness import LoneTask


def told(inputs: list[tuple[Any, Any]], *, cache_bytes: int = 10_000) -> list[tuple[Any, Any]]:
    """Changes of a kept table that are told when all inputs are processed, at one commit."""
    builder = StreamsBuilder()
    json = JsonSerde()
    builder.table("in", key=json, value=json, store="kept").to_stream().to("out")
    config = {"statestore_cache_max_bytes": cache_bytes}
    with TopologyTestDriver(builder.build(), config=config, commit="manual") as driver:
        topic = driver.create_input_topic("in", key=json, value=json)
        for key, value in inputs:
            topic.pipe_input(key, value)
        driver.commit()
        return driver.create_output_topic("out", key=json, value=json).read_key_values_to_list()


def test_the_last_change_of_each_key_is_told_in_the_order_of_the_last_changes() -> None:
    assert told([("a", 1), ("b", 1), ("a", 2)]) == [("b", 1), ("a", 2)]


def test_a_key_that_comes_and_goes_is_not_told_at_all() -> None:
    assert told([("a", 1), ("a", None), ("b", 1)]) == [("b", 1)]


def test_keys_that_cannot_be_hashed_are_held_back_too() -> None:
    one, same, other = {"id": 1, "in": ["x"]}, {"id": 1, "in": ["x"]}, {"id": 2, "in": ["x"]}
    assert told([(one, 1), (other, 1), (same, 2)]) == [(other, 1), (one, 2)]


def test_keys_that_python_holds_for_equal_stay_apart() -> None:
    assert told([(1, "int"), (True, "bool"), (1.5, "float"), ([1], "a"), ([True], "b")]) == [
        (1, "int"),
        (True, "bool"),
        (1.5, "float"),
        ([1], "a"),
        ([True], "b"),
    ]


def test_without_room_everything_is_told_at_once() -> None:
    assert told([("a", 1), ("a", 2)], cache_bytes=0) == [("a", 1), ("a", 2)]


def test_the_oldest_go_first_when_the_room_is_used_up() -> None:
    inputs = [(f"key-{number}", "x" * 100) for number in range(5)]
    early = told([*inputs, ("key-0", "again")], cache_bytes=700)
    assert early[0] == ("key-0", "x" * 100)
    assert early[-1] == ("key-0", "again")
    assert len(early) == 6


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (b"1", "1"), ([1], (1,)), ({"a": 1}, {"a": True})],
)
def test_keys_with_different_bytes_differ(one: object, other: object) -> None:
    assert key_identity(one) != key_identity(other)


@pytest.mark.parametrize(
    "make",
    [lambda: {"a": [1, {"b": 2}]}, lambda: float("nan"), lambda: Windowed({"a": 1}, 0, 5), set],
)
def test_equal_keys_are_the_same(make: Any) -> None:
    assert key_identity(make()) == key_identity(make())
    assert hash(key_identity(make())) == hash(key_identity(make()))


def test_the_order_of_names_in_a_dict_is_of_no_account() -> None:
    assert key_identity({"a": 1, "b": 2}) == key_identity({"b": 2, "a": 1})


def test_tasks_of_one_thread_share_its_room_and_each_makes_its_own() -> None:
    def kept() -> LoneTask:
        builder = StreamsBuilder()
        builder.table("in", key=str, value=str, store="kept").to_stream().to("out", value=str)
        return LoneTask(builder.build(), cache=cache)

    cache = CacheBudget(450)
    first, second = kept(), kept()
    for task in (first, second):
        task.add("in", [("a", b"x" * 100, 1), ("b", b"x" * 100, 2)])
        task.run()
    assert [len(task.outbox.sent) for task in (first, second)] == [0, 2]
    used = cache.used
    first.task.close()
    assert 0 < used <= 450
    assert cache.used == 0
