"""One Apache Kafka for all tests that need no special settings.

They run in one pytest worker, whatever their modules, so that Kafka is started once. Their
topics, groups and transactional ids have unique names.
"""

from collections.abc import Iterator

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.peer import PeerMissing, skip_without_peer

MARKS = [pytest.mark.slow, pytest.mark.peer, pytest.mark.xdist_group("kafka")]
# Settings that reduce waiting; all others have their defaults.
SETTINGS = {
    "log.retention.ms": "-1",  # some records have old timestamps
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="session")
def kafka_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A node that runs until the worker ends; skips the test if Kafka is not available."""
    try:
        kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    with kafka:
        yield kafka
