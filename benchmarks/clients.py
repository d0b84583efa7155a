"""Our network client compared with confluent-kafka, both on our broker in the same run."""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

from benchmarks import librdkafka_load as load
from benchmarks.report import Report
from benchmarks.sides import Side, millstream
from broker.client import consumer, producer
from broker.model import TopicPartition

PEER = "confluent-kafka"
PARTITIONS = 4
RECORDS = 1_000_000
SIZE = 100
TOPICS = (f"clients-{number}" for number in itertools.count())


def produce(bootstrap: str, topic: str, count: int, size: int) -> float:
    """Produce with our client; return records per second up to the last acknowledgement."""
    value = bytes(size)
    with producer(bootstrap, linger_ms=5, batch_size=65_536, acks="all") as out:
        out.partitions_for(topic)
        started = time.perf_counter()
        for _ in range(count):
            out.send(topic, value)
        out.flush()
        return count / (time.perf_counter() - started)


def consume(bootstrap: str, topic: str, partitions: int, count: int) -> float:
    """Consume records with our client; return records per second since the first poll."""
    with consumer(bootstrap, auto_offset_reset="earliest", **FETCH) as reader:
        reader.assign([TopicPartition(topic, number) for number in range(partitions)])
        seen = 0
        started = time.perf_counter()
        while seen < count:
            polled = len(reader.poll(timeout_ms=1000, max_records=10_000))
            if not seen:
                started = time.perf_counter()
            seen += polled
        return seen / (time.perf_counter() - started)


def consume_batches(bootstrap: str, topic: str, partitions: int, count: int) -> float:
    """Consume raw batches with our client; return records per second since the first poll."""
    with consumer(bootstrap, auto_offset_reset="earliest", **FETCH) as reader:
        reader.assign([TopicPartition(topic, number) for number in range(partitions)])
        seen = 0
        started = time.perf_counter()
        while seen < count:
            batches = reader.poll_batches(timeout_ms=1000)
            if not seen:
                started = time.perf_counter()
            seen += sum(batch.last_offset - batch.first_offset + 1 for batch in batches)
        return seen / (time.perf_counter() - started)


FETCH = {"max_partition_fetch_bytes": 4_194_304, "fetch_max_bytes": 52_428_800}


def measure(report: Report, options: argparse.Namespace) -> None:
    """Measure the clients alternately."""
    count = int(RECORDS * options.scale)
    produced: list[tuple[float, float]] = []
    consumed: list[tuple[float, float, float]] = []
    with millstream() as side:
        for _ in range(options.rounds):
            topic = _filled(side, count)
            produced.append((_produce(side, produce, count), _produce(side, load.produce, count)))
            consumed.append(
                (
                    _consume(side, consume, topic, count),
                    _consume(side, consume_batches, topic, count),
                    _consume(side, load.consume, topic, count),
                )
            )
    ours, theirs = (statistics.median(column) / 1000 for column in zip(*produced, strict=True))
    report.add("client produce 100 B", "k records/s", ours, theirs, peer=PEER)
    records, batches, theirs = (
        statistics.median(column) / 1000 for column in zip(*consumed, strict=True)
    )
    report.add("client consume 100 B, records", "k records/s", records, theirs, peer=PEER)
    report.add("client consume 100 B, raw batches", "k records/s", batches, theirs, peer=PEER)


def _filled(side: Side, count: int) -> str:
    topic = next(TOPICS)
    load.create_topic(side.bootstrap, topic, PARTITIONS, {})
    load.in_process(load.produce, side.bootstrap, topic, count, SIZE)
    return topic


def _produce(side: Side, work: Callable[[str, str, int, int], float], count: int) -> float:
    topic = next(TOPICS)
    load.create_topic(side.bootstrap, topic, PARTITIONS, {})
    return load.in_process(work, side.bootstrap, topic, count, SIZE)


def _consume(
    side: Side, work: Callable[[str, str, int, int], float], topic: str, count: int
) -> float:
    return load.in_process(work, side.bootstrap, topic, PARTITIONS, count)
