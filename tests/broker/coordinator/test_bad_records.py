"""Records of internal topics that no broker wrote: skipped and reported, and the start goes on."""

import logging
import random
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.coordinator.internal_topics import InternalLog
from broker.coordinator.transaction import Transaction, TransactionState
from broker.coordinator.transaction_log import to_record
from broker.model import GROUP_TOPIC, TRANSACTION_TOPIC, ProducerIdentity, TopicPartition
from broker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from broker.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.storage.partition_log import PartitionLog
from tests.broker.handlers.embedded import EmbeddedClient

CONFIG = BrokerConfig.from_properties(
    {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
)
NOBODY = ProducerIdentity()


def open_broker(path: Path) -> Broker:
    return Broker(CONFIG, clock=ManualClock(), data_directory=str(path)).start()


def internal_log(broker: Broker, topic: str) -> InternalLog:
    state = broker.state
    return InternalLog(topic, partition_count=1, topics=state.topics, clock=state.clock)


def transaction(**changes: object) -> Transaction:
    values: dict[str, object] = {
        "transactional_id": "bank",
        "producer_id": 4,
        "epoch": 1,
        "timeout_ms": 1000,
        "state": TransactionState.ONGOING,
        "partitions": frozenset({TopicPartition("t", 0)}),
        "start_ms": 1,
        "update_ms": 1,
    }
    return Transaction(**{**values, **changes})  # type: ignore[arg-type]


KEY, VALUE = to_record(transaction())
assert VALUE is not None
BAD_RECORDS = [
    (b"", b""),
    (b"\0", VALUE),
    (KEY[:-2], VALUE),
    (KEY, b""),
    (KEY, b"\0"),
    (KEY, VALUE[:-5]),
    (KEY, b"\0\x63" + VALUE[2:]),
    (KEY, b"\xff\xff" + VALUE[2:]),
    (b"\0\x07" + KEY[2:], VALUE),
    to_record(transaction(state=TransactionState.DEAD)),
    to_record(transaction(producer_id=2**63 - 1)),
    to_record(transaction(producer_id=-5)),
    to_record(transaction(next_producer_id=2**63 - 2)),
    (KEY, VALUE.replace(b"t", b"\xff")),
]


@pytest.mark.parametrize("bad", BAD_RECORDS)
def test_a_bad_record_of_transactions_is_skipped_with_its_place_and_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: tuple[bytes, bytes | None]
) -> None:
    with open_broker(tmp_path) as broker:
        log = internal_log(broker, TRANSACTION_TOPIC)
        log.append(0, [to_record(transaction(transactional_id="before", producer_id=7))])
        log.append(0, [bad, to_record(transaction(transactional_id="after", producer_id=9))])
    caplog.set_level(logging.WARNING)
    with open_broker(tmp_path) as broker:
        found = broker.state.transactions
        assert [each.transactional_id for each in found.transactions()] == ["after", "before"]
        answer = found.init_producer_id(None, timeout_ms=-1, expected=NOBODY)
        assert isinstance(answer, ProducerIdentity)
        assert 9 < answer.producer_id < 10_000
    assert 'topic "__transaction_state" partition 0 offset 1' in caplog.text
    assert "1 records could not be read and were skipped" in caplog.text


def test_a_decided_transaction_that_cannot_end_does_not_stop_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_broker(tmp_path) as broker:
        broker.state.topics.create("t", partition_count=1)
        decided = transaction(state=TransactionState.PREPARE_COMMIT)
        internal_log(broker, TRANSACTION_TOPIC).append(0, [to_record(decided)])

    def fails(self: PartitionLog, *_: object, **__: object) -> None:
        raise RuntimeError("unexpected")

    with monkeypatch.context() as patched:
        patched.setattr(PartitionLog, "append", fails)
        broker = open_broker(tmp_path)
    with broker:
        assert isinstance(broker.clock, ManualClock)
        broker.clock.advance(1000)
        broker.run_due()
        (after,) = broker.state.transactions.transactions()
        assert after.state is TransactionState.COMPLETE_COMMIT


def busy(broker: Broker) -> None:
    """Records of every kind in both topics."""
    assert isinstance(broker.clock, ManualClock)
    client = EmbeddedClient(broker, broker.clock)
    client.create("t", 3)
    client.start(ConsumerGroupHeartbeatRequest("modern", "m1", 0, None, None, 1000, ["t"], None,
                                               None, []))  # fmt: skip
    protocols = [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\1\0\1t\0\0\0\0")]
    client.start(JoinGroupRequest("classic", 10_000, 10_000, "", None, "consumer", protocols), 3)
    client.advance(5_000)
    for group in ("modern-offsets", "g"):
        partitions = [OffsetCommitRequestPartition(0, 5, -1, "note")]
        topics = [OffsetCommitRequestTopic("t", partitions=partitions)]
        client.start(OffsetCommitRequest(group, topics=topics), 9)
    transactions = broker.state.transactions
    for name in ("a", "b"):
        producer = transactions.init_producer_id(name, timeout_ms=1000, expected=NOBODY)
        assert isinstance(producer, ProducerIdentity)
        transactions.add_partitions(name, producer, [TopicPartition("t", 0)])
        if name == "b":
            transactions.end(name, producer, commit=True)


@pytest.mark.slow
def test_no_damaged_record_stops_a_start(tmp_path: Path) -> None:
    rng = random.Random(12)
    with open_broker(tmp_path) as broker:
        busy(broker)
        for topic in (GROUP_TOPIC, TRANSACTION_TOPIC):
            log = internal_log(broker, topic)
            good = [
                (bytes(item.key or b""), None if item.value is None else bytes(item.value))
                for batch in log.replay()
                if not batch.header.is_control
                for item in batch.records
            ]
            assert len(good) > 3
            log.append_all(0, [damaged(rng, *rng.choice(good)) for _ in range(3000)])
            log.append_batch(0, unreadable_batch())
    with open_broker(tmp_path) as broker:
        assert isinstance(broker.clock, ManualClock)
        broker.clock.advance(3_600_000)
        broker.run_due()
        assert broker.state.groups.snapshot()
    open_broker(tmp_path).close()


def damaged(rng: random.Random, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    parts = [bytearray(key), bytearray(value or b"")]
    for _ in range(rng.randint(1, 4)):
        part = rng.choice(parts)
        if part:
            part[rng.randrange(len(part))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
    if rng.random() < 0.2:
        cut = rng.choice(parts)
        del cut[rng.randrange(len(cut) + 1) :]
    return bytes(parts[0]), bytes(parts[1])


def unreadable_batch() -> bytes:
    """A batch whose header is right and whose records are not."""
    batch = bytearray(encode_batch([(b"k", b"v", (), 1)]))
    batch[61:] = b"\xff" * (len(batch) - 61)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)
