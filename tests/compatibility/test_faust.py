"""A faust-streaming application with a table, unchanged, against the broker."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.peer import REPOSITORY, wait_until

pytestmark = pytest.mark.slow

Unique = Callable[[str], str]


@pytest.fixture
def environment(bootstrap: str, unique: Unique) -> dict[str, str]:
    """The names that the application works on, with its topics made."""
    name = unique("counter")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [f"{name}-words", f"{name}-counted"]
    for future in admin.create_topics([NewTopic(topic, 2, 1) for topic in topics]).values():
        future.result(60)
    return {
        "COUNTER_NAME": name,
        "COUNTER_BROKER": bootstrap,
        "COUNTER_INPUT": topics[0],
        "COUNTER_OUTPUT": topics[1],
    }


@contextmanager
def worker(environment: dict[str, str], folder: Path) -> Iterator[None]:
    """Runs one worker of the application, from when it is ready; it leaves its group at the end.

    A worker fetches before it seeks to its committed offsets, and processes what it fetched then a
    second time, on Apache Kafka too. So nothing may be sent to it before it is ready.
    """
    folder.mkdir()
    command = [sys.executable, "-m", "faust", "--datadir", str(folder / "data")]
    command += ["-A", "tests.compatibility.faust_counter", "worker", "-l", "info", "--without-web"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        written = (folder / "log").read_text
        wait_until(lambda: "Worker ready" in written(), "a worker that is ready", timeout_s=60)
        yield
    except BaseException as failed:
        failed.add_note((folder / "log").read_text()[-4000:])
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def send(bootstrap: str, topic: str, words: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for word in words:
        producer.produce(topic, key=word, value=word)
    assert producer.flush(30) == 0


@contextmanager
def watch(bootstrap: str, topic: str) -> Iterator[Callable[[], dict[str, int]]]:
    """The last count seen of each word, read from the topic that the application writes."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    reader.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(2)])
    seen: dict[str, int] = {}

    def look() -> dict[str, int]:
        for message in reader.consume(100, 0.1):
            assert message.error() is None
            seen[message.key().decode()] = int(message.value())
        return seen

    try:
        yield look
    finally:
        reader.close()


def committed(bootstrap: str, group: str, topic: str) -> int:
    """How many records of a topic a group has committed."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        places = reader.committed([TopicPartition(topic, each) for each in range(2)], timeout=30)
        return sum(max(place.offset, 0) for place in places)
    finally:
        reader.close()


def test_a_table_counts_and_is_restored_from_its_changelog(
    bootstrap: str, environment: dict[str, str], tmp_path: Path
) -> None:
    source, output = environment["COUNTER_INPUT"], environment["COUNTER_OUTPUT"]
    with watch(bootstrap, output) as counts:
        with worker(environment, tmp_path / "first"):
            send(bootstrap, source, ["mill", "stream", "mill", "wheel"] * 5)
            expected = {"mill": 10, "stream": 5, "wheel": 5}
            wait_until(lambda: counts() == expected, "the first counts", timeout_s=60)
            # Faust commits now and then; what it has not committed, the second would count again.
            group = environment["COUNTER_NAME"]
            wait_until(lambda: committed(bootstrap, group, source) == 20, "a commit", timeout_s=60)
        # The table is in memory only, so the second worker has it from the changelog topic.
        with worker(environment, tmp_path / "second"):
            send(bootstrap, source, ["mill", "stream"])
            expected = {"mill": 11, "stream": 6, "wheel": 5}
            wait_until(lambda: counts() == expected, "the counts of the second", timeout_s=60)
    changelog = f"{environment['COUNTER_NAME']}-counts-changelog"
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    assert len(topics[changelog].partitions) == 2
