"""StreamsApp on an embedded broker."""

import gc
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin
from broker.client.administration.values import ConfigResource, NewTopic
from broker.errors import ClientError
from broker.model import TopicPartition
from broker.serde import IntegerSerde, StringSerde
from streams import StreamsBuilder
from streams.app import AppState, StreamsApp
from streams.errors import DeserializationFailed, StoreNotFound, StreamsError, TopologyError
from streams.runtime.clients import log_bounds
from streams.topology import SinkNode, SourceNode, SubTopology, Topology
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    Reader,
    by_key,
    count_topology,
    expected_counts,
    look_up_topology,
    make_topics,
    repartitioned_count_topology,
    sink_to,
    source_table_topology,
    tick_topology,
    upper_topology,
    write,
)
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow


QUICK = {"heartbeat_interval_ms": 100}


def app_of(topology: Topology, broker: Broker, tmp_path: Path, **settings: Any) -> StreamsApp:
    settings = {"state_dir": tmp_path / "state", "commit_interval_ms": 50, **QUICK, **settings}
    return StreamsApp(topology, application_id="app", broker=broker, **settings)


def test_records_go_through_a_topology_without_state(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    write(broker, "in", [("a", "x"), ("b", "y")])
    with app_of(upper_topology(), broker, tmp_path) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        reader = Reader(broker, "out")
        assert sorted(reader.until(2)) == [("a", "X"), ("b", "Y")]
        write(broker, "in", [("c", "z")])
        assert ("c", "Z") in reader.until(3)
        reader.close()
    assert app.state is AppState.NOT_RUNNING


class LossySerde(StringSerde):
    """Loses the last value when it decodes many at once."""

    def encoder(self, topic: str) -> Callable[[str], bytes]:
        return str.encode

    def decoder(self, topic: str) -> Callable[[bytes], str]:
        return bytes.decode

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[str | None]]:
        return lambda data: [each.decode() for each in data[:-1]]


