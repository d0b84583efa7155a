"""Answers about leader epochs are those of Apache Kafka, also about epochs that never existed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import admin, producer
from broker.client.api import NewTopic
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.compatibility.conftest import SETTINGS
from tests.support.apache_kafka import ApacheKafka, KafkaRelease
from tests.support.millstream_broker import MillstreamBroker
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.slow, pytest.mark.peer]

TOPIC = "t"
VERSION = 12  # topics have names here, and partitions their last epoch
RECORDS = 5
WAIT_MS = 60_000
# What a reader believes: the present epoch, the epoch of the record before, where it reads.
FETCHES = [
    *((current, last, 2) for current in (-1, 0, 1, 7) for last in (-1, 0, 1, 7)),
    *((-1, last, offset) for last in (-1, 0, 7) for offset in (0, RECORDS, RECORDS + 1)),
    (-1, -2, 2),
]
EPOCHS = [(current, epoch) for current in (-1, 0, 7) for epoch in (-2, -1, 0, 1, 7)]


def fetched(client: RawClient, current: int, last: int, offset: int) -> tuple[object, ...]:
    part = FetchPartition(0, current, offset, last, -1, 1 << 20)
    request = FetchRequest(
        max_wait_ms=1, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[part])]
    )
    answer = client.ask(request, FetchResponse, VERSION)
    data = answer.responses[0].partitions[0]
    diverging = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
    return data.error_code, diverging, bool(data.records), data.high_watermark


def end_of(client: RawClient, current: int, epoch: int) -> tuple[object, ...]:
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[part])]
    )
    answer = client.ask(request, OffsetForLeaderEpochResponse, 3)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


def answers(bootstrap: str) -> Iterator[tuple[object, ...]]:
    with admin(bootstrap) as cluster:
        cluster.create_topics([NewTopic(TOPIC, 1)]).all()
    with producer(bootstrap) as out:
        for number in range(RECORDS):
            out.send(TOPIC, b"%d" % number, partition=0).result(WAIT_MS)
    client = RawClient(bootstrap)
    with client:
        for current, last, offset in FETCHES:
            yield "fetch", current, last, offset, fetched(client, current, last, offset)
        for current, epoch in EPOCHS:
            yield "end of epoch", current, epoch, end_of(client, current, epoch)


def test_epochs_are_answered_as_by_apache_kafka(apache_kafka: KafkaRelease, tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path / "ours", settings=SETTINGS) as ours:
        found = list(answers(ours.bootstrap))
    with ApacheKafka(tmp_path / "kafka") as kafka:
        assert found == list(answers(kafka.bootstrap))
