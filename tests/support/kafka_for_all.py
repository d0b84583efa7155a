"""One Apache Kafka for all tests that need no settings of their own.

They run in one worker of pytest, whatever their modules are, so that it is started once. Their
topics, groups and transactional ids have names that no other test uses.
"""

from collections.abc import Iterator

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.peer import PeerMissing, skip_without_peer

MARKS = [pytest.mark.slow, pytest.mark.peer, pytest.mark.xdist_group("kafka")]
# What makes waiting shorter; everything else stays at the defaults that users get.
SETTINGS = {
    "log.retention.ms": "-1",  # some records are of long ago
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="session")
def kafka_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A node that runs until the worker ends, or a skip that says why there is none."""
    try:
        kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    with kafka:
        yield kafka
