"""Finding the first broker: an error soon when there is none, patience once there was one."""

import socket
from collections.abc import Iterator

import pytest

from broker import Broker
from broker.client import admin, consumer, producer
from broker.errors import BrokersUnreachable, ClientError, RequestTimeout
from broker.protocol.frame import Request
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from tests.broker.client.fake_broker import FakeBroker

SOON_MS = 60
LONG_MS = 600_000  # a call that takes so long fails the test by its own limit


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address that refuses connections, since it is bound and nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_an_admin_says_soon_that_no_broker_answers(nowhere: str) -> None:
    with (
        admin(nowhere, bootstrap_timeout_ms=SOON_MS, default_api_timeout_ms=LONG_MS) as cluster,
        pytest.raises(BrokersUnreachable, match="connection refused") as caught,
    ):
        cluster.list_topics()
    assert nowhere in caught.value.message
    assert "start a broker" in caught.value.hint


def test_a_producer_says_soon_that_no_broker_answers(nowhere: str) -> None:
    with (
        producer(nowhere, bootstrap_timeout_ms=SOON_MS, max_block_ms=LONG_MS) as out,
        pytest.raises(BrokersUnreachable),
    ):
        out.send("t", b"value")


def test_a_consumer_says_soon_that_no_broker_answers(nowhere: str) -> None:
    with (
        consumer(nowhere, bootstrap_timeout_ms=SOON_MS, default_api_timeout_ms=LONG_MS) as reader,
        pytest.raises(BrokersUnreachable),
    ):
        reader.partitions_for("t")


def test_a_name_that_cannot_be_resolved_is_said_soon() -> None:
    with (
        admin("name.invalid:9092", bootstrap_timeout_ms=SOON_MS) as cluster,
        pytest.raises(BrokersUnreachable, match=r"name\.invalid"),
    ):
        cluster.list_topics()


def test_a_shorter_call_ends_with_its_own_time(nowhere: str) -> None:
    with (
        admin(nowhere, bootstrap_timeout_ms=LONG_MS) as cluster,
        pytest.raises(RequestTimeout, match="connection refused"),
    ):
        cluster.list_topics(timeout_ms=SOON_MS)


def test_a_call_that_waited_for_the_next_attempt_to_connect_says_why(nowhere: str) -> None:
    with (
        admin(nowhere, bootstrap_timeout_ms=400, reconnect_backoff_ms=1_000) as cluster,
        pytest.raises(BrokersUnreachable, match="connection refused"),
    ):
        cluster.list_topics()


def test_a_consumer_that_waited_for_the_next_attempt_says_why(nowhere: str) -> None:
    with (
        consumer(nowhere, bootstrap_timeout_ms=400, reconnect_backoff_ms=1_000) as reader,
        pytest.raises(BrokersUnreachable, match="connection refused"),
    ):
        reader.partitions_for("t")


def test_who_has_reached_a_broker_outlasts_its_restart() -> None:
    def script(request: Request) -> object:
        if not isinstance(request.body, MetadataRequest):
            return None
        brokers = [MetadataResponseBroker(0, "127.0.0.1", fake.port)]
        return MetadataResponse(brokers=brokers, controller_id=0)

    with FakeBroker(script) as fake:
        cluster = admin(fake.address, bootstrap_timeout_ms=SOON_MS)
        cluster.list_topics()
    with cluster, pytest.raises(RequestTimeout, match="did not succeed within 200 ms"):
        cluster.list_topics(timeout_ms=200)


@pytest.mark.parametrize("opened", [admin, consumer, producer])
def test_a_broker_in_this_process_must_be_started(opened: object) -> None:
    with pytest.raises(ClientError, match="never started") as caught:
        opened(Broker())  # type: ignore[operator]
    assert "start()" in caught.value.hint
