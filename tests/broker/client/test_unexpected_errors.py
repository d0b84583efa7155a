"""Threads that many clients share outlast what one client does wrong."""

import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

import pytest

from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.client.embedded import EmbeddedTransport
from broker.client.heartbeats import Heartbeats, HeartbeatSchedule
from broker.client.network import NetworkTransport
from broker.client.peer import Peer
from broker.client.shared_threads import SharedThreads
from broker.client.sharing import SharedTransports
from broker.clock import ManualClock
from broker.errors import ConnectionFailed, MillstreamError
from broker.model import FileSlice
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.client.test_embedded import LateBroker
from tests.support.peer import wait_until

TIMEOUT_MS = 60_000


@pytest.fixture(params=["embedded", "tcp"])
def shared(request: pytest.FixtureRequest) -> Iterator[SharedTransports]:
    with SharedTransports(request.getfixturevalue(f"{request.param}_target")) as transports:
        yield transports


@pytest.mark.parametrize("topic", [NewTopic("many", 2**40), NewTopic("\ud800", 1)])
def test_a_value_that_cannot_be_sent_is_an_error_of_its_client_alone(
    shared: SharedTransports, topic: NewTopic
) -> None:
    with admin(shared) as wrong, admin(shared) as other:
        other.list_topics()
        with pytest.raises(MillstreamError):
            wrong.create_topics([topic]).all()
        assert topic.name not in other.list_topics()
        assert topic.name not in wrong.list_topics()


def test_an_unexpected_error_of_connections_closes_those_of_one_client(
    tcp_target: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    step = NetworkTransport.step
    broken: list[NetworkTransport] = []

    def break_once(self: NetworkTransport, ready: Iterable[Peer]) -> None:
        if not broken and threading.current_thread().name == "millstream-network":
            broken.append(self)
            raise RuntimeError("nobody expected this")
        step(self, ready)

    with SharedTransports(tcp_target) as shared:
        first, second = shared.open({}), shared.open({})
        assert ask(second).result(60) is not None
        monkeypatch.setattr(NetworkTransport, "step", break_once)
        with pytest.raises(ConnectionFailed, match="nobody expected this"):
            ask(first).result(60)
        assert ask(first).result(60) is not None
        assert ask(second).result(60) is not None
    assert len(broken) == 1
    assert "unexpected error" in caplog.text


def ask(transport: object) -> Future[object]:
    future: Future[object] = transport.send(  # type: ignore[attr-defined]
        None, MetadataRequest([]), timeout_ms=TIMEOUT_MS
    )
    return future


class BadFile:
    """A file whose disk fails."""

    def read(self, size: int, position: int) -> bytes:
        raise OSError(5, "Input/output error")


def test_records_that_cannot_be_read_fail_one_answer_of_an_embedded_broker() -> None:
    late = LateBroker()
    transport = EmbeddedTransport(late, client_id="tester")
    fetched, other = ask(transport), ask(transport)
    records = FileSlice(BadFile(), 0, 10)  # type: ignore[arg-type]
    partition = PartitionData(0, records=records)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    late.pending[0].complete(answer)
    with pytest.raises(ConnectionFailed, match="cannot read records"):
        fetched.result(60)
    late.pending[1].complete(MetadataResponse())
    assert isinstance(other.result(60), MetadataResponse)
    transport.close()


class Member:
    """A member whose first heartbeats raise what nobody expects."""

    needs_heartbeats = True

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.sent = threading.Event()

    def send_heartbeat(self) -> Future[object] | None:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError("nobody expected this")
        self.sent.set()
        return Future()

    def on_poll_timeout(self) -> None:
        raise AssertionError

    def on_session_timeout(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("is_shared", [False, True])
def test_heartbeats_go_on_after_an_unexpected_error(
    is_shared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock, member = ManualClock(), Member(failures=2)
    schedule = HeartbeatSchedule(interval_ms=3_000, session_ms=10**9, poll_max_ms=10**9)
    schedule.polled(clock.monotonic_ms())
    schedule.joined(clock.monotonic_ms())
    shared = SharedThreads("beats", 1, clock) if is_shared else None
    heartbeats = Heartbeats(member, schedule, clock, retry_backoff_ms=100, shared=shared)
    with caplog.at_level(logging.ERROR):
        heartbeats.start()

        def is_sent() -> bool:
            clock.advance(100)
            return member.sent.is_set()

        wait_until(is_sent, "a heartbeat after those that failed")
    assert member.failures < 0
    assert caplog.text.count("RuntimeError: nobody expected this") == 2
    heartbeats.stop()
    if shared is not None:
        shared.close()
