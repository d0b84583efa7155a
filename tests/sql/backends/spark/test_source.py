"""The stream reader in the driver: what it plans and what it deletes, without Spark itself."""

import json
from dataclasses import dataclass, replace

import pytest

pytest.importorskip("pyspark", reason="Spark's own tests: install pyspark, pandas<3 and pyarrow")

from broker.client import admin
from broker.client.api import OffsetAndMetadata
from broker.clock import ManualClock
from broker.model import TopicPartition
from sql.backends.spark.group_offsets import OffsetCommitter
from sql.backends.spark.log_ends import LogEnds
from sql.backends.spark.offsets import PACKING
from sql.backends.spark.options import SourceOptions
from sql.backends.spark.purging import INTERVAL_MS, purge_committed
from sql.backends.spark.source import RecordStreamReader
from tests.sql.backends.spark.cluster import create, fill, reading

pytestmark = pytest.mark.slow


def tasks_of(options: SourceOptions, start: object, end: object) -> list[list[int]]:
    """The partitions that each task reads."""
    reader = RecordStreamReader(options)
    found = reader.partitions(start, end)  # type: ignore[arg-type] # as Spark gives them
    reader.stop()
    return [[span.partition for span in task.spans] for task in found]


def test_a_micro_batch_that_is_done_again_has_the_tasks_that_it_had(servers: str) -> None:
    topic = create(servers, "packed", 4)
    for partition in range(4):
        fill(servers, topic, range(10 * (partition + 1)), partition=partition)
    options = reading(servers, topic, starting="earliest", tasks=2)
    reader = RecordStreamReader(options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    reader.stop()
    before = tasks_of(options, start, end)
    assert len(before) == 2
    for other in (replace(options, tasks=4), replace(options, tasks=0, min_partitions=9)):
        assert tasks_of(other, start, end) == before
        again = RecordStreamReader(other)
        assert again.latestOffset(end, again.getDefaultReadLimit()) == end, "nothing is new"
        again.stop()
    plain = {name: places for name, places in end.items() if name != PACKING}
    assert len(tasks_of(replace(options, tasks=4), start, plain)) == 4, "of an earlier version"


def first_offsets(servers: str, *places: TopicPartition) -> list[int]:
    """Where logs begin."""
    with admin(servers) as administration:
        found = administration.list_offsets(dict.fromkeys(places, -2)).all()
    return [found[tp].offset for tp in places]


def test_what_was_read_of_a_repartition_topic_is_deleted_and_nothing_else(servers: str) -> None:
    source, between = create(servers, "purge-in", 1), create(servers, "purge-repartition", 1)
    places = TopicPartition(source, 0), TopicPartition(between, 0)
    for topic in (source, between):
        fill(servers, topic, range(10))
    clock = ManualClock()
    options = reading(servers, source, between, purged_topics=(between,))
    ends = LogEnds(options, clock)
    ends.commit(dict.fromkeys(places, 4))
    assert first_offsets(servers, *places) == [0, 0], "not with each batch"
    clock.advance(INTERVAL_MS)
    ends.commit(dict.fromkeys(places, 6))
    assert first_offsets(servers, *places) == [0, 6]
    ends.close()
    with admin(servers) as administration:
        read = dict.fromkeys(places, OffsetAndMetadata(8))
        administration.alter_group_offsets("purge-group", read).all()
        purge_committed(administration, "purge-group", (between,))
    assert first_offsets(servers, *places) == [0, 8], "when the query ends"


@dataclass
class Source:
    """What Spark says of a source after a batch."""

    endOffset: str


@dataclass
class Progress:
    """What Spark says of a query after a batch."""

    name: str
    sources: list[Source]


@dataclass
class Event:
    """What a listener gets."""

    progress: Progress


def test_what_sparks_own_connector_has_read_is_committed_and_deleted_too(servers: str) -> None:
    source, between = create(servers, "kafka-in", 1), create(servers, "kafka-repartition", 1)
    places = TopicPartition(source, 0), TopicPartition(between, 0)
    for topic in (source, between):
        fill(servers, topic, range(10))
    clock = ManualClock()
    listener = OffsetCommitter(servers, "listening", (between,), clock)

    def batch(end: int, query: str = "listening") -> None:
        text = json.dumps({source: {"0": end}, between: {"0": end}})
        listener.onQueryProgress(Event(Progress(query, [Source(text)])))

    batch(4)
    assert first_offsets(servers, *places) == [0, 0]
    clock.advance(INTERVAL_MS)
    batch(9, "another")
    batch(6)
    assert first_offsets(servers, *places) == [0, 6]
    with admin(servers) as administration:
        found = administration.list_group_offsets("listening").all()
    assert [found[tp].offset for tp in places] == [6, 6]
