"""Counters and their text for Prometheus."""

from prometheus_client import CollectorRegistry

from broker.exposition import Exposition
from broker.metrics import Metrics, write_counters
from broker.protocol.api_keys import ApiKey


def test_labels_are_escaped() -> None:
    out = Exposition()
    out.family("lag", "gauge", "Records behind.")
    out.sample("lag", 1.5, group='a"b\\c\nd', partition=0)
    assert out.text() == (
        "# HELP lag Records behind.\n"
        "# TYPE lag gauge\n"
        'lag{group="a\\"b\\\\c\\nd",partition="0"} 1.5\n'
    )


def test_a_family_of_one_needs_no_labels() -> None:
    out = Exposition()
    out.single("topics", "gauge", "Topics.", 3)
    assert out.text().endswith("\ntopics 3.0\n")


def test_counters_are_written_in_seconds_by_api_and_part() -> None:
    metrics = Metrics()
    stats = metrics.request(ApiKey.FETCH)
    stats.count += 2
    stats.remote_ns += 1_500_000_000
    metrics.topic("orders").bytes_in += 10
    metrics.connections_open += 1
    out = Exposition()
    write_counters(metrics, out)
    lines = out.text().splitlines()
    assert 'millstream_requests_total{api="FETCH"} 2.0' in lines
    assert 'millstream_request_seconds_total{api="FETCH",part="remote"} 1.5' in lines
    assert 'millstream_topic_bytes_in_total{topic="orders"} 10.0' in lines
    assert "millstream_connections_open 1.0" in lines
    metrics.forget_topic("orders")
    assert metrics.topics == {}


def test_each_family_is_written_once() -> None:
    out = Exposition()
    write_counters(Metrics(), out)
    families = [line.split()[2] for line in out.text().splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families)) > 10


def test_a_counter_keeps_its_name_with_or_without_total() -> None:
    out = Exposition()
    out.single("total_retries", "counter", "Retries.", 1)
    out.single("polls_total", "counter", "Polls.", 2)
    assert out.text() == (
        "# HELP total_retries Retries.\n# TYPE total_retries counter\ntotal_retries 1.0\n"
        "# HELP polls_total Polls.\n# TYPE polls_total counter\npolls_total 2.0\n"
    )


def test_a_registry_of_the_client_library_takes_it_as_a_collector() -> None:
    out = Exposition()
    out.single("topics", "gauge", "Topics.", 3)
    registry = CollectorRegistry()
    registry.register(out)
    assert registry.get_sample_value("topics") == 3
