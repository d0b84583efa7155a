"""A batch that cannot be read: the deserialization handler decides, nobody keeps silent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, consumer
from broker.model import TopicPartition
from streams import StreamsBuilder
from streams.app import AppState, SharedRuntime, StreamsApp
from streams.handlers import Failure, dead_letter, log_and_continue
from streams.topology import Topology
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    Reader,
    count_topology,
    look_up_topology,
    make_topics,
    source_table_topology,
    upper_topology,
    write,
)
from tests.support.peer import wait_until
from tests.support.poison import write_poison_batch

pytestmark = pytest.mark.slow

crcs = pytest.mark.parametrize("valid_crc", [True, False], ids=["valid CRC", "wrong CRC"])


def app_of(topology: Topology, broker: Any, tmp_path: Path, **settings: Any) -> StreamsApp:
    settings = {"state_dir": tmp_path / "state", "commit_interval_ms": 50, **settings}
    return StreamsApp(topology, application_id="app", broker=broker, **settings)


def committed(broker: Broker, topic: str = "in") -> int:
    with admin(broker) as administration:
        found = administration.list_group_offsets("app").all()
    tp = TopicPartition(topic, 0)
    return found[tp].offset if tp in found else -1


def dropped(app: StreamsApp) -> int:
    tasks = app.runners[0].tasks
    assert tasks is not None
    return sum(metrics.total("dropped-records-total") for metrics in tasks.metrics.values())


@crcs
def test_it_fails_the_application_which_says_where_it_is(
    broker: Broker, tmp_path: Path, valid_crc: bool
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    write(broker, "in", [("a", "x")])
    write_poison_batch(broker, "in", 3, valid_crc=valid_crc)
    write(broker, "in", [("b", "y")])
    with app_of(upper_topology(), broker, tmp_path) as app:
        assert app.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
        text = str(app.error)
    assert "cannot read offsets 1 to 3" in text
    assert 'topic "in" partition 0 offset 1' in text
    assert "deserialization_exception_handler" in text
    assert committed(broker) <= 1


@crcs
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_who_goes_on_skips_all_of_it_and_counts_it(
    broker: Broker, tmp_path: Path, valid_crc: bool, guarantee: str, shared: bool
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    failures: list[Failure] = []

    def handler(failure: Failure) -> Any:
        failures.append(failure)
        return log_and_continue(failure)

    write(broker, "in", [("a", "x")])
    write_poison_batch(broker, "in", 3, valid_crc=valid_crc)
    write(broker, "in", [("b", "y")])
    write_poison_batch(broker, "in", 2, valid_crc=valid_crc)
    runtime = SharedRuntime(broker) if shared else None
    settings = {"deserialization_exception_handler": handler, "processing_guarantee": guarantee}
    with app_of(upper_topology(), runtime or broker, tmp_path, **settings) as app:
        reader = Reader(broker, "out")
        assert reader.until(2) == [("a", "X"), ("b", "Y")]
        wait_until(lambda: committed(broker) >= 7, "the batch at the end is behind it, too")
        write(broker, "in", [("c", "z")])
        assert reader.until(3)[-1] == ("c", "Z")
        assert dropped(app) == 2
        reader.close()
    assert [each.position for each in failures] == [("in", 0, 1), ("in", 0, 5)]
    if runtime is not None:
        runtime.close()


def test_a_dead_letter_says_where_it_was(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1, "dead": 1})
    write_poison_batch(broker, "in", 3)
    write(broker, "in", [("b", "y")])
    handler = dead_letter("dead")
    with app_of(upper_topology(), broker, tmp_path, deserialization_exception_handler=handler):
        reader = Reader(broker, "out")
        assert reader.until(1) == [("b", "Y")]
        reader.close()
    with consumer(broker, auto_offset_reset="earliest") as letters:
        letters.assign([TopicPartition("dead", 0)])
        [letter] = letters.poll(DEADLINE_MS)
    headers = {name: value.decode() for name, value in letter.headers if value is not None}
    assert headers["__streams.errors.topic"] == "in"
    assert headers["__streams.errors.offset"] == "0"
    assert "cannot read offsets 0 to 2" in headers["__streams.errors.message"]
    assert (letter.key, letter.value) == (None, None)


@crcs
def test_what_was_skipped_is_skipped_by_a_restore_from_the_source_topic(
    broker: Broker, tmp_path: Path, valid_crc: bool
) -> None:
    make_topics(broker, **{"in": 1})
    write(broker, "in", [("a", "x")])
    write_poison_batch(broker, "in", 3, valid_crc=valid_crc)
    write(broker, "in", [("b", "y")])
    settings = {"deserialization_exception_handler": log_and_continue}
    with app_of(source_table_topology(), broker, tmp_path / "1", **settings):
        wait_until(lambda: committed(broker) == 5, "all is read")
    with app_of(source_table_topology(), broker, tmp_path / "2", **settings) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        table = app.store("table")
        assert (table.get("a"), table.get("b")) == ("x", "y")


@crcs
def test_a_changelog_that_cannot_be_read_is_never_skipped(
    broker: Broker, tmp_path: Path, valid_crc: bool
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    settings = {"deserialization_exception_handler": log_and_continue}
    with app_of(count_topology(), broker, tmp_path / "1", **settings):
        write(broker, "in", [("a", "x")])
        wait_until(lambda: committed(broker) == 1, "it is counted")
    write_poison_batch(broker, "app-counts-changelog", 2, valid_crc=valid_crc)
    with app_of(count_topology(), broker, tmp_path / "2", **settings) as app:
        assert app.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
        text = str(app.error)
    assert 'the changelog of store "counts" cannot be read' in text
    assert 'topic "app-counts-changelog" partition 0' in text


@crcs
def test_a_global_store_is_loaded_without_it_or_not_at_all(
    broker: Broker, tmp_path: Path, valid_crc: bool
) -> None:
    make_topics(broker, **{"in": 1, "out": 1, "names": 1})
    write(broker, "names", [("1", "one")])
    write_poison_batch(broker, "names", 3, valid_crc=valid_crc)
    write(broker, "names", [("2", "two")])
    write(broker, "in", [("a", "1"), ("b", "2")])
    with pytest.raises(Exception, match="cannot read offsets 1 to 3"):
        app_of(look_up_topology(), broker, tmp_path / "1").start()
    settings = {"deserialization_exception_handler": log_and_continue}
    with app_of(look_up_topology(), broker, tmp_path / "2", **settings):
        reader = Reader(broker, "out")
        assert reader.until(2) == [("a", "one"), ("b", "two")]
        reader.close()


def test_batches_are_told_in_their_place(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    order: list[str] = []

    def handler(failure: Failure) -> Any:
        order.append("skipped")
        return log_and_continue(failure)

    for number in range(3):
        write(broker, "in", [(str(number), "x")])
        write_poison_batch(broker, "in", 2, valid_crc=number != 1)
    app = app_of(
        noting_topology(order.append), broker, tmp_path, deserialization_exception_handler=handler
    )
    with app:
        wait_until(lambda: len(order) == 6, "all is read")
    assert order == ["0", "skipped", "1", "skipped", "2", "skipped"]


def noting_topology(note: Callable[[str], None]) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).foreach(lambda key, value: note(key))
    return builder.build()
