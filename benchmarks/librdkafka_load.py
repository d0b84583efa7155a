"""Load by librdkafka (confluent-kafka), each client in a process of its own."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AdminClient, NewTopic

from broker.batch.codec import encode_batch
from broker.client import producer as open_producer
from broker.model import TopicPartition

T = TypeVar("T")
PROCESSES = multiprocessing.get_context("spawn")
LATENCY_RATE = 1000
WARM_UP_SHARE = 0.3
BATCH_BYTES = 64_000

# Without these librdkafka pauses for a second when its queue is full, and measures itself.
CONSUMER_SETTINGS = {
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 262_144,
    "fetch.message.max.bytes": 4_194_304,
    "enable.auto.commit": False,
}


def in_process(work: Callable[..., T], *arguments: object) -> T:
    """Run one client in a fresh process and return its result."""
    with ProcessPoolExecutor(max_workers=1, mp_context=PROCESSES) as pool:
        return pool.submit(work, *arguments).result()


def create_topic(bootstrap: str, topic: str, partitions: int, config: dict[str, str]) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    created = admin.create_topics([NewTopic(topic, partitions, 1, config=config)])
    created[topic].result(30)


def produce(bootstrap: str, topic: str, count: int, size: int) -> float:
    """Produce records; return records per second, up to the last acknowledgement."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.size": 65_536,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1_048_576,
            "acks": "all",
        }
    )
    value = bytes(range(256)) * (size // 256) + bytes(size % 256)
    producer.list_topics(topic, timeout=30)
    started = time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if index % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    return count / (time.perf_counter() - started)


def fill(bootstrap: str, topic: str, partitions: int, count: int, size: int) -> int:
    """Write the same full batches to any broker, so that readers find the same bytes; how many."""
    per_batch = BATCH_BYTES // size
    now_ms = int(time.time() * 1000)  # what is older than retention.ms would soon be gone
    batch = encode_batch([(None, bytes(size), (), now_ms)] * per_batch)
    batches = count // per_batch
    with open_producer(bootstrap, enable_idempotence=False, linger_ms=0) as out:
        for number in range(batches):
            out.send_batch(TopicPartition(topic, number % partitions), batch)
    return batches * per_batch


def consume(bootstrap: str, topic: str, partitions: int, count: int) -> float:
    """Consume from the beginning; return records per second, from the first record on."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", **CONSUMER_SETTINGS})
    consumer.assign([Assigned(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
    seen = len(consumer.consume(1, 30))
    started = time.perf_counter()
    while seen < count:
        seen += len(consumer.consume(10_000, 1.0))
    seconds = time.perf_counter() - started
    consumer.close()
    return seen / seconds


def _paced_producer(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    producer.list_topics(topic, timeout=30)
    started = time.monotonic_ns()
    for index in range(count):
        due = started + index * 1_000_000_000 // LATENCY_RATE
        while (wait_ns := due - time.monotonic_ns()) > 0:
            time.sleep(wait_ns / 1e9)
        producer.produce(topic, time.monotonic_ns().to_bytes(8, "big") + bytes(92))
        producer.poll(0)
    producer.flush(30)


def latency(bootstrap: str, topic: str, count: int) -> tuple[float, float]:
    """Produce-to-consume latency at a fixed rate: (p50, p99) in ms, warm-up left out."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "latency",
            "fetch.wait.max.ms": 500,
            "fetch.min.bytes": 1,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([Assigned(topic, 0, OFFSET_BEGINNING)])
    consumer.poll(1.0)
    producer = PROCESSES.Process(target=_paced_producer, args=(bootstrap, topic, count))
    producer.start()
    taken: list[int] = []
    while len(taken) < count:
        message = consumer.poll(30.0)
        now = time.monotonic_ns()
        assert message is not None, "no record for 30 s"
        if message.error() is None:
            taken.append(now - int.from_bytes(message.value()[:8], "big"))
    producer.join()
    consumer.close()
    steady = sorted(taken[int(count * WARM_UP_SHARE) :])
    return steady[len(steady) // 2] / 1e6, steady[int(len(steady) * 0.99)] / 1e6
