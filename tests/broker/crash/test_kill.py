"""A broker that is killed at random moments loses nothing it acknowledged."""

import time
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.crash.checks import check_everything
from tests.broker.crash.workers import (
    INPUT_TOPIC,
    LEDGER_TOPIC,
    PARTITIONS,
    PATIENCE_S,
    PLAIN_TOPIC,
    Worker,
    Workers,
)
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until

RESTART_SECONDS_MAX = 30.0
SETTINGS = {
    "durability": "fsync",
    # Small segments, so that kills also meet a log that rolls.
    "log.segment.bytes": "200000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}


def make_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, PARTITIONS) for name in (PLAIN_TOPIC, LEDGER_TOPIC, INPUT_TOPIC)]
    for made in admin.create_topics(topics).values():
        made.result(PATIENCE_S)


def kill_and_check(folder: Path, *, seed: int, kills: int) -> None:
    random = Random(seed)
    broker = MillstreamBroker(folder, settings=SETTINGS)
    broker.start()
    restart_seconds = []
    try:
        make_topics(broker.bootstrap)
        workers = Workers.make(broker.bootstrap, random)
        for worker in workers.all():
            worker.start()
        for _ in range(kills):
            wait_for_progress(workers)
            time.sleep(random.uniform(0.0, 0.4))
            broker.kill()
            assert "Traceback" not in broker.printed(), broker.printed()
            start = time.monotonic()
            broker.start()
            restart_seconds.append(time.monotonic() - start)
        wait_for_progress(workers)
        for worker in workers.all():
            worker.stop()
        summary = check_everything(broker.bootstrap, workers)
    finally:
        broker.kill()
    slowest = max(restart_seconds)
    print(f"seed {seed}, {kills} kills, slowest restart {slowest:.1f} s: {summary}")  # noqa: T201
    assert slowest < RESTART_SECONDS_MAX


def wait_for_progress(workers: Workers, timeout_s: float = 3 * PATIENCE_S) -> None:
    """Every worker gets further, so that a kill always meets work of all kinds."""
    for worker, progress in [(worker, worker.progress + 2) for worker in workers.all()]:
        wait_for_worker(worker, progress, timeout_s)


def wait_for_worker(worker: Worker, progress: int, timeout_s: float) -> None:
    def moved() -> bool:
        if worker.failure is not None:
            raise worker.failure
        return worker.progress >= progress

    wait_until(moved, f"progress of {worker.name}", timeout_s=timeout_s)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.long)])
def test_nothing_acknowledged_is_lost_over_kills(tmp_path: Path, kills: int) -> None:
    kill_and_check(tmp_path, seed=20, kills=kills)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nothing_acknowledged_is_lost_over_200_kills(tmp_path: Path, seed: int) -> None:
    kill_and_check(tmp_path, seed=seed, kills=50)
