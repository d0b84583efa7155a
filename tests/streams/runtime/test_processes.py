"""Applications in processes: killed without warning, and several for one application."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from streams.app import StreamsApp
from streams.errors import StreamsError
from streams.state.rocks import RocksDatabase
from tests.streams.runtime.apps import (
    Reader,
    by_key,
    count_topology,
    expected_counts,
    make_topics,
    write,
)
from tests.streams.runtime.conftest import SETTINGS
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY, PeerMissing, skip_without_peer, wait_until

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdefgh" * 100]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """Our broker in a process of its own."""
    settings = {name: value for name, value in SETTINGS.items() if name != "listeners"}
    with MillstreamBroker(tmp_path / "broker", settings=settings) as broker:
        yield broker.bootstrap


def start_counting(
    bootstrap: str, state: Path, guarantee: str, topology: str = "plain"
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.streams.runtime.counting"]
    return subprocess.Popen(
        [*command, bootstrap, str(state), guarantee, topology],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_after_kills_without_warning_committed_counts_are_exact(
    bootstrap: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    for start in range(0, 600, 200):
        write(bootstrap, "in", ROWS[start : start + 200])
        process = start_counting(bootstrap, tmp_path / "state", "exactly_once_v2")
        reader.until(start + 1)
        process.kill()
        process.communicate()
    write(bootstrap, "in", ROWS[600:])
    process = start_counting(bootstrap, tmp_path / "state", "exactly_once_v2")
    counts = by_key(reader.until(len(ROWS)))
    process.communicate("")
    reader.close()
    assert process.returncode == 0
    assert counts == expected_counts(ROWS)


def kafka_or_skip(tmp_path: Path) -> ApacheKafka:
    try:
        return ApacheKafka(tmp_path / "kafka", settings={"group.initial.rebalance.delay.ms": "0"})
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")


@pytest.mark.peer
def test_an_instance_that_was_killed_is_back_at_once_on_apache_kafka(tmp_path: Path) -> None:
    with kafka_or_skip(tmp_path) as kafka:
        make_topics(kafka.bootstrap, **{"in": 2, "out": 2})
        reader = Reader(kafka.bootstrap, "out")
        for count in (100, 200, 300):
            write(kafka.bootstrap, "in", ROWS[count - 100 : count])
            process = start_counting(kafka.bootstrap, tmp_path / "state", "exactly_once_v2")
            reader.until(count)
            process.kill()
            process.communicate()
        assert by_key(reader.rows) == expected_counts(ROWS[:300])
        reader.close()


def test_an_instance_that_stops_makes_room_at_once(bootstrap: str, tmp_path: Path) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    first = start_counting(bootstrap, tmp_path / "first", "exactly_once_v2")
    write(bootstrap, "in", ROWS[:100])
    reader.until(100)
    second = start_counting(bootstrap, tmp_path / "second", "exactly_once_v2")
    first.communicate("")  # sessions last for ten minutes
    write(bootstrap, "in", ROWS[100:200])
    assert by_key(reader.until(200)) == expected_counts(ROWS[:200])
    second.communicate("")
    reader.close()
    assert (first.returncode, second.returncode) == (0, 0)


def test_another_topology_is_laid_out_again_though_the_group_saw_no_crash(
    bootstrap: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    write(bootstrap, "in", ROWS[:100])
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once")
    reader.until(100)
    process.kill()
    process.communicate()
    # This one has one more sub-topology, whose tasks nobody was given before.
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once", "repartitioned")
    before = len(reader.rows)
    write(bootstrap, "in", ROWS[100:200])
    reader.until(before + 100)
    process.communicate("")
    reader.close()
    assert process.returncode == 0


def test_at_least_once_loses_nothing_when_killed(bootstrap: str, tmp_path: Path) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    write(bootstrap, "in", ROWS[:400])
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once")
    reader.until(1)
    process.kill()
    process.communicate()
    write(bootstrap, "in", ROWS[400:])
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once")
    wanted = {key: int(counts[-1]) for key, counts in expected_counts(ROWS).items()}
    wait_until(
        lambda: (
            all(int(reader.last(1).get(key, 0)) >= wanted[key] for key in wanted)
            if reader.poll()
            else False
        ),
        "all counts",
    )
    process.communicate("")
    reader.close()


def test_two_processes_share_an_embedded_broker(tmp_path: Path) -> None:
    """In a process of its own: one that has opened stores before, as tests have, cannot fork."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.streams.runtime.pair", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_processes_are_refused_where_rocksdb_has_threads(broker: Broker, tmp_path: Path) -> None:
    RocksDatabase(tmp_path / "other", ["store"]).close()
    app = StreamsApp(
        count_topology(),
        application_id="pair",
        broker=broker,
        state_dir=tmp_path / "state",
        processes=2,
    )
    with pytest.raises(StreamsError, match="threads do not survive a fork"):
        app.start()
    app.close()
