"""The whole broker without a network: start, restart, and refusals to start."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import StorageError
from broker.pending import Pending
from tests.broker.handlers.embedded import EmbeddedClient, values_of

CONFIG = BrokerConfig(offsets_topic_num_partitions=2, transaction_state_log_num_partitions=2)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    with Broker(CONFIG, clock=clock, data_directory=str(tmp_path)) as broker:
        client = EmbeddedClient(broker, clock)
        topic_id = client.create("orders", 2, retention_ms="-1")
        client.produce("orders", "a", "b", partition=1)
        cluster_id = broker.cluster_id
    with Broker(CONFIG, clock=clock, data_directory=str(tmp_path)) as broker:
        client = EmbeddedClient(broker, clock)
        topic = broker.state.topics.get("orders")
        assert topic is not None
        assert (topic.id, broker.cluster_id) == (topic_id, cluster_id)
        assert values_of(client.fetch("orders", partition=1).records) == ["a", "b"]
        assert client.produce("orders", "c", partition=1).base_offset == 2


def test_a_data_directory_in_use_is_refused(tmp_path: Path) -> None:
    with (
        Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path)),
        pytest.raises(StorageError, match="in use"),
    ):
        Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path)).start()


def test_a_data_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path)):
        pass
    other = replace(CONFIG, broker_id=5)
    with pytest.raises(StorageError, match="belongs to broker 0"):
        Broker(other, clock=ManualClock(), data_directory=str(tmp_path)).start()


def test_a_damaged_catalog_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text("{")
    broker = Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path))
    with pytest.raises(StorageError, match="damaged"):
        broker.start()
    (tmp_path / "topics.json").unlink()
    broker.start()
    broker.close()


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    broker = Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path)).start()
    broker.close()
    broker.close()


def test_a_broker_on_the_real_clock_ends_its_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Broker(CONFIG, data_directory=str(tmp_path)) as broker:
        EmbeddedClient(broker, ManualClock()).create("orders")
        started = set(threading.enumerate()) - before
    assert started
    assert not any(thread.is_alive() for thread in started)


def test_an_answer_can_be_given_before_anybody_waits(tmp_path: Path) -> None:
    with Broker(CONFIG, clock=ManualClock(), data_directory=str(tmp_path)) as broker:
        pending: Pending[object] = Pending()
        pending.complete("answer")
        answers: list[object] = []
        broker.when_done(pending, answers.append)
        broker.abandon(pending)
        assert answers == ["answer"]


def test_deleted_topics_leave_no_counters(tmp_path: Path) -> None:
    clock = ManualClock()
    with Broker(CONFIG, clock=clock, data_directory=str(tmp_path)) as broker:
        client = EmbeddedClient(broker, clock)
        client.create("orders")
        client.produce("orders", "a")
        assert "orders" in broker.metrics.topics
        broker.state.topics.delete("orders")
        assert "orders" not in broker.metrics.topics
