"""TopologyTestDriver: what tests of applications may rely on."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from broker.serde import LongSerde
from streams.dsl.builder import StreamsBuilder
from streams.errors import (
    ProcessingFailed,
    StoreError,
    StoreNotFound,
    StreamsConfigError,
    StreamsError,
)
from streams.processor import NodeContext, Process, PunctuationType
from streams.record import Headers, Record
from streams.state.store import StoreKind, StoreSpec
from streams.testing import TopologyTestDriver
from streams.topology import RepartitionTopic, SourceNode, Topology
from tests.streams.engine.topologies import Keyed, Mapped, Summed, node, sink, source, topology

SUMS = StoreSpec("sums", StoreKind.TIMESTAMPED_KEY_VALUE, value_serde=LongSerde())


def upper() -> Topology:
    return topology(
        [
            source("in"),
            node("upper", Mapped(lambda v: str(v).upper()), "in"),
            sink("s", "out", "upper"),
        ]
    )


def sums() -> Topology:
    """Numbers grouped by their last digit through a repartition topic, and added up."""
    return topology(
        [
            source("in", value_serde=LongSerde()),
            node("key", Keyed(lambda v: str(int(str(v)) % 10)), "in"),
            sink("to", "digits-repartition", "key", value_serde=LongSerde()),
        ],
        [
            source("digits-repartition", value_serde=LongSerde()),
            node("sum", Summed("sums"), "digits-repartition", stores=("sums",)),
            sink("out", "out", "sum", value_serde=LongSerde()),
        ],
        stores=[SUMS],
        repartition=[RepartitionTopic("digits-repartition")],
    )


def test_a_record_is_processed_when_it_is_piped() -> None:
    with TopologyTestDriver(upper()) as driver:
        words = driver.create_input_topic("in", key=str, value=str)
        results = driver.create_output_topic("out", key=str, value=object)
        words.pipe_input("k", '"a"', 7, headers=(("h", b"1"),))
        assert results.queue_size == 1
        assert results.read_record() == Record("k", "A", 7, (("h", b"1"),))
        assert results.is_empty


def test_times_are_made_by_the_input_topic() -> None:
    with TopologyTestDriver(upper(), start_ms=100) as driver:
        words = driver.create_input_topic("in", value=object, auto_advance=10, key=str)
        words.pipe_key_value_list([("a", "x"), ("b", "y")])
        words.advance_time(1000)
        words.pipe_value("z")
        words.pipe_key_value_list([("c", "v")], start_timestamp=5)
        results = driver.create_output_topic("out", key=str, value=object)
        assert [record.timestamp_ms for record in results.read_records_to_list()] == [
            100,
            110,
            1120,
            5,
        ]


def test_reading_more_than_there_is_says_how_many_there_were() -> None:
    with TopologyTestDriver(upper()) as driver:
        driver.create_input_topic("in", key=str, value=object).pipe_input("k", "v")
        results = driver.create_output_topic("out", key=str, value=object)
        results.read_value()
        with pytest.raises(StreamsError, match='topic "out" has no record left') as caught:
            results.read_record()
        assert "1 records were written" in caught.value.hint


def test_a_topic_that_nothing_reads_is_refused() -> None:
    with (
        TopologyTestDriver(upper()) as driver,
        pytest.raises(StreamsError, match='does not read topic "inn"') as caught,
    ):
        driver.create_input_topic("inn", key=str, value=object)
    assert caught.value.hint == "it reads in"


def test_a_closed_driver_says_so() -> None:
    driver = TopologyTestDriver(upper())
    words = driver.create_input_topic("in", key=str, value=object)
    driver.close()
    with pytest.raises(StreamsError, match="closed"):
        words.pipe_input("k", "v")


def test_commit_must_be_each_or_manual() -> None:
    with pytest.raises(StreamsConfigError, match="\"commit\" is 'never'"):
        TopologyTestDriver(upper(), commit="never")


def test_repartition_topics_are_drained_with_each_record() -> None:
    with TopologyTestDriver(sums()) as driver:
        numbers = driver.create_input_topic("in", value=int, key=str)
        numbers.pipe_key_value_list([("a", 3), ("b", 13), ("c", 4)])
        results = driver.create_output_topic("out", value=int, key=str)
        assert results.read_key_values_to_list() == [("3", 3), ("3", 16), ("4", 4)]
        assert driver.produced_topic_names == {
            "in",
            "out",
            "app-digits-repartition",
            "app-sums-changelog",
        }
        assert driver.get_state_store("sums").get("3") == (16, 0)


def test_each_partition_has_a_task_and_a_store_of_its_own() -> None:
    with TopologyTestDriver(sums(), partitions=3) as driver:
        assert [str(task) for task in driver.tasks] == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
        numbers = driver.create_input_topic("in", value=int, key=str)
        numbers.pipe_key_value_list([(str(n), n) for n in range(100)])
        found = [dict(store.all()) for store in driver.get_state_stores("sums")]
        assert sum(map(len, found)) == 10
        assert all(found)
        everything = {key: total for part in found for key, (total, _) in part.items()}
        assert everything == {str(d): sum(n for n in range(100) if n % 10 == d) for d in range(10)}
        with pytest.raises(StoreNotFound, match="has partitions 0, 1, 2"):
            driver.get_state_store("sums")


def test_partition_counts_may_differ_by_topic() -> None:
    counts = {"in": 2, "out": 5}
    with TopologyTestDriver(sums(), partitions=counts) as driver:
        numbers = driver.create_input_topic("in", value=int, key=str)
        numbers.pipe_input("a", 3, partition=1)
        result = driver.create_output_topic("out", value=int, key=str).read_logged()
        assert result.partition in range(5)
        with pytest.raises(Exception, match='topic "in" has 2 partitions'):
            numbers.pipe_input("a", 3, partition=2)


def test_an_unknown_store_is_named_with_those_that_there_are() -> None:
    with (
        TopologyTestDriver(sums()) as driver,
        pytest.raises(StoreNotFound, match='no store "sum"') as caught,
    ):
        driver.get_state_store("sum")
    assert caught.value.hint == "its stores are sums"


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_restart_keeps_stores_and_times(tmp_path: Path, on_disk: bool) -> None:
    directory = tmp_path if on_disk else None
    with TopologyTestDriver(sums(), partitions=2, state_directory=directory) as driver:
        numbers = driver.create_input_topic("in", value=int, key=str)
        numbers.pipe_key_value_list([("a", 3), ("b", 14)], start_timestamp=50, advance=1)
        before = {task_id: task.stream_time_ms for task_id, task in driver.tasks.items()}
        driver.restart()
        after = {task_id: task.stream_time_ms for task_id, task in driver.tasks.items()}
        assert after == before
        assert max(after.values()) == 51
        numbers.pipe_input("c", 23, 60)
        results = driver.create_output_topic("out", value=int, key=str)
        assert results.read_key_values_to_list() == [("3", 3), ("4", 14), ("3", 26)]


def test_what_was_not_committed_is_read_again_after_a_restart() -> None:
    plain = topology(
        [
            source("in", value_serde=LongSerde()),
            node("sum", Summed("sums"), "in", stores=("sums",)),
        ],
        stores=[SUMS],
    )
    with TopologyTestDriver(plain, commit="manual") as driver:
        numbers = driver.create_input_topic("in", value=int, key=str)
        numbers.pipe_input("a", 3)
        driver.commit()
        numbers.pipe_input("a", 13)
        assert driver.get_state_store("sums").get("a") == (16, 0)
        driver.restart()
        assert driver.get_state_store("sums").get("a") == (16, 0)
        driver.commit()
        changelog = driver.create_output_topic("app-sums-changelog", value=int, key=str)
        assert changelog.read_key_values_to_list() == [("a", 3), ("a", 16)]


def test_a_store_is_given_as_the_kind_that_it_is() -> None:
    with TopologyTestDriver(sums()) as driver:
        driver.create_input_topic("in", key=str, value=int).pipe_input("a", 3, 7)
        assert driver.get_timestamped_key_value_store("sums").get("3") == (3, 7)
        with pytest.raises(StoreError, match='"sums" is a timestamped_key_value store'):
            driver.get_window_store("sums")


def test_the_wall_clock_moves_only_when_told() -> None:
    ticks: list[int] = []

    def opened(context: NodeContext) -> Process:
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, ticks.append)
        return context.forward

    with TopologyTestDriver(topology([source("in"), node("p", opened, "in")])) as driver:
        driver.create_input_topic("in", key=str, value=object).pipe_input("k", 1, 10**6)
        assert ticks == []
        driver.advance_wall_clock_time(timedelta(milliseconds=25))
        assert ticks == [25]


def test_records_of_several_topics_can_be_queued_before_any_is_processed() -> None:
    tree = topology([source("a"), source("b"), sink("s", "out", "a", "b")])
    with TopologyTestDriver(tree) as driver:
        a = driver.create_input_topic("a", key=str, value=object)
        b = driver.create_input_topic("b", key=str, value=object)
        driver.pipe_batch([a.row("a", 1, 1), a.row("a", 3, 3), b.row("b", 2, 2)])
        output = driver.create_output_topic("out", key=str, value=object)
        assert output.read_values_to_list() == [1, 2, 3]


def test_a_record_that_failed_is_not_tried_again() -> None:
    tree = topology([source("in"), node("p", Mapped(lambda v: 1 // int(str(v))), "in")])
    with TopologyTestDriver(tree) as driver:
        numbers = driver.create_input_topic("in", key=str, value=object)
        with pytest.raises(ProcessingFailed):
            numbers.pipe_input("k", 0)
        numbers.pipe_input("k", 1)
        assert driver.metric("process-total", node="in") == 2


def test_a_global_table_is_filled_from_all_partitions_and_again_after_a_restart() -> None:
    builder = StreamsBuilder()
    names = builder.global_table("names", key=str, value=str, store="names-store")
    orders = builder.stream("orders", key=str, value=str)
    orders.join(
        names, lambda order, name: f"{name}: {order}", key_mapper=lambda key, value: key
    ).to("out", value=str)
    with TopologyTestDriver(builder.build(), partitions=3) as driver:
        people = driver.create_input_topic("names", key=str, value=str)
        people.pipe_key_value_list([(str(n), f"name {n}") for n in range(6)])
        driver.restart()
        bought = driver.create_input_topic("orders", key=str, value=str)
        bought.pipe_key_value_list([(str(n), "tea") for n in range(7)])
        output = driver.create_output_topic("out", key=str, value=str)
        assert output.read_values_to_list() == [f"name {n}: tea" for n in range(6)]
        assert driver.get_timestamped_key_value_store("names-store").get("5") == ("name 5", 0)


def test_topics_of_a_pattern_join_when_they_are_first_used() -> None:
    tree = topology([SourceNode("s", pattern=re.compile("logs-.+")), sink("out", "out", "s")])
    with TopologyTestDriver(tree, partitions={"logs-a": 1, "logs-b": 3}) as driver:
        driver.create_input_topic("logs-a", key=str, value=object).pipe_input("k", 1)
        assert len(driver.tasks) == 1
        driver.create_input_topic("logs-b", key=str, value=object).pipe_input("k", 2, partition=2)
        assert len(driver.tasks) == 3
        output = driver.create_output_topic("out", key=str, value=object)
        assert output.read_values_to_list() == [1, 2]
        with pytest.raises(StreamsError, match='does not read topic "other"'):
            driver.create_input_topic("other", key=str, value=object)


def test_what_is_written_to_a_topic_that_is_read_comes_back() -> None:
    def counted_down(context: NodeContext) -> Process:
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if isinstance(value, int) and value > 0:
                forward(key, value - 1, timestamp_ms, headers)

        return process

    tree = topology([source("loop"), node("p", counted_down, "loop"), sink("s", "loop", "p")])
    with TopologyTestDriver(tree) as driver:
        driver.create_input_topic("loop", key=str, value=object).pipe_input("k", 3)
        output = driver.create_output_topic("loop", key=str, value=object)
        assert output.read_values_to_list() == [3, 2, 1, 0]
