"""Metrics: the page is Prometheus' text, and its numbers are those of the application."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from broker import Broker
from broker.client import producer
from streams import AppState, StreamsApp, StreamsBuilder, tumbling
from streams.runtime.metrics import HELP, PREFIX, Page
from streams.runtime.runner_metrics import RunnerMetrics
from tests.streams.runtime.apps import DEADLINE_MS, make_topics
from tests.support.peer import wait_until

README = Path(__file__).parents[3] / "streams" / "README.md"
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")


class Sample(NamedTuple):
    """One number of a page."""

    labels: dict[str, str]
    value: float


def parsed(page: str) -> dict[str, list[Sample]]:
    """Samples by metric, in a reader of the format that takes nothing wrong."""
    assert page.endswith("\n")
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    found: dict[str, list[Sample]] = {}
    current = ""
    for line in page.splitlines():
        if line.startswith("# "):
            _, word, name, text = line.split(" ", 3)
            assert name not in found, "the lines of a metric are together"
            if word == "HELP":
                assert name not in helped
                assert text
                helped.add(name)
            else:
                assert word == "TYPE"
                assert name in helped
                assert name not in kinds
                assert text in ("counter", "gauge")
                assert (text == "counter") == name.endswith("_total")
                kinds[name] = text
                current = name
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name, inside, value = match.groups()
        assert name == current, "samples follow their TYPE"
        labels = dict(LABEL.findall(inside or ""))
        assert LABEL.sub("", inside or "") == "", line
        samples = found.setdefault(name, [])
        assert all(labels != each.labels for each in samples), line
        samples.append(Sample(labels, float(value)))
    return {name.removeprefix(f"{PREFIX}_"): samples for name, samples in found.items()}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsApp]:
    """Five records of two keys counted, one without a key dropped; a global table of one name."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=str, value=str).group_by_key()
    words.count(store="counts").to_stream().to("out", key=str, value=int)
    words.windowed_by(tumbling(60_000)).count(store="by-minute")
    builder.global_table("names", key=str, value=str, store="names")
    with Broker(data_directory=str(tmp_path_factory.mktemp("broker"))) as broker:
        make_topics(broker, words=1, out=1, names=1)
        with producer(broker) as out:
            out.send("names", b"X", b"x")
            for number, word in enumerate(["a", "b", "a", None, "a", "b"]):
                key = None if word is None else word.encode()
                out.send("words", b"x", key, timestamp_ms=number)
        with StreamsApp(
            builder.build(),
            application_id="metrics",
            broker=broker,
            state_dir=tmp_path_factory.mktemp("state"),
            commit_interval_ms=50,
            metrics_recording_level="DEBUG",
            statestore_cache_max_bytes=0,
        ) as started:
            assert started.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)

            def committed() -> bool:
                lags = parsed(started.metrics_text()).get("task_committed_lag", [])
                return [each.value for each in lags] == [0]

            wait_until(committed, "the commit", timeout_s=DEADLINE_MS / 1000)
            yield started


def one(page: dict[str, list[Sample]], name: str, **labels: str) -> float:
    """The value of the one sample that has these labels."""
    (found,) = (each.value for each in page[name] if labels.items() <= each.labels.items())
    return found


@pytest.mark.slow
def test_the_numbers_are_those_of_the_application(app: StreamsApp) -> None:
    page = parsed(app.metrics_text())
    assert one(page, "state", state="RUNNING") == 1
    assert one(page, "runner_records_consumed_total") == 6
    assert one(page, "runner_records_processed_total") == 6
    assert one(page, "task_records_in_total", task="0_0") == 6
    assert one(page, "task_records_out_total", task="0_0") == 5
    assert one(page, "task_records_in_total", task="global") == 1
    assert one(page, "task_dropped_records_total", task="0_0") == 2  # by each of two operations
    assert one(page, "task_phase", phase="running") == 1
    assert one(page, "task_committed_offset", topic="words", partition="0") == 6
    assert one(page, "task_position_lag", topic="words", partition="0") == 0
    assert one(page, "store_entries", store="counts") >= 2
    assert one(page, "store_bytes", store="counts") > 0
    assert one(page, "store_bytes", store="names", task="global") > 0
    assert one(page, "store_changelog_position", store="counts") >= 2
    assert one(page, "store_restore_remaining", store="counts") == 0
    assert one(page, "node_process_total", node="KSTREAM-SINK-0000000003") == 5
    for what in ("poll", "process", "commit"):
        total = one(page, f"runner_{what}_seconds_total")
        average = one(page, f"runner_{what}_seconds_average")
        assert 0 < average <= one(page, f"runner_{what}_seconds_max") <= total
    assert one(page, "rocksdb_memory_bytes") > 0
    assert one(page, "task_stream_time_age_seconds", task="0_0") > 0


@pytest.mark.slow
def test_every_metric_is_known_to_the_readme(app: StreamsApp) -> None:
    names = set(parsed(app.metrics_text()))
    assert names == set(HELP)
    text = README.read_text()
    table = text[text.index("## Metrics") :]
    table = table[: table.index("\n## ")]
    shown = {name for name in re.findall(r"`(\w+)`", table) if name in HELP}
    assert shown == set(HELP)


def test_pages_of_several_processes_become_one() -> None:
    pages = []
    for number in (1, 2):
        page = Page()
        page.add("runner_polls_total", number, runner='a "{b}"\\\n')
        page.add("task_phase", 1, task="0_0", phase="running")
        pages.append(page.text())
    merged = Page()
    for number, text in enumerate(pages):
        merged.add_page(text, process=str(number))
    found = parsed(merged.text())
    assert [each.value for each in found["runner_polls_total"]] == [1, 2]
    labels = [each.labels for each in found["runner_polls_total"]]
    assert labels == [{"process": str(n), "runner": 'a \\"{b}\\"\\\\\\n'} for n in (0, 1)]


def test_rates_are_over_the_time_since_they_were_taken() -> None:
    metrics = RunnerMetrics()
    metrics.update_rates(10_000)
    metrics.processed(500, 10)
    metrics.update_rates(10_500)
    assert metrics.records_processed_per_second == 0
    metrics.processed(500, 10)
    metrics.update_rates(12_000)
    assert metrics.records_processed_per_second == 500
    metrics.update_rates(13_000)
    assert metrics.records_processed_per_second == 0


def test_times_have_totals_and_maxima() -> None:
    metrics = RunnerMetrics()
    for taken_ns in (5, 20, 10):
        metrics.polled(taken_ns)
        metrics.committed(taken_ns)
        metrics.punctuated(2, taken_ns)
        metrics.processed(3, taken_ns)
    metrics.processed(0, 1000)
    found = dict(metrics.items())
    for what in ("poll", "commit", "punctuate", "process"):
        assert found[f"{what}_nanoseconds_total"] == 35
        assert found[f"{what}_nanoseconds_max"] == 20
    counts = [
        found[f"{n}_total"] for n in ("polls", "commits", "punctuations", "records_processed")
    ]
    assert counts == [3, 3, 6, 9]
