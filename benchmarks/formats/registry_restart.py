"""Start time and memory of a registry with many schemas."""

import argparse
import tempfile
import time
import tracemalloc
from dataclasses import dataclass

from benchmarks.report import Report
from broker.broker import Broker
from broker.client import producer
from broker.client.opening import Target
from broker.config import BrokerConfig
from broker.registry.records import SchemaRecord, encode
from broker.registry.registry import Registry
from broker.registry.values import StoredSchema
from broker.serde.schema.schema import Schema

SCHEMAS = 100_000
SETTINGS = {"transaction.state.log.num.partitions": "1"}


@dataclass(frozen=True, slots=True)
class Restart:
    """The cost of one start: time, and memory that stays in use."""

    schemas: int
    seconds: float
    memory_bytes: int


def measure_restart(schemas: int, *, memory: bool = False) -> Restart:
    """Start a registry on a topic of `schemas` distinct schemas, in an embedded broker.

    Measuring memory slows the start: measure time in another run.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = BrokerConfig.from_properties(SETTINGS)
        with Broker(config, data_directory=folder) as broker:
            with Registry(broker):
                pass  # creates the topic
            write_schemas(broker, "_schemas", schemas)
            return _restart(broker, schemas, memory=memory)


def measure(report: Report, options: argparse.Namespace) -> None:
    """Time and memory of a restart."""
    del options
    timed = measure_restart(SCHEMAS)
    counted = measure_restart(SCHEMAS, memory=True)
    report.add(f"registry: restart with {SCHEMAS:,} schemas", "s", timed.seconds)
    report.add("registry: memory of the schemas", "MB", counted.memory_bytes / 1e6)


def write_schemas(target: Target, topic: str, schemas: int) -> None:
    """Fill a registry's topic with small distinct Avro schemas, one per subject."""
    with producer(target, batch_size=256 * 1024) as out:
        for number in range(1, schemas + 1):
            stored = example(number)
            key, value = encode(SchemaRecord(stored.subject, 1, stored))
            out.send(topic, value, key, partition=0)


def example(number: int) -> StoredSchema:
    """A schema with the id and subject of this number."""
    text = (
        f'{{"type":"record","name":"Order{number}","namespace":"shop","fields":['
        '{"name":"id","type":"long"},{"name":"customer","type":"string"},'
        '{"name":"amount","type":"double","default":0.0}]}'
    )
    return StoredSchema(f"orders-{number}-value", 1, number, "", Schema(text))


def _restart(target: Target, schemas: int, *, memory: bool) -> Restart:
    registry = Registry(target)
    if memory:
        tracemalloc.start()
    try:
        started = time.perf_counter()
        registry.start()
        seconds = time.perf_counter() - started
        used = tracemalloc.get_traced_memory()[0] if memory else 0
        assert registry.max_id() == schemas
        assert registry.schema(schemas) == example(schemas).schema
    finally:
        if memory:
            tracemalloc.stop()
        registry.close()
    return Restart(schemas, seconds, used)
