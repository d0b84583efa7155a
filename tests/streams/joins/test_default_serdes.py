"""Joins whose streams and tables say nothing of their types: the application's serdes serve."""

from collections.abc import Callable
from typing import Any

import pytest

from streams.dsl.builder import StreamsBuilder
from streams.testing import TopologyTestDriver
from streams.windows import join_within


def both(left: Any, right: Any) -> list[Any]:
    return [left, right]


def streams(builder: StreamsBuilder) -> Any:
    return builder.stream("left").outer_join(builder.stream("right"), both, join_within(10))


def graceful(builder: StreamsBuilder) -> Any:
    versions = builder.table("right", store="versions", versioned_history=1000)
    return builder.stream("left").left_join(versions, both, grace=10)


def tables(builder: StreamsBuilder) -> Any:
    return builder.table("left").outer_join(builder.table("right"), both).to_stream()


def foreign_keys(builder: StreamsBuilder) -> Any:
    left, right = builder.table("left"), builder.table("right")
    return left.left_join(right, both, foreign_key=lambda value: value["of"]).to_stream()


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (streams, [("a", [{"of": "b"}, None]), ("b", [None, {"n": 1}])]),
        (graceful, [("a", [{"of": "b"}, None])]),
        (
            tables,
            [
                ("a", [{"of": "b"}, None]),
                ("b", [None, {"n": 1}]),
                ("tick", [{"of": None}, None]),
            ],
        ),
        (
            foreign_keys,
            [
                ("a", [{"of": "b"}, None]),
                ("a", [{"of": "b"}, {"n": 1}]),
                ("tick", [{"of": None}, None]),
            ],
        ),
    ],
)
def test_serdes_left_out_are_those_of_the_application(
    wire: Callable[[StreamsBuilder], Any], expected: list[tuple[str, Any]]
) -> None:
    builder = StreamsBuilder()
    wire(builder).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        left: Any = driver.create_input_topic("left")
        right: Any = driver.create_input_topic("right")
        left.pipe_input("a", {"of": "b"}, 1)
        right.pipe_input("b", {"n": 1}, 2)
        left.pipe_input("tick", {"of": None}, 100)
        out: Any = driver.create_output_topic("out")
        assert out.read_key_values_to_list() == expected


def test_a_table_may_refer_to_itself() -> None:
    builder = StreamsBuilder()
    people = builder.table("people")
    named = people.join(people, both, foreign_key=lambda person: person.get("boss"))
    named.to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic: Any = driver.create_input_topic("people")
        out: Any = driver.create_output_topic("out")
        topic.pipe_input("ada", {"pay": 2}, 1)
        topic.pipe_input("bob", {"boss": "ada"}, 2)
        assert out.read_key_values_to_list() == [("bob", [{"boss": "ada"}, {"pay": 2}])]
        topic.pipe_input("ada", {"pay": 3}, 3)
        assert out.read_key_values_to_list() == [("bob", [{"boss": "ada"}, {"pay": 3}])]
