"""Functions for a key and a value must return a pair; other results raise with the user's line."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from streams import Processor, Record, StreamsBuilder
from streams.errors import ProcessingFailed
from tests.streams.dsl.running import run
from tests.streams.engine.harness import LoneTask


class KeyAndValue(NamedTuple):
    """A pair with names."""

    key: str
    value: str


NO_PAIRS: list[Any] = [
    {"amount": 1, "n": 2},
    "ab",
    b"ab",
    ["a", "b"],
    {1, 2},
    ("a", "b", "c"),
    ("a",),
    None,
    7,
]


def not_a_pair(key: str, value: str) -> Any:
    return {"amount": 1, "n": 2}


def failing(build: Callable[[StreamsBuilder], object]) -> str:
    with pytest.raises(ProcessingFailed) as caught:
        run(build, [("k", "v")], value=dict)
    return str(caught.value)


@pytest.mark.parametrize("given", NO_PAIRS, ids=repr)
def test_map_refuses_what_is_no_pair_and_says_which_function_returned_it(given: Any) -> None:
    def mapper(key: str, value: str) -> Any:
        return given

    text = failing(lambda builder: builder.stream("in").map(mapper).to("out"))
    line = mapper.__code__.co_firstlineno
    assert f"mapper at {__file__}:{line}, passed to map, must return a tuple (key, value)" in text
    assert repr(given) in text


@pytest.mark.parametrize("given", NO_PAIRS, ids=repr)
def test_map_refuses_it_in_a_long_run_of_records_too(given: Any) -> None:
    builder = StreamsBuilder()
    seen: list[object] = []

    def mapper(key: str, value: str) -> Any:
        seen.append(value)
        return given if len(seen) == 60 else (key, value)

    builder.stream("in", key=str, value=str).map(mapper).to("out", key=str, value=str)
    lone = LoneTask(builder.build())
    lone.add("in", [("k", b"v", 1)] * 100)
    with pytest.raises(ProcessingFailed, match="passed to map, must return a tuple"):
        lone.run()
    assert len(lone.outbox.sent) == 59, "what came before it is sent"


@pytest.mark.parametrize("given", [each for each in NO_PAIRS if each is not None], ids=repr)
def test_flat_map_refuses_results_that_are_no_pairs(given: Any) -> None:
    def mapper(key: str, value: str) -> Any:
        yield key, value
        yield given

    text = failing(lambda builder: builder.stream("in").flat_map(mapper).to("out"))
    assert f"mapper at {__file__}:{mapper.__code__.co_firstlineno}, passed to flat_map" in text


@pytest.mark.parametrize("given", [None, "ab", ("k", "v"), {"k": "v"}], ids=repr)
def test_flat_map_refuses_what_is_no_list_of_pairs(given: Any) -> None:
    text = failing(lambda builder: builder.stream("in").flat_map(lambda key, value: given))
    assert "passed to flat_map" in text
    assert __file__ in text


@pytest.mark.parametrize("given", ["ab", {"a": 1, "b": 2}, ["a", "b"], ("a", "b", "c")], ids=repr)
def test_group_by_of_a_table_refuses_what_is_no_pair(given: Any) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in").group_by(lambda key, value: given).count().to_stream().to("out")

    text = failing(build)
    assert "passed to group_by of a table, must return a tuple (key, value)" in text
    assert __file__ in text


def test_named_pairs_are_pairs() -> None:
    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in", key=str, value=str)
        words.map(lambda key, value: KeyAndValue(value, key)).flat_map(
            lambda key, value: [KeyAndValue(key, value), (value, key)]
        ).to("out", key=str, value=str)

    assert run(build, [("k", "v")]) == [("v", "k", 0), ("k", "v", 0)]


def test_select_key_takes_any_result_for_the_key_and_unpacks_nothing() -> None:
    seen: list[object] = []

    def build(builder: StreamsBuilder) -> None:
        chosen = builder.stream("in", key=str, value=str).select_key(not_a_pair)
        chosen.foreach(lambda key, value: seen.append((key, value)))

    run(build, [("k", "v")])
    assert seen == [({"amount": 1, "n": 2}, "v")]


@pytest.mark.parametrize(
    "function", [functools.partial(not_a_pair), functools.wraps(not_a_pair)(lambda *_: None)]
)
def test_the_line_is_that_of_the_function_inside_partial_or_a_decorator(function: Any) -> None:
    text = failing(lambda builder: builder.stream("in").map(function).to("out"))
    assert f"not_a_pair at {__file__}:{not_a_pair.__code__.co_firstlineno}" in text


class Mapper:
    """An object that can be called."""

    def __call__(self, key: str, value: str) -> Any:
        return value


@pytest.mark.parametrize("function", [Mapper(), max, dict.get], ids=["object", "max", "get"])
def test_functions_of_any_kind_are_named(function: Any) -> None:
    text = failing(lambda builder: builder.stream("in").map(function).to("out"))
    assert "passed to map, must return a tuple" in text or "dict.get" in text or "'get'" in text


class Returning(Processor[str, str, str, str]):
    """Returns a result instead of forwarding it."""

    def process(self, record: Record[str, str]) -> Any:
        """Not what a Processor does."""
        return record.with_value("result")


class Yielding(Processor[str, str, str, str]):
    """Yields a result instead of forwarding it: nothing of it would run at all."""

    def process(self, record: Record[str, str]) -> Any:
        """Not what a Processor does."""
        yield record


class Awaiting(Processor[str, str, str, str]):
    """Is a coroutine, which nobody awaits."""

    async def process(self, record: Record[str, str]) -> Any:  # type: ignore[override]
        """Not what a Processor does."""
        self.context.forward(record)


@pytest.mark.parametrize("processor", [Returning, Yielding, Awaiting])
@pytest.mark.parametrize("method", ["process", "process_values"])
def test_results_that_process_returns_are_refused(processor: Any, method: str) -> None:
    text = failing(lambda builder: getattr(builder.stream("in"), method)(processor).to("out"))
    assert f"{processor.__name__}.process at {__file__}:" in text
    assert "which is ignored" in text


@pytest.mark.parametrize("given", [("k", "v"), {"key": "k", "value": "v"}, "kv", None], ids=repr)
def test_forward_takes_records_only(given: Any) -> None:
    class Forwarding(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            """Forward something else."""
            self.context.forward(given)

    text = failing(lambda builder: builder.stream("in").process(Forwarding).to("out"))
    assert f"forward() was called with {given!r}" in text
