"""What must be true of a broker's data, given what it acknowledged."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.broker.crash.workers import (
    INPUT_TOPIC,
    LEDGER_TOPIC,
    PARTITIONS,
    PATIENCE_S,
    PLAIN_TOPIC,
    IdempotentWorker,
    OffsetWorker,
    Outcome,
    TransactionalWorker,
    Workers,
)


@dataclass(frozen=True, slots=True)
class Read:
    """A record as a reader sees it."""

    offset: int
    value: bytes


def check_everything(bootstrap: str, workers: Workers) -> str:
    """Raises AssertionError for what was lost, doubled, out of order or half; a summary."""
    plain = read_topic(bootstrap, PLAIN_TOPIC, isolation="read_uncommitted")
    for idempotent in workers.idempotent:
        check_idempotent(idempotent, plain)
    ledger = read_topic(bootstrap, LEDGER_TOPIC, isolation="read_committed")
    for transactional in workers.transactional:
        check_transactional(transactional, ledger)
        check_transactional_offsets(bootstrap, transactional, ledger)
    for offsets in workers.offsets:
        check_offsets(bootstrap, offsets)
    acknowledged = sum(len(worker.acknowledged) for worker in workers.idempotent)
    ended = Counter(
        outcome.ended for worker in workers.transactional for outcome in worker.outcomes
    )
    restarts = sum(worker.restarts for worker in workers.transactional)
    commits = sum(worker.acknowledged for worker in workers.offsets)
    return (
        f"{acknowledged} records acknowledged, transactions {dict(ended)}, {restarts} producers "
        f"started anew, {commits} offset commits"
    )


def read_topic(bootstrap: str, topic: str, *, isolation: str) -> dict[int, list[Read]]:
    """All records by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    found: dict[int, list[Read]] = {number: [] for number in range(PARTITIONS)}
    waiting = set(found)
    consumer.assign([TopicPartition(topic, number, 0) for number in found])
    deadline = time.monotonic() + PATIENCE_S
    while waiting:
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end: {waiting}"
        for message in consumer.consume(1000, timeout=0.1):
            error = message.error()
            partition = message.partition()
            assert partition is not None
            if error is None:
                offset, value = message.offset(), message.value()
                assert isinstance(value, bytes)
                assert offset is not None
                found[partition].append(Read(offset, value))
            elif error.name() == "_PARTITION_EOF":
                waiting.discard(partition)
            elif not error.retriable():
                raise KafkaException(error)
    consumer.close()
    return found


def check_idempotent(worker: IdempotentWorker, found: dict[int, list[Read]]) -> None:
    """Every acknowledged record is where it was said to be; all are in order and there once."""
    assert not worker.failed, f"{worker.name}: {worker.failed[:5]}"
    by_place = {
        (partition, read.offset): read.value for partition, reads in found.items() for read in reads
    }
    lost = [
        acknowledged
        for acknowledged in worker.acknowledged
        if by_place.get((acknowledged.partition, acknowledged.offset)) != acknowledged.value
    ]
    assert not lost, f"{worker.name} lost {len(lost)} acknowledged records: {lost[:5]}"
    for partition, reads in found.items():
        numbers = numbers_of(worker.name, reads)
        assert numbers == sorted(set(numbers)), (
            f"{worker.name} partition {partition}: {first_disorder(numbers)}"
        )


def numbers_of(name: str, reads: Sequence[Read]) -> list[int]:
    """The second word of a worker's values, which counts up."""
    prefix = f"{name} ".encode()
    return [int(read.value.split()[1]) for read in reads if read.value.startswith(prefix)]


def first_disorder(numbers: Sequence[int]) -> str:
    """Where a sequence stops going up."""
    for before, after in pairwise(numbers):
        if after <= before:
            kind = "twice" if after == before else "out of order"
            return f"{after} after {before}, {kind}"
    return "in order"


def check_transactional(worker: TransactionalWorker, found: dict[int, list[Read]]) -> None:
    """A transaction is there as a whole or not at all, as its end was answered, in order."""
    visible: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    prefix = f"{worker.name} ".encode()
    for partition, reads in found.items():
        numbers = numbers_of(worker.name, reads)
        assert numbers == sorted(numbers), (
            f"{worker.name} partition {partition}: {first_disorder(numbers)}"
        )
        for read in reads:
            if read.value.startswith(prefix):
                visible[int(read.value.split()[1])].append((partition, read.value))
    for number, outcome in enumerate(worker.outcomes):
        check_outcome(f"{worker.name} transaction {number}", outcome, visible.get(number, []))


def check_outcome(name: str, outcome: Outcome, visible: list[tuple[int, bytes]]) -> None:
    """One transaction against what a read_committed reader sees of it."""
    written = sorted(outcome.values)
    match outcome.ended:
        case "committed":
            assert sorted(visible) == written, f"{name} was committed, {len(visible)} visible"
        case "aborted":
            assert not visible, f"{name} was aborted, {len(visible)} visible"
        case _:
            assert sorted(visible) in ([], written), f"{name} is half visible: {visible}"


def check_transactional_offsets(
    bootstrap: str, worker: TransactionalWorker, found: dict[int, list[Read]]
) -> None:
    """The group's offset is that of the last visible transaction that had one."""
    visible = {number for reads in found.values() for number in numbers_of(worker.name, reads)}
    expected = [
        number + 1
        for number, outcome in enumerate(worker.outcomes)
        if outcome.with_offsets and number in visible
    ]
    committed = committed_offset(bootstrap, worker.group, partition=0)
    assert committed == (expected[-1] if expected else -1001), worker.name


def check_offsets(bootstrap: str, worker: OffsetWorker) -> None:
    """No acknowledged commit is lost; one that was not answered may have happened."""
    committed = committed_offset(bootstrap, worker.group, partition=1)
    assert committed - worker.acknowledged in (0, 1), (worker.name, committed)


def committed_offset(bootstrap: str, group: str, *, partition: int) -> int:
    """What a group has committed; -1001 for nothing."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(INPUT_TOPIC, partition)], PATIENCE_S)
    consumer.close()
    if found.error is not None:
        raise KafkaException(found.error)
    return int(found.offset)
