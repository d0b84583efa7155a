"""The broker that real clients talk to.

It is ours; MILLSTREAM_COMPAT_TARGET=kafka puts Apache Kafka in its place, to settle a doubt.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.support.apache_kafka import ApacheKafka, KafkaRelease, fetch_apache_kafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer

Target = MillstreamBroker | ApacheKafka

# What makes waiting shorter; everything else stays at the defaults that users get.
SETTINGS = {
    "log.retention.ms": "-1",  # some records are of long ago
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
# Kafka refuses such a short heartbeat interval unless its lower bound is moved too, and lets a
# second pass between two assignments of a group.
KAFKA_SETTINGS = {
    **SETTINGS,
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}


def pytest_configure(config: pytest.Config) -> None:
    """Lets pass the warnings that clients raise about themselves; all others stay errors."""
    # kafka-python reads its message descriptions by a deprecated function of the library.
    config.addinivalue_line(
        "filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning"
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One broker for the tests of one client."""
    folder = tmp_path_factory.mktemp("broker")
    if os.environ.get("MILLSTREAM_COMPAT_TARGET") == "kafka":
        with ApacheKafka(folder, settings=KAFKA_SETTINGS) as kafka:
            yield kafka
    else:
        with MillstreamBroker(folder, settings=SETTINGS) as broker:
            yield broker


@pytest.fixture(scope="module")
def bootstrap(target: Target) -> str:
    """The address that clients are given."""
    return target.bootstrap


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes names that no other test uses, for topics and groups on the shared broker."""
    return lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def apache_kafka() -> KafkaRelease:
    """The release of Apache Kafka with its tools and Java client, or a skip that says why not."""
    try:
        return fetch_apache_kafka()
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")


# Facts are whatever JSON a scenario printed; each test knows the shape of its own.
Facts = Callable[[str], dict[str, object]]


def facts_of(printed: str) -> Facts:
    """What a client saw in its scenarios; one that failed fails its own test only."""
    outcomes = {line["scenario"]: line for line in map(json.loads, printed.splitlines())}

    def of(scenario: str) -> dict[str, object]:
        outcome = outcomes[scenario]
        assert "error" not in outcome, outcome["error"]
        seen: dict[str, object] = outcome["facts"]
        return seen

    return of
