"""Instances and the broker are killed at random while the shop works; its books must be exact."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.streams.fire.harness import (
    BROKER_SETTINGS,
    PATIENCE_S,
    Feeder,
    Results,
    RunningInstance,
    check_input,
    largest_commits,
    make_topics,
)
from tests.streams.fire.shop import check_paid, check_totals, make_events
from tests.support.apache_kafka import ApacheKafka, fetch_apache_kafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer, wait_until

pytestmark = pytest.mark.slow

ORDERS_PER_KILL = 200


@contextmanager
def running(bootstrap: str, folder: Path, count: int) -> Iterator[list[RunningInstance]]:
    """Instances that are stopped at the end, whatever happens; their logs go with a failure."""
    instances = [
        RunningInstance(f"instance-{number}", bootstrap, folder) for number in range(count)
    ]
    with ExitStack() as stopping:
        for instance in instances:
            stopping.callback(instance.stop)
            instance.start()
        try:
            yield instances
        except BaseException as failed:
            for instance in instances:
                failed.add_note(f"{instance.name}:\n{instance.tail()}")
            raise


def check_books(feeder: Feeder, results: Results, instances: list[RunningInstance]) -> None:
    """All input is processed, and the results are exactly those of an offline computation."""
    feeder.flush()
    check_input(feeder.bootstrap, feeder.sent)
    results.read_until(len(feeder.sent), instances)
    for instance in instances:
        instance.stop()
    results.read_to_the_end()
    check_totals(feeder.sent, results.rows["totals"])
    check_paid(feeder.sent, results.rows["paid"])


def kill_at_random(broker: MillstreamBroker, folder: Path, kills: int, seed: int) -> None:
    """Kill one of the two instances, or the broker, again and again, at moments of the seed."""
    random = Random(seed)
    make_topics(broker.bootstrap)
    with (
        Feeder(broker.bootstrap) as feeder,
        running(broker.bootstrap, folder, 2) as instances,
    ):
        results = Results(broker.bootstrap)
        for _ in range(kills):
            feeder.send(make_events(random, ORDERS_PER_KILL, len(feeder.sent) // 2))
            # The moment is anywhere between "nothing of it is done" and "most of it is".
            results.read_until(results.count + random.randrange(1, ORDERS_PER_KILL), instances)
            victim = random.randrange(3)
            if victim == 2:
                broker.kill()
                broker.start()
            else:
                instances[victim].kill()
                instances[victim].start()
        check_books(feeder, results, instances)
        results.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.long)])
def test_results_are_exact_after_kills(tmp_path: Path, kills: int) -> None:
    with MillstreamBroker(tmp_path / "broker", settings=BROKER_SETTINGS) as broker:
        kill_at_random(broker, tmp_path, kills=kills, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_results_are_exact_after_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    with MillstreamBroker(tmp_path / "broker", settings=BROKER_SETTINGS) as broker:
        kill_at_random(broker, tmp_path, kills=25, seed=seed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(4, marks=pytest.mark.long)])
def test_after_a_kill_at_most_one_commit_is_replayed(tmp_path: Path, kills: int) -> None:
    random = Random(7)
    with MillstreamBroker(tmp_path / "broker", settings=BROKER_SETTINGS) as broker:
        make_topics(broker.bootstrap)
        with (
            Feeder(broker.bootstrap) as feeder,
            running(broker.bootstrap, tmp_path, 1) as instances,
        ):
            results = Results(broker.bootstrap)
            for kill in range(kills):
                feeder.send(make_events(random, 1000, len(feeder.sent) // 2))
                results.read_until(results.count + random.randrange(500, 1500), instances)
                instances[0].kill()
                instances[0].start()
                # The first process reports, too: it had nothing to restore.
                wait_until(
                    lambda kill=kill: len(instances[0].restored()) >= kill + 2,  # type: ignore[misc]
                    "an instance that runs again",
                    timeout_s=PATIENCE_S,
                )
            check_books(feeder, results, instances)
            results.close()
        replayed = instances[0].restored()[1:]
        # Each store of each task may be behind by the one commit that the kill fell into. How
        # large a commit becomes depends on the machine, so the limit is what was committed.
        limit, written = largest_commits(broker.bootstrap)
        assert len(replayed) == kills
        assert all(count <= limit for count in replayed), (replayed, limit)
        assert limit < written, "a limit of all changes would be none"


@pytest.mark.timeout(600)
def test_instances_come_and_go_without_loss_or_repetition(tmp_path: Path) -> None:
    random = Random(11)
    with MillstreamBroker(tmp_path / "broker", settings=BROKER_SETTINGS) as broker:
        make_topics(broker.bootstrap)
        with Feeder(broker.bootstrap) as feeder, ExitStack() as stopping:
            instances = [
                RunningInstance(f"instance-{number}", broker.bootstrap, tmp_path)
                for number in range(3)
            ]
            for instance in instances:
                stopping.callback(instance.stop)
            results = Results(broker.bootstrap)
            pauses = []
            for started, stopped in (([0], []), ([1, 2], []), ([], [0])):
                before = results.count
                feeder.send(make_events(random, 1000, len(feeder.sent) // 2))
                for number in started:
                    instances[number].start()
                began = time.monotonic()
                for number in stopped:
                    instances[number].stop()
                results.read_until(before + 500)
                pauses.append(time.monotonic() - began)
            check_books(feeder, results, instances[1:])
            results.close()


@pytest.mark.peer
@pytest.mark.long  # test_processes.py kills an instance on Apache Kafka, too
@pytest.mark.timeout(900)
def test_results_are_exact_on_apache_kafka(tmp_path: Path) -> None:
    try:
        fetch_apache_kafka()
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    random = Random(13)
    with ApacheKafka(tmp_path / "kafka", settings=BROKER_SETTINGS) as kafka:
        make_topics(kafka.bootstrap)
        with (
            Feeder(kafka.bootstrap) as feeder,
            running(kafka.bootstrap, tmp_path, 2) as instances,
        ):
            results = Results(kafka.bootstrap)
            for _ in range(4):
                feeder.send(make_events(random, ORDERS_PER_KILL, len(feeder.sent) // 2))
                results.read_until(results.count + random.randrange(1, ORDERS_PER_KILL), instances)
                victim = instances[random.randrange(2)]
                victim.kill()
                victim.start()
            check_books(feeder, results, instances)
            results.close()
