"""Where a coordinator's state lives, and reading it back."""

from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock, SystemClock
from broker.config import BrokerConfig
from broker.coordinator.internal_topics import InternalLog, java_hash, partition_for
from broker.model import GROUP_TOPIC
from broker.pending import Pending


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected


@pytest.mark.parametrize(
    ("key", "expected"), [("hello", 2), ("implicit-group", 1), ("polygenelubricants", 0)]
)
def test_a_key_has_the_partition_that_kafka_gives_it(key: str, expected: int) -> None:
    assert partition_for(key, 4) == expected


def internal_log(broker: Broker) -> InternalLog:
    state = broker.state
    return InternalLog(
        GROUP_TOPIC,
        partition_count=5,
        topics=state.topics,
        clock=state.clock,
    )


def test_what_was_appended_is_replayed_in_order(tmp_path: Path) -> None:
    with Broker(BrokerConfig(log_dir=str(tmp_path)), clock=ManualClock()) as broker:
        log = internal_log(broker)
        assert list(log.replay()) == []
        log.append(3, [(b"k1", b"v1"), (b"k2", None)])
        log = internal_log(broker)  # the catalog made it with the broker's number of partitions
        log.append_all(40, ((b"k%d" % number, b"v" * 1000) for number in range(900)))
        log.append(3, [(b"k3", b"v3")])
        found = list(log.replay())
        third = [item for batch in found if batch.partition == 3 for item in batch.records]
        assert [(item.key, item.value) for item in third] == [
            (b"k1", b"v1"),
            (b"k2", None),
            (b"k3", b"v3"),
        ]
        many = [item.key for batch in found if batch.partition == 40 for item in batch.records]
        assert many == [b"k%d" % number for number in range(900)]
        assert len([batch for batch in found if batch.partition == 40]) == 4


def test_answers_wait_for_the_disk_when_durability_is_fsync(tmp_path: Path) -> None:
    config = BrokerConfig(log_dir=str(tmp_path), durability="fsync")
    with Broker(config, clock=SystemClock()) as broker:
        log = internal_log(broker)
        with broker.lock:
            written = log.append(0, [(b"k", b"v")])
            answer = log.answer_when_durable(written, "done")
            assert isinstance(answer, Pending)
            assert not answer.done
    assert answer.done
