"""Statistics about the messages of a topic."""

from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from sql.engine.entities import SourceDescription, SourceDetails
from sql.engine.query_metrics import QueryMetrics, StorePosition, query_metrics, samples
from sql.engine.topic_statistics import BETWEEN_MS, WINDOW_MS, Statistics, of_host
from tests.sql.engine.engines import ORDERS, TOTALS, engine_of, until_rows
from tests.support.peer import wait_until

DESCRIPTION = """Topologies:
   Sub-topology: 0
    Source: IN-0 (topics: [orders])
      --> OUT-1
    Source: IN-2 (topics: [a, b])
      --> OUT-1
    Sink: OUT-1 (topic: TOTALS)
      <-- IN-0
"""
PAGE = """# HELP millstream_streams_task_phase 1 for the phase that the task is in
# TYPE millstream_streams_task_phase gauge
millstream_streams_task_phase{application="q",task="0_1",phase="running"} 1
millstream_streams_task_phase{application="q",task="0_2",phase="standby"} 1
millstream_streams_task_phase{application="q",task="0_1",phase="standby"} 0
millstream_streams_node_process_total{application="q",task="0_1",node="IN-0"} %d
millstream_streams_node_process_total{application="q",task="0_1",node="IN-2"} 3
millstream_streams_node_process_total{application="q",task="0_1",node="OUT-1"} 7
millstream_streams_task_dropped_records_total{application="q",task="0_1"} 2
millstream_streams_task_stream_time_ms{application="q",task="0_1"} 1600000000123
millstream_streams_task_committed_offset{application="q",task="0_1",topic="orders",partition="1"} 5
millstream_streams_store_changelog_position{application="q",task="0_1",store="s\\"x"} 9
millstream_streams_store_changelog_position{application="q",task="0_2",store="s\\"x"} 4
millstream_streams_store_restore_remaining{application="q",task="0_2",store="s\\"x"} 5
other_metric{a="b"} 1
"""


class Query:
    """A query with given counts, while a clock goes on."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.read = 10
        self.runs = True
        self._clock = clock

    def metrics(self) -> str:
        if self._clock is not None:
            self._clock.advance(BETWEEN_MS)
        return PAGE % self.read if self.runs else ""

    def describe(self) -> str:
        return DESCRIPTION


def test_metrics_are_counted_by_topic() -> None:
    found = query_metrics(Query())
    assert found.read == {"orders": 10, "a": 3, "b": 3}
    assert found.written == {"TOTALS": 7}
    assert (found.failed, found.last_ms) == (2, 1_600_000_000_123)
    assert found.inputs == {("orders", 1)}
    assert found.standbys == {('s\\"x', 2)}
    assert found.stores == (
        StorePosition('s\\"x', 1, 9, 0),
        StorePosition('s\\"x', 2, 4, 5),
    )
    assert len(list(samples(PAGE % 1))) == 12


def test_a_query_that_does_not_run_has_counted_nothing() -> None:
    query = Query()
    query.runs = False
    assert query_metrics(query) == QueryMetrics()
    assert Statistics(ManualClock()).of("orders", {}).text == ""


def test_rates_are_taken_between_two_looks() -> None:
    clock = ManualClock()
    query, statistics = Query(clock), Statistics(clock)
    first = statistics.of("orders", {"q": query})
    assert [each.value for each in first.messages] == [0, 10]
    query.read += 20
    clock.advance(750)
    found = statistics.of("orders", {"q": query})
    rate, total = found.messages
    assert (rate.name, total.name) == ("consumer-messages-per-sec", "consumer-total-messages")
    assert total.value == 30
    assert 10 <= rate.value <= 20
    assert [each.value for each in found.failures] == [2, 0]
    query.read = 1  # it began again
    clock.advance(BETWEEN_MS)
    assert statistics.of("orders", {"q": query}).messages[0].value == 0
    clock.advance(2 * WINDOW_MS)
    assert statistics.of("orders", {"q": query}).messages[0].value == 0


def test_lines_are_those_of_ksqldb() -> None:
    clock = ManualClock()
    statistics = Statistics(clock)
    written = statistics.of("TOTALS", {"q": Query(clock)})
    assert written.text == (
        "messages-per-sec:         0   total-messages:         7 "
        "    last-message: 2020-09-13T12:26:40.123Z"
    )
    assert written.failures_text == ""
    read = statistics.of("a", {"q": Query(clock)})
    assert "consumer-total-messages:         3 " in read.text
    assert read.failures_text == (
        "consumer-failed-messages:         2 consumer-failed-messages-per-sec:         0 "
        "     last-failed:       n/a"
    )


def test_statistics_name_their_host() -> None:
    clock = ManualClock()
    found = Statistics(clock).of("TOTALS", {"q": Query(clock)})
    reported = of_host(found.messages, "some.host:8088")
    assert [(each.host.host, each.host.port, each.name) for each in reported] == [
        ("some.host", 8088, "messages-per-sec"),
        ("some.host", 8088, "total-messages"),
    ]


@pytest.mark.slow
def test_running_queries_are_measured(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])

        def described(name: str) -> SourceDetails:
            [found] = engine.execute(f"DESCRIBE {name} EXTENDED;")
            assert isinstance(found, SourceDescription)
            return found.source_description

        wait_until(
            lambda: "consumer-total-messages:         1 " in described("orders").statistics,
            "a record that was read",
        )
        orders = described("orders")
        assert "consumer-failed-messages:         0 " in orders.error_stats
        assert [each.value for each in orders.cluster_error_stats] == [0, 0]
        wait_until(
            lambda: "  total-messages:         1 " in described("totals").statistics,
            "a record that was written",
        )
        names = [each.name for each in described("totals").cluster_statistics]
        assert names == ["messages-per-sec", "total-messages"]