def test_a_serde_that_returns_too_few_values_loses_no_record(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    rows = [(f"k{number}", f"v{number}") for number in range(50)]
    write(broker, "in", rows)
    builder = StreamsBuilder()
    source = builder.stream("in", key=StringSerde(), value=LossySerde())
    source.map_values(lambda value: value).to("out", value=StringSerde())
    with app_of(builder.build(), broker, tmp_path) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        reader = Reader(broker, "out")
        assert reader.until(50) == rows
        reader.close()


def test_results_do_not_wait_for_a_commit_that_is_far_away(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    hour_ms = 3_600_000
    with app_of(upper_topology(), broker, tmp_path, commit_interval_ms=hour_ms) as app:
        reader = Reader(broker, "out")
        for count, key in enumerate("abc", start=1):
            write(broker, "in", [(key, "x")])
            reader.until(count)
        assert all(runner.metrics.commits_total == 0 for runner in app.runners)
        reader.close()


def test_counts_go_on_after_a_clean_stop_without_replay(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    rows = [(key, "x") for key in "abcab" * 20]
    write(broker, "in", rows[:60])
    with app_of(count_topology(), broker, tmp_path):
        reader = Reader(broker, "out")
        reader.until(60)
    write(broker, "in", rows[60:])
    with app_of(count_topology(), broker, tmp_path) as app:
        assert by_key(reader.until(100)) == expected_counts(rows)
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        restored = sum(runner.metrics.restored_records_total for runner in app.runners)
    reader.close()
    assert restored == 0


def test_lost_stores_are_restored_from_the_changelog(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    rows = [(key, "x") for key in "abcab" * 20]
    write(broker, "in", rows[:60])
    with app_of(count_topology(), broker, tmp_path) as app:
        reader = Reader(broker, "out")
        reader.until(60)
    app.clean_up()
    write(broker, "in", rows[60:])
    with app_of(count_topology(), broker, tmp_path) as app:
        assert by_key(reader.until(100)) == expected_counts(rows)
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        restored = sum(runner.metrics.restored_records_total for runner in app.runners)
    reader.close()
    assert restored > 0


def test_a_repartition_topic_is_made_read_and_purged(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 3, "out": 1})
    rows = [(key, "x") for key in "abcdefg" * 10]
    write(broker, "in", rows)
    settings = {"repartition_purge_interval_ms": 0}
    with app_of(repartitioned_count_topology(), broker, tmp_path, **settings) as app:
        reader = Reader(broker, "out")
        assert by_key(reader.until(70)) == expected_counts(rows)
        reader.close()
    topic = "app-again-repartition"
    with admin(broker) as administration:
        assert administration.list_topics()[topic].partitions == 3
        partitions = [TopicPartition(topic, number) for number in range(3)]
        bounds = log_bounds(administration, partitions)
    assert all(first == end for first, end in bounds.values())
    assert app.state is AppState.NOT_RUNNING


def test_a_paused_application_processes_nothing_until_it_is_resumed(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    with app_of(upper_topology(), broker, tmp_path) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        reader = Reader(broker, "out")
        app.pause()
        write(broker, "in", [("a", "x")])
        polls = app.runners[0].metrics.polls_total
        wait_until(lambda: app.runners[0].metrics.polls_total > polls + 3, "more polls")
        assert app.paused
        assert app.runners[0].metrics.records_processed_total == 0
        app.resume()
        assert reader.until(1) == [("a", "X")]
        reader.close()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_paused_application_commits_and_fetches_nothing(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    settings = {"processing_guarantee": guarantee, "commit_interval_ms": 3_600_000}
    with app_of(upper_topology(), broker, tmp_path, **settings) as app:
        runner = app.runners[0]
        reader = Reader(broker, "out")
        write(broker, "in", [(key, "x") for key in "abcd"])
        wait_until(lambda: runner.metrics.records_processed_total == 4, "all are processed")
        app.pause()
        assert len(reader.until(4)) == 4
        wait_until(lambda: runner.metrics.commits_total == 1, "a commit, though none is due")
        consumer = runner.consumer
        assert consumer is not None
        assert consumer.paused() == consumer.assignment() != set()
        consumed = runner.metrics.records_consumed_total
        for _ in range(20):
            write(broker, "in", [(key, "y" * 10_000) for key in "abcd" * 5])
        polls = runner.metrics.polls_total
        wait_until(lambda: runner.metrics.polls_total > polls + 3, "more polls")
        assert runner.metrics.records_consumed_total == consumed
        assert runner.metrics.commits_total == 1
        assert app.state is AppState.RUNNING
        app.resume()
        wait_until(lambda: runner.metrics.records_processed_total == 404, "all are processed")
        app.pause()
        assert len(reader.until(404)) == 404
        app.resume()
        reader.close()


def test_a_paused_application_does_not_spin_when_a_punctuator_is_due(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    other = StreamsApp(
        tick_topology(1), application_id="other", broker=broker, state_dir=tmp_path / "other"
    )
    with app_of(tick_topology(1), broker, tmp_path, poll_ms=1_000) as app, other:
        ticks, clock = app.runners[0].metrics, other.runners[0].metrics
        wait_until(lambda: ticks.punctuations_total > 2 < clock.punctuations_total, "both tick")
        app.pause()
        consumer = app.runners[0].consumer
        assert consumer is not None
        wait_until(lambda: consumer.paused() == consumer.assignment() != set(), "it rests")
        ticked, polls, now = ticks.punctuations_total, ticks.polls_total, clock.punctuations_total
        began = time.monotonic()
        wait_until(lambda: clock.punctuations_total > now + 100, "time goes by")
        assert ticks.polls_total - polls <= time.monotonic() - began + 3, "a poll waits for 1 s"
        assert ticks.punctuations_total == ticked
        app.resume()
        wait_until(lambda: ticks.punctuations_total > ticked, "it ticks again")


def test_states_are_told_in_order(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    seen: list[AppState] = []
    app = app_of(upper_topology(), broker, tmp_path)
    app.on_state_change(lambda new, old: seen.append(new))
    with app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
    assert seen == [
        AppState.REBALANCING,
        AppState.RUNNING,
        AppState.PENDING_SHUTDOWN,
        AppState.NOT_RUNNING,
    ]


def test_a_missing_source_topic_is_named(broker: Broker, tmp_path: Path) -> None:
    app = app_of(upper_topology("orders"), broker, tmp_path)
    with pytest.raises(TopologyError, match='source topics do not exist: "orders"'):
        app.start()
    assert app.state is AppState.ERROR


def test_a_broker_that_was_never_started_is_said_at_once(tmp_path: Path) -> None:
    app = app_of(upper_topology(), Broker(data_directory=str(tmp_path / "data")), tmp_path)
    with pytest.raises(ClientError, match="never started"):
        app.start()


def test_stores_can_be_read_while_the_application_runs(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 4, "out": 1})
    rows = [(key, "x") for key in "abcab"]
    write(broker, "in", rows)
    settings = {"num_stream_threads": 2, "application_server": "here:1"}
    with app_of(count_topology(), broker, tmp_path, **settings) as app:
        reader = Reader(broker, "out")
        reader.until(5)
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        assert dict(app.store("counts").all()) == {"a": "2", "b": "2", "c": "1"}
        (host,) = app.metadata("counts")
        assert host.host == "here:1"
        assert host.active == {"counts": frozenset({0, 1, 2, 3})}
        found, partition = app.metadata_for_key("counts", "a")
        assert found == host
        assert app.store("counts", partition=partition).get("a") == "2"
        assert {lag.partition for lag in app.lags()} == {0, 1, 2, 3}
        assert 'millstream_streams_state{application="app",state="RUNNING"} 1' in app.metrics_text()
        with pytest.raises(StoreNotFound, match='no store "others"'):
            app.store("others")
        reader.close()


def test_global_stores_are_loaded_before_the_first_record_and_followed(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "names": 3, "out": 1})
    write(broker, "names", [(str(number), f"name {number}") for number in range(50)])
    write(broker, "in", [("a", "7"), ("b", "49")])
    with app_of(look_up_topology(), broker, tmp_path) as app:
        reader = Reader(broker, "out")
        assert reader.until(2) == [("a", "name 7"), ("b", "name 49")]
        write(broker, "names", [("7", "another")])
        wait_until(lambda: bool(app.store("names").get("7") == "another"), "the new name")
        write(broker, "in", [("c", "7")])
        assert reader.until(3)[-1] == ("c", "another")
        reader.close()


def test_punctuators_of_the_wall_clock_run_without_records(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    with app_of(tick_topology(20), broker, tmp_path):
        reader = Reader(broker, "out")
        assert reader.until(3)[:3] == [("tick", "tock")] * 3
        reader.close()


def test_a_table_is_restored_from_its_source_topic_as_far_as_it_was_read(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2})
    write(broker, "in", [(key, "old") for key in "abcd"])
    with app_of(source_table_topology(), broker, tmp_path) as app:
        wait_until(lambda: committed_total(broker, "app") == 4, "the commit")
    app.clean_up()
    write(broker, "in", [(key, "new") for key in "ab"])
    with app_of(source_table_topology(), broker, tmp_path) as app:
        wait_until(lambda: committed_total(broker, "app") == 6, "the second commit")
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        assert app.runners[0].metrics.restored_records_total == 4
        assert dict(app.store("table").all()) == {"a": "new", "b": "new", "c": "old", "d": "old"}
    with admin(broker) as administration:
        assert set(administration.list_topics()) == {"in"}


def committed_total(broker: Broker, group: str) -> int:
    with admin(broker) as administration:
        found = administration.list_group_offsets(group).values
    return sum(position.offset for position in found.values())


def test_an_error_of_the_users_code_ends_the_application_and_is_raised(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    nodes = (
        SourceNode("source", ("in",), key_serde=StringSerde(), value_serde=IntegerSerde()),
        SinkNode("sink", "out", ("source",), key_serde=StringSerde(), value_serde=IntegerSerde()),
    )
    app = app_of(Topology((SubTopology(0, nodes, ()),), {}), broker, tmp_path)
    with app:
        write(broker, "in", [("a", "no integer")])
        with pytest.raises(DeserializationFailed):
            app.wait(DEADLINE_MS)
    assert app.state is AppState.ERROR


def test_automatic_garbage_collection_rests_while_runners_live(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    assert gc.isenabled()
    with app_of(upper_topology(), broker, tmp_path, num_stream_threads=2) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        assert not gc.isenabled()
    assert gc.isenabled()


FRESH: dict[str, Any] = {"consumer.metadata_max_age_ms": 100}


def test_a_pattern_reads_topics_that_come_later(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"log-a": 1, "out": 1})
    source = SourceNode(
        "any", pattern=re.compile("log-.*"), key_serde=StringSerde(), value_serde=StringSerde()
    )
    nodes = (source, sink_to("out", "any"))
    topology = Topology((SubTopology(0, nodes, ()),), {})
    with app_of(topology, broker, tmp_path, **FRESH):
        reader = Reader(broker, "out")
        write(broker, "log-a", [("a", "1")])
        assert reader.until(1) == [("a", "1")]
        make_topics(broker, **{"log-b": 2})
        write(broker, "log-b", [("b", "2"), ("c", "3")])
        write(broker, "log-a", [("a", "4")])
        assert sorted(reader.until(4)) == [("a", "1"), ("a", "4"), ("b", "2"), ("c", "3")]
        reader.close()


def test_partitions_that_are_added_are_read(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    with app_of(upper_topology(), broker, tmp_path, **FRESH) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        with admin(broker) as administration:
            administration.create_partitions({"in": 3}).all()
        write(broker, "in", [("a", "x")], partition=2)
        reader = Reader(broker, "out")
        assert reader.until(1) == [("a", "X")]
        reader.close()


def test_new_partitions_below_a_store_are_refused_with_a_reason(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    with app_of(count_topology(), broker, tmp_path, **FRESH) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        with admin(broker) as administration:
            administration.create_partitions({"in": 3}).all()
        with pytest.raises(StreamsError, match="has 1 partitions, not 3"):
            app.wait(DEADLINE_MS)


def test_stores_ahead_of_their_changelog_are_made_anew(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    rows = [("a", "x")] * 10
    write(broker, "in", rows)
    with app_of(count_topology(), broker, tmp_path):
        reader = Reader(broker, "out")
        reader.until(10)
    with admin(broker) as administration:
        administration.delete_topics(["app-counts-changelog"]).all()
        administration.delete_groups(["app"]).all()
    with app_of(count_topology(), broker, tmp_path):
        assert by_key(reader.until(20)) == {"a": 2 * expected_counts(rows)["a"]}
        reader.close()


def test_settings_of_internal_topics_are_used(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1, "out": 1})
    settings = {"topic.segment.bytes": "20000", "topic.retention.ms": 5_000}
    with app_of(count_topology(), broker, tmp_path, **settings) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
    resource = ConfigResource("topic", "app-counts-changelog")
    with admin(broker) as cluster:
        entries = cluster.describe_configs([resource])[resource]
    assert entries["segment.bytes"].value == "20000"
    assert entries["retention.ms"].value == "5000"
    assert entries["cleanup.policy"].value == "compact"


def test_results_are_sent_in_batches_that_fit_a_segment(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 1})
    with admin(broker) as cluster:
        small = NewTopic("out", 1, configs={"segment.bytes": "2000"})
        assert not cluster.create_topics([small]).errors
    write(broker, "in", [("a", "x" * 100)] * 200)
    with app_of(upper_topology(), broker, tmp_path) as app:
        reader = Reader(broker, "out")
        assert len(reader.until(200)) == 200
        reader.close()
    assert app.error is None
