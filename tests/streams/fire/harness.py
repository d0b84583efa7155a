"""Starts, kills and restarts the broker and the instances, feeds them, and reads what came out."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.record_producer import Producer
from broker.model import TopicPartition
from tests.streams.fire.shop import PARTITIONS, TOPICS, Event
from tests.support.peer import REPOSITORY, wait_until
from tests.support.topics import read_topic

PATIENCE_S = 120.0
# Only what makes the survivors notice a death sooner.
QUICK = {
    "session_timeout_ms": 2_000,
    "heartbeat_interval_ms": 200,
    "transaction_timeout_ms": 3_000,
    "commit_interval_ms": 100,
}
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class RunningInstance:
    """One instance of the application, in a process of its own; its state outlives the process."""

    def __init__(self, name: str, bootstrap: str, folder: Path, **settings: object) -> None:
        self.name = name
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self.report = self._folder / "report"
        self._config = self._folder / "config.json"
        self._config.write_bytes(
            orjson.dumps(
                {
                    "application_id": "shop",
                    "broker": bootstrap,
                    "state_dir": str(self._folder / "state"),
                    "processing_guarantee": "exactly_once_v2",
                    "statestore_cache_max_bytes": 0,
                    "report": str(self.report),
                    **QUICK,
                    **settings,
                }
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self._folder / "log"

    def start(self) -> None:
        """Run it, with the state that an earlier process left."""
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.streams.fire.instance", str(self._config)],
                cwd=REPOSITORY,
                env=dict(os.environ),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """End it at once, wherever it is."""
        assert self._process is not None
        assert self._process.poll() is None, f"{self.name} ended by itself:\n{self.tail()}"
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Let it commit and leave."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def check_alive(self) -> None:
        """Fail with its last words if it has ended by itself."""
        assert self._process is not None
        assert self._process.poll() is None, f"{self.name} ended by itself:\n{self.tail()}"

    def restored(self) -> list[int]:
        """How many changelog records each process had to replay before it ran."""
        if not self.report.exists():
            return []
        return [orjson.loads(line)["restored"] for line in self.report.read_bytes().splitlines()]

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text()[-4000:] if self.log.exists() else ""


class Feeder:
    """Writes the input, each record exactly once, whatever happens to the broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._producer: Producer = producer(bootstrap, linger_ms=5, delivery_timeout_ms=120_000)
        self.sent: list[Event] = []

    def send(self, events: Iterable[Event]) -> None:
        """Queue events."""
        for event in events:
            self._producer.send(
                event.topic,
                orjson.dumps(event.value),
                event.key.encode(),
                timestamp_ms=event.timestamp_ms,
            )
            self.sent.append(event)

    def flush(self) -> None:
        """Wait until the broker has them all."""
        self._producer.flush(int(PATIENCE_S * 1000))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._producer.close(0 if error else 10_000)


class Results:
    """Committed records of the output topics, from their beginning."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = consumer(
            bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        self._consumer.assign(
            [
                TopicPartition(topic, number)
                for topic in ("totals", "paid")
                for number in range(PARTITIONS)
            ]
        )
        self.rows: dict[str, list[tuple[str, dict[str, object]]]] = {"totals": [], "paid": []}

    @property
    def count(self) -> int:
        """How many there are so far."""
        return sum(map(len, self.rows.values()))

    def read(self, timeout_ms: int = 50) -> None:
        """Take what has come."""
        for record in self._consumer.poll(timeout_ms):
            assert record.key is not None
            assert record.value is not None
            self.rows[record.topic].append((record.key.decode(), orjson.loads(record.value)))

    def read_until(self, count: int, alive: Iterable[RunningInstance] = ()) -> None:
        """Take what comes until there are so many, while all instances live."""
        deadline = time.monotonic() + PATIENCE_S
        while self.count < count:
            self.read()
            for instance in alive:
                instance.check_alive()
            assert time.monotonic() < deadline, f"{self.count} of {count} results came"

    def read_to_the_end(self) -> None:
        """Take all that is there, also what should not be."""
        places = self._consumer.assignment()
        ends = self._consumer.end_offsets(places)

        def whole() -> bool:
            self.read()
            return all(self._consumer.position(tp) >= ends[tp] for tp in places)

        wait_until(whole, "the whole output", timeout_s=PATIENCE_S)

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()


def check_input(bootstrap: str, events: Iterable[Event]) -> None:
    """The input topics have each event exactly once: else the feeder is to blame."""
    expected = sorted((event.topic, event.key) for event in events)
    found = [
        (topic, (record.key or b"").decode())
        for topic in ("orders", "payments")
        for record in read_topic(bootstrap, topic, timeout_s=PATIENCE_S)
    ]
    assert [row for row, count in Counter(found).items() if count > 1] == [], "sent twice"
    assert sorted(found) == expected


def make_topics(bootstrap: str) -> None:
    """The topics of the shop."""
    with admin(bootstrap) as administration:
        administration.create_topics([NewTopic(name, PARTITIONS) for name in TOPICS]).all()


def largest_commits(bootstrap: str) -> tuple[int, int]:
    """The records of the largest transaction of each changelog partition, added up; and of all."""
    with admin(bootstrap) as administration:
        names = [
            name
            for name in administration.list_topics()
            if name.startswith("shop-") and name.endswith("-changelog")
        ]
    places = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
    # Any: an offset and what a poll gave for it
    records: dict[TopicPartition, list[Any]] = {tp: [] for tp in places}
    with consumer(bootstrap, isolation_level="read_committed") as reader:
        reader.assign(places)
        reader.seek_to_beginning()
        ends = reader.end_offsets(places)

        def whole() -> bool:
            for batch in reader.poll_batches(50):
                records[batch.topic_partition].append(batch.header)
            return all(reader.position(tp) >= ends[tp] for tp in places)

        wait_until(whole, "the whole changelogs", timeout_s=PATIENCE_S)
    largest: Counter[TopicPartition] = Counter()
    for tp, headers in records.items():
        sizes: dict[tuple[int, int], int] = {}
        previous = -1
        for header in headers:
            # A gap in the offsets is a marker: the transaction before it is over.
            if header.base_offset != previous:
                sizes.clear()
            who = (header.producer_id, header.producer_epoch)
            sizes[who] = sizes.get(who, 0) + header.record_count
            largest[tp] = max(largest[tp], sizes[who])
            previous = header.last_offset + 1
    written = sum(header.record_count for headers in records.values() for header in headers)
    return largest.total(), written
