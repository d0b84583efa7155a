"""Damaged requests that can still be read, handled by a broker in this process."""

import logging
import resource
import time
from pathlib import Path
from random import Random

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.frame import Request, decode_request, encode_response
from broker.protocol.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from tests.broker.fuzz.corpus import NAMES, requests
from tests.broker.fuzz.mutation import Mutator
from tests.support.seeds import seed_of

CASE_SECONDS_MAX = 5.0
WAITING_MAX = 200
PARTITIONS_MAX = 20
MEMORY_GROWTH_MAX = 200 << 20

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
}


class FuzzedBroker:
    """A broker, and the answers it still owes."""

    def __init__(self, path: Path, seed: int) -> None:
        self.clock = ManualClock()
        self.broker = Broker(
            BrokerConfig.from_properties(SETTINGS), clock=self.clock, data_directory=str(path)
        )
        self.broker.start()
        self.random = Random(seed)
        self.frames = requests(self.random)
        self.mutator = Mutator(self.random)
        self.waiting: list[Pending[object]] = []
        self.handled = 0

    def run(self, count: int) -> None:
        """Send damaged requests; topics come back when they were deleted, and time passes."""
        for number in range(count):
            if number % 200 == 0:
                self.make_topics()
                self.clock.advance(self.random.choice((10, 1000, 60_000)))
                self.broker.run_due()
            start = time.thread_time()
            self.one_case()
            taken = time.thread_time() - start
            assert taken < CASE_SECONDS_MAX, f"case {number} took {taken:.1f} s"

    def make_topics(self) -> None:
        with self.broker.lock:
            for name in NAMES[:2]:
                if self.broker.state.topics.get(name) is None:
                    self.broker.state.topics.create(name, partition_count=2)

    def one_case(self) -> None:
        frame = self.mutator.damaged_frame(self.random.choice(self.frames), self.frames)
        try:
            request = decode_request(memoryview(frame))
        except BrokerError:
            return
        if makes_many_partitions(request.body):
            return
        self.handled += 1
        try:
            answer = self.broker.handle(
                request.api_key, request.api_version, request.body, ConnectionInfo("fuzz")
            )
        except BrokerError:
            return
        if isinstance(answer, Pending):
            self.wait(request, answer)
        elif answer is not None:
            encode(request, answer)

    def wait(self, request: Request, answer: Pending[object]) -> None:
        self.broker.when_done(answer, lambda response: encode(request, response))
        self.waiting.append(answer)
        if len(self.waiting) > WAITING_MAX:
            self.broker.abandon(self.waiting.pop(0))


def encode(request: Request, response: object) -> None:
    encode_response(request.api_key, request.api_version, request.correlation_id, response)


def makes_many_partitions(body: object) -> bool:
    """Thousands of partitions may be asked for; that takes long and is no damage."""
    if isinstance(body, CreateTopicsRequest):
        return any(topic.num_partitions > PARTITIONS_MAX for topic in body.topics)
    if isinstance(body, CreatePartitionsRequest):
        return any(topic.count > PARTITIONS_MAX for topic in body.topics)
    return False


def fuzz_handlers(path: Path, caplog: pytest.LogCaptureFixture, *, seed: int, count: int) -> None:
    fuzzed = FuzzedBroker(path, seed)
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    try:
        with caplog.at_level(logging.WARNING):
            fuzzed.run(count)
    finally:
        fuzzed.broker.close()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not errors, logging.Formatter().format(errors[0])
    assert fuzzed.handled > count / 10
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - memory_before
    assert grown < MEMORY_GROWTH_MAX


@pytest.mark.slow
def test_damaged_requests_are_answered_or_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fuzz_handlers(tmp_path, caplog, seed=seed_of("handlers"), count=20_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(30, 35))
def test_many_damaged_requests_are_answered_or_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    fuzz_handlers(tmp_path, caplog, seed=seed, count=40_000)
