"""A broker that goes away and comes back: nothing is lost, and no task fails of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.records import SourceRecord
from tests.connect.running_worker import make_topic, running_worker, string_values, write
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

ROUNDS = 3
PER_ROUND = 300


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MillstreamBroker]:
    """A broker in a process of its own, which can be killed."""
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
        "durability": "fsync",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with MillstreamBroker(tmp_path, settings=settings) as running:
        yield running


def rows(first: int, count: int) -> list[SourceRecord]:
    return [
        SourceRecord({"file": "a"}, {"line": number}, "out", value=str(number))
        for number in range(first, first + count)
    ]


def kill_and_restart(broker: MillstreamBroker) -> None:
    broker.kill()
    broker.start()


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_source_goes_on_when_the_broker_is_back(broker: MillstreamBroker, support: str) -> None:
    settings = {"exactly.once.source.support": support, "offset.flush.interval.ms": "200"}
    with running_worker(broker.bootstrap, settings) as worker:
        script, statuses = worker.source(producer_override_linger_ms="0")
        for number in range(ROUNDS):
            first = number * PER_ROUND
            half = PER_ROUND // 2
            script.feed(rows(first, half))
            wait_until(
                lambda n=first + half: worker.value("src", "source-record-poll-total") >= n,  # type: ignore[misc]
                "polled",
            )
            kill_and_restart(broker)
            script.feed(rows(first + half, half))
        total = ROUNDS * PER_ROUND
        wait_until(lambda: worker.value("src", "source-record-write-total") == total, "all written")
        worker.stop("src")
        assert statuses.seen == ["startup", "shutdown"]
        written = [int(text or "") for text in string_values(broker.bootstrap, "out")]
        if support == "enabled":
            assert written == list(range(total))
        assert sorted(set(written)) == list(range(total))
        assert worker.stored("src", file="a") == {"line": total - 1}


def test_a_sink_goes_on_when_the_broker_is_back(broker: MillstreamBroker) -> None:
    make_topic(broker.bootstrap, "in")
    with running_worker(broker.bootstrap, {"offset.flush.interval.ms": "200"}) as worker:
        script, statuses = worker.sink(topics="in")
        for number in range(ROUNDS):
            write(broker.bootstrap, "in", *(f"{number}-{each}" for each in range(PER_ROUND)))
            last = f"{number}-{PER_ROUND - 1}"
            wait_until(lambda text=last: text in script.values(), f"{last}")  # type: ignore[misc]
            kill_and_restart(broker)
        assert statuses.seen == ["startup"]
        expected = {f"{number}-{each}" for number in range(ROUNDS) for each in range(PER_ROUND)}
        assert set(script.values()) == expected


def test_a_task_that_starts_while_the_broker_is_away_waits_for_it(
    broker: MillstreamBroker,
) -> None:
    with running_worker(broker.bootstrap) as worker:
        broker.kill()
        script, source = worker.source()
        _, sink = worker.sink(
            topics="out", errors_tolerance="all", errors_deadletterqueue_topic_name="dead"
        )
        script.feed(rows(0, 1))
        broker.start()
        wait_until(lambda: worker.value("src", "source-record-write-total") == 1, "written")
        wait_until(lambda: worker.value("snk", "sink-record-send-total") == 1, "put")
        assert source.seen == ["startup"]
        assert sink.seen == ["startup"]
