"""Versioned tables: records by their time, and changes that say whether they are the newest."""

from typing import Any

from streams import StreamsBuilder
from streams.dsl.logical import ProcessStep
from streams.processor import NodeContext, Process
from streams.record import Change, Headers
from streams.testing import TopologyTestDriver

HOUR_MS = 3_600_000


class Collect:
    """An operator that keeps the changes it gets."""

    def __init__(self) -> None:
        """None yet."""
        self.changes: list[Change] = []

    def open(self, context: NodeContext) -> Process:
        """Append each."""

        def process(key: object, value: Any, timestamp_ms: int, headers: Headers) -> None:
            self.changes.append(value)

        return process


def changes(inputs: list[tuple[str | None, int]], *, history_ms: int = HOUR_MS) -> list[Change]:
    """The changes of one key of a versioned table that sends old values."""
    builder = StreamsBuilder()
    users = builder.table("in", key=str, value=str, store="users", versioned_history=history_ms)
    users.node.state.need_old_values()
    collect = Collect()
    step = ProcessStep(name="collect", parents=(users.node.step,), make=lambda: collect)
    users.node.graph.add(step)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, timestamp_ms in inputs:
            topic.pipe_input("k", value, timestamp_ms)
    return collect.changes


def test_a_change_says_whether_it_is_the_newest() -> None:
    assert changes([("a", 10), ("c", 30), ("b", 20), ("d", 40)]) == [
        ("a", None, True),
        ("c", "a", True),
        ("b", "c", False),
        ("d", "c", True),
    ]


def test_a_deletion_is_a_version_too() -> None:
    assert changes([("a", 10), (None, 30), ("b", 20)]) == [
        ("a", None, True),
        (None, "a", True),
        ("b", None, False),
    ]


def test_a_record_older_than_the_history_is_not_told() -> None:
    assert changes([("a", 100_000), ("late", 10)], history_ms=1000) == [("a", None, True)]


def test_a_filter_of_a_versioned_table_tells_every_change() -> None:
    """A reader by time must see deletions of versions that it may have seen."""
    builder = StreamsBuilder()
    users = builder.table("in", key=str, value=str, store="users", versioned_history=HOUR_MS)
    users.filter(lambda key, value: value == "x").to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("k", "a", 1)
        topic.pipe_input("k", "b", 2)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values_to_list() == [None, None]
