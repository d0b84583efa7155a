"""The same topologies, described by a real Kafka Streams: not a sign may differ."""

import re
from pathlib import Path

import pytest

from tests.streams.topology.topologies import ALL
from tests.support.apache_kafka import java_command, run_java
from tests.support.kafka_streams import fetch_kafka_streams
from tests.support.peer import PeerMissing, skip_without_peer

SOURCE = Path(__file__).parents[2] / "support" / "java" / "Topologies.java"

pytestmark = [pytest.mark.peer, pytest.mark.slow]


@pytest.fixture(scope="module")
def described() -> dict[str, str]:
    """What Kafka Streams prints, by the name of the topology."""
    try:
        class_path = fetch_kafka_streams().compile(SOURCE)
    except PeerMissing as missing:
        skip_without_peer(missing)
    printed = run_java(java_command(class_path, "Topologies"))
    _, *parts = re.split(r"^== (\w+)\n", printed, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_both_sides_make_the_same_topologies(described: dict[str, str]) -> None:
    assert set(described) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_topology_is_described_as_by_kafka_streams(name: str, described: dict[str, str]) -> None:
    assert ALL[name]().describe() == described[name]
