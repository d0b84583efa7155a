"""Whatever damaged batch the broker accepts, every reader can read, and the next start succeeds."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from broker import client
from broker.broker import Broker
from broker.client.api import ConsumerRecord
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.model import ConnectionInfo, TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.produce import ProduceResponse
from tests.broker.fuzz.corpus import batches
from tests.broker.fuzz.mutation import Mutator
from tests.broker.handlers.embedded import produce_request
from tests.support.seeds import seed_of

# Topics that treat a batch in different ways on its way to the disk.
TOPICS: dict[str, dict[str, str]] = {
    "plain": {"message.timestamp.after.max.ms": str((1 << 63) - 1)},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "packed": {"compression.type": "zstd"},
}
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.segment.bytes": "100000",
}
VERSION = 9
PRODUCER_ID_AT = 43
TIMES_MS = (-1, 0, 1_000, 1_004, 1 << 31, 1 << 40, (1 << 63) - 1)
LAST_TIME_MS = 1_700_000_000_000

Content = dict[str, list[ConsumerRecord]]


@dataclass
class Fuzzed:
    """A broker that is sent damaged batches, and what it answers."""

    path: Path
    broker: Broker
    random: Random
    accepted: int = 0
    refused: dict[ErrorCode, int] = field(default_factory=dict)

    def send(self, count: int) -> None:
        """Send damaged batches to all topics, and transactions that end in both ways between."""
        known = batches()
        mutator = Mutator(self.random)
        for number in range(count):
            if number % 500 == 0:
                self.run_transactions()
            batch = bytes(mutator.damaged_batch(self.random.choice(known), known))
            if batch[PRODUCER_ID_AT : PRODUCER_ID_AT + 8] == bytes(8):
                continue  # may fence the producer of the transactions, as it should
            request = produce_request(self.random.choice(list(TOPICS)), batch)
            answer = self.broker.handle(ApiKey.PRODUCE, VERSION, request, ConnectionInfo("fuzz"))
            assert isinstance(answer, ProduceResponse)
            code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
            if code:
                self.refused[code] = self.refused.get(code, 0) + 1
            else:
                self.accepted += 1

    def run_transactions(self) -> None:
        """One that commits and one that aborts, in every topic."""
        with client.producer(self.broker, transactional_id="fuzz") as producer:
            producer.init_transactions()
            for finish in (producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for topic in TOPICS:
                    producer.send(topic, b"value", key=b"key", partition=0, timestamp_ms=1_000)
                finish()

    def check_readers(self) -> Content:
        """Read everything in every way; the records that all readers see."""
        self.read(isolation_level="read_committed")
        content = self.read()
        with client.consumer(self.broker) as reader:
            for topic in TOPICS:
                tp = TopicPartition(topic, 0)
                for time_ms in TIMES_MS:
                    reader.offsets_for_times({tp: time_ms})
        return content

    def read(self, **settings: str) -> Content:
        """All records of all topics; a batch that cannot be read raises."""
        return {topic: self._read(TopicPartition(topic, 0), settings) for topic in TOPICS}

    def _read(self, tp: TopicPartition, settings: dict[str, str]) -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        with client.consumer(self.broker, **settings) as reader:
            reader.assign([tp])
            reader.seek_to_beginning([tp])
            (end,) = reader.end_offsets([tp]).values()
            while reader.position(tp) < end:
                records += reader.poll(timeout_ms=1_000)
        return records

    def compact(self) -> None:
        """Compact what can be."""
        storage = self.broker.state.storage
        with self.broker.lock:
            for log in storage.logs():
                log.roll()
        while storage.compact_one():
            pass


@contextmanager
def running(path: Path, seed: int = 0) -> Iterator[Fuzzed]:
    """A broker on a data directory; it must start."""
    config = BrokerConfig.from_properties(SETTINGS)
    with Broker(config, clock=ManualClock(LAST_TIME_MS), data_directory=str(path)) as broker:
        for topic, settings in TOPICS.items():
            with broker.lock:
                if broker.state.topics.get(topic) is None:
                    broker.state.topics.create(topic, partition_count=1, overrides=settings)
        yield Fuzzed(path, broker, Random(seed))


def fuzz_accepted(path: Path, caplog: pytest.LogCaptureFixture, *, seed: int, count: int) -> None:
    with caplog.at_level(logging.WARNING):
        with running(path / "data", seed) as fuzzed:
            fuzzed.send(count)
            assert fuzzed.accepted > count / 50
            assert fuzzed.refused[ErrorCode.INVALID_RECORD] > count / 50
            before = fuzzed.check_readers()
            shutil.copytree(path / "data", path / "killed")
            fuzzed.compact()
            compacted = fuzzed.check_readers()
        with running(path / "data") as stopped:
            assert stopped.check_readers() == compacted
        (path / "killed" / ".kafka_cleanshutdown").unlink(missing_ok=True)
        with running(path / "killed") as killed:
            assert killed.check_readers() == before
    for topic in TOPICS.keys() - {"compacted"}:
        assert compacted[topic] == before[topic]
    keys = [record.key for record in compacted["compacted"]]
    assert {record.key for record in before["compacted"]} == set(keys)
    complaints = [record for record in caplog.records if "cannot" in record.getMessage()]
    assert not complaints, complaints[0].getMessage()


@pytest.mark.slow
def test_what_is_accepted_can_be_read_and_the_next_start_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fuzz_accepted(tmp_path, caplog, seed=seed_of("accepted"), count=4_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(40, 50))
def test_all_that_is_accepted_of_many_batches_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    fuzz_accepted(tmp_path, caplog, seed=seed, count=40_000)
