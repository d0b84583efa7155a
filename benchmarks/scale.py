"""The broker at scale: memory after many gigabytes, thousands of partitions."""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import librdkafka_load as load
from benchmarks.report import Report
from benchmarks.sides import millstream, resident_mb
from tests.support.millstream_broker import MillstreamBroker

GIGABYTE = 1_000_000_000
TOPICS = 1000
PARTITIONS_EACH = 5


def measure_memory(report: Report, options: argparse.Namespace) -> None:
    """Measure resident memory after producing and consuming 10 GB."""
    gigabytes = 10 * options.scale
    count = int(gigabytes * GIGABYTE / 4 / 10_000)
    with millstream() as side:
        before = resident_mb(side.process_id)
        for number in range(4):
            topic = f"memory-{number}"
            config = {"retention.bytes": "1000000000", "segment.bytes": "250000000"}
            load.create_topic(side.bootstrap, topic, 4, config)
            load.in_process(load.produce, side.bootstrap, topic, count, 10_000)
            load.in_process(load.consume, side.bootstrap, topic, 4, count)
            report.say(f"   {(number + 1) * gigabytes / 4:.1f} GB")
        report.add("resident memory at start", "MB", before, higher_is_better=False)
        name = f"resident memory after {gigabytes:.0f} GB"
        report.add(name, "MB", resident_mb(side.process_id), higher_is_better=False)


def _fill(bootstrap: str) -> tuple[float, float]:
    """Create the topics and write a record to each partition; return the seconds of both."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    names = [f"topic-{number:04}" for number in range(TOPICS)]
    started = time.perf_counter()
    for first in range(0, TOPICS, 100):
        new = [NewTopic(name, PARTITIONS_EACH, 1) for name in names[first : first + 100]]
        for created in admin.create_topics(new).values():
            created.result(60)
    created_at = time.perf_counter()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for name in names:
        for partition in range(PARTITIONS_EACH):
            producer.produce(name, b"x" * 100, partition=partition)
            producer.poll(0)
    assert producer.flush(120) == 0
    return created_at - started, time.perf_counter() - created_at


def measure_partitions(report: Report, _: argparse.Namespace) -> None:
    """Measure start, recovery and memory with 1,000 topics of 5 partitions."""
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
    broker = MillstreamBroker(folder)
    try:
        broker.start()
        created, written = load.in_process(_fill, broker.bootstrap)
        report.add("create 1,000 topics / 5,000 partitions", "s", created, higher_is_better=False)
        report.add("first record into each partition", "s", written, higher_is_better=False)
        assert broker.pid is not None
        memory = resident_mb(broker.pid)
        report.add("resident memory, 5,000 partitions", "MB", memory, higher_is_better=False)
        for what, end in (("clean stop", broker.stop), ("SIGKILL", broker.kill)):
            end()
            started = time.perf_counter()
            broker.start(timeout_s=120)
            seconds = time.perf_counter() - started
            report.add(
                f"start after {what}, 5,000 partitions", "s", seconds, higher_is_better=False
            )
        memory = resident_mb(broker.pid)
        report.add("resident memory after recovery", "MB", memory, higher_is_better=False)
    finally:
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)
