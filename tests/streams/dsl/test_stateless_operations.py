"""Operations on one record at a time."""

from collections.abc import Callable

import pytest

from streams import Stream, StreamsBuilder
from tests.streams.dsl.running import Row, run

Words = Stream[str, str]
Operation = Callable[[Words], Stream[str, str]]
INPUT = [("a", "one"), ("b", "two words"), ("c", "three")]

OPERATIONS: dict[str, tuple[Operation, list[Row]]] = {
    "filter": (
        lambda s: s.filter(lambda key, value: "o" in value),
        [*zip("ab", ("one", "two words"), (0, 1), strict=True)],
    ),
    "filter_not": (lambda s: s.filter_not(lambda key, value: "o" in value), [("c", "three", 2)]),
    "map": (
        lambda s: s.map(lambda key, value: (value[0], key)),
        [("o", "a", 0), ("t", "b", 1), ("t", "c", 2)],
    ),
    "map_values": (
        lambda s: s.map_values(str.upper),
        [("a", "ONE", 0), ("b", "TWO WORDS", 1), ("c", "THREE", 2)],
    ),
    "map_values with key": (
        lambda s: s.map_values(lambda key, value: key + value[0], with_key=True),
        [("a", "ao", 0), ("b", "bt", 1), ("c", "ct", 2)],
    ),
    "flat_map": (
        lambda s: s.flat_map(lambda key, value: [(word, key) for word in value.split()]),
        [("one", "a", 0), ("two", "b", 1), ("words", "b", 1), ("three", "c", 2)],
    ),
    "flat_map_values": (
        lambda s: s.flat_map_values(str.split),
        [("a", "one", 0), ("b", "two", 1), ("b", "words", 1), ("c", "three", 2)],
    ),
    "flat_map_values with key": (
        lambda s: s.flat_map_values(
            lambda key, value: [key] * (value.count(" ") * 2), with_key=True
        ),
        [("b", "b", 1), ("b", "b", 1)],
    ),
    "select_key": (
        lambda s: s.select_key(lambda key, value: value[:2]),
        [("on", "one", 0), ("tw", "two words", 1), ("th", "three", 2)],
    ),
    "merge with itself": (
        lambda s: s.filter(lambda key, value: key == "a").merge(
            s.filter(lambda key, value: key != "b")
        ),
        [("a", "one", 0), ("a", "one", 0), ("c", "three", 2)],
    ),
    "repartition": (
        lambda s: s.repartition(name="again"),
        [("a", "one", 0), ("b", "two words", 1), ("c", "three", 2)],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_these_records(name: str) -> None:
    operation, expected = OPERATIONS[name]

    def build(builder: StreamsBuilder) -> None:
        operation(builder.stream("in", key=str, value=str)).to("out", key=str, value=str)

    assert run(build, INPUT) == expected


def test_peek_sees_records_before_those_below() -> None:
    seen: list[str] = []

    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in", key=str, value=str)
        words.peek(lambda key, value: seen.append("peek " + key)).foreach(
            lambda key, value: seen.append("foreach " + key)
        )

    run(build, INPUT[:2])
    assert seen == ["peek a", "foreach a", "peek b", "foreach b"]


def test_print_writes_label_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in", key=str, value=str)
        words.print_(label="words")
        words.print_(mapper=lambda key, value: value.upper())

    run(build, INPUT[:1])
    assert capsys.readouterr().out == "[words]: a, one\n[KSTREAM-SOURCE-0000000000]: ONE\n"


def test_a_record_goes_to_the_first_branch_that_takes_it() -> None:
    def build(builder: StreamsBuilder) -> None:
        split = builder.stream("in", key=str, value=str).split(name="x-")
        parts = (
            split.branch(lambda key, value: "o" in value, name="o")
            .branch(lambda key, value: "t" in value)
            .default_branch(name="rest")
        )
        assert list(parts) == ["x-o", "x-2", "x-rest"]
        for name, part in parts.items():
            part.map_values(f"{name} {{}}".format).to("out", value=str)

    expected = [("a", "x-o one", 0), ("b", "x-o two words", 1), ("c", "x-2 three", 2)]
    assert run(build, [*INPUT, ("d", "x")]) == [*expected, ("d", "x-rest x", 3)]


def test_records_that_no_branch_takes_are_dropped_without_a_default() -> None:
    def build(builder: StreamsBuilder) -> None:
        split = builder.stream("in", key=str, value=str).split()
        parts = split.branch(lambda key, value: key == "b").no_default_branch()
        (part,) = parts.values()
        part.to("out")

    assert run(build, INPUT) == [("b", "two words", 1)]


def test_a_branch_may_be_chained_at_once() -> None:
    def build(builder: StreamsBuilder) -> None:
        split = builder.stream("in", key=str, value=str).split(name="s-")
        parts = split.branch(
            lambda key, value: key == "a", name="a", chain=lambda s: s.map_values(str.upper)
        ).default_branch(name="gone", chain=lambda s: s.to("elsewhere"))
        assert list(parts) == ["s-a"]
        parts["s-a"].to("out", value=str)

    assert run(build, INPUT) == [("a", "ONE", 0)]


def test_a_topic_may_be_chosen_for_each_record() -> None:
    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in", key=str, value=str)
        words.to(lambda key, value, *rest: "out" if key == "c" else "other")

    assert run(build, INPUT) == [("c", "three", 2)]


def test_a_repartition_drops_records_without_a_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).repartition().to("out")

    assert run(build, [(None, "x"), ("a", "y")]) == [("a", "y", 1)]
