"""What users want, as the records of Kafka's config topic."""

import pytest

from broker import Broker
from broker.client.administration.values import NewTopic
from broker.client.api import ConsumerRecord
from broker.client.opening import admin, producer
from connect.errors import ConfigError
from connect.state.config_store import ConfigStore, RestartRequest, WantedConnector
from connect.state.state_topic import StateTopic, TopicSpec
from connect.state.task_state import TargetState
from tests.support.topics import read_topic

TOPIC = "connect-configs"
CONFIG = {"connector.class": "FileStreamSource", "topic": "t", "name": "src"}
TASK = {"file": "/tmp/in", "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask"}


class Heard:
    """Records its notifications."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.restarts: list[tuple[str, RestartRequest]] = []
        self.loggers: list[tuple[str, str]] = []

    def on_change(self, connector: str) -> None:
        self.changes.append(connector)

    def on_restart(self, connector: str, request: RestartRequest) -> None:
        self.restarts.append((connector, request))

    def on_logger(self, logger_name: str, level: str) -> None:
        self.loggers.append((logger_name, level))


def open_store(broker: Broker, heard: Heard | None = None) -> ConfigStore:
    topic = StateTopic(broker, TopicSpec(TOPIC, partitions=1, replication_factor=1))
    store = ConfigStore(heard or Heard(), topic)
    store.open()
    return store


def write(broker: Broker, *records: tuple[bytes, bytes | None]) -> None:
    with producer(broker) as writer:
        for key, value in records:
            writer.send(TOPIC, value, key).result()


def keys_and_values(records: list[ConsumerRecord]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def test_every_change_has_the_bytes_that_kafka_connect_writes(broker: Broker) -> None:
    store = open_store(broker)
    store.put_connector("src", {"topic": "ä", "name": "src"})
    store.put_tasks("src", [{"file": "a"}, {"file": "b"}])
    store.put_target_state("src", TargetState.PAUSED)
    store.put_target_state("src", TargetState.STOPPED)
    store.put_connector("new", {"name": "new"}, TargetState.STARTED)
    store.put_restart("src", RestartRequest(include_tasks=True, only_failed=False))
    store.put_logger("org.x", "INFO")
    store.remove_connector("src")
    store.close()
    assert keys_and_values(read_topic(broker, TOPIC)) == [
        (b"connector-src", '{"properties":{"topic":"ä","name":"src"}}'.encode()),
        (b"task-src-0", b'{"properties":{"file":"a"}}'),
        (b"task-src-1", b'{"properties":{"file":"b"}}'),
        (b"commit-src", b'{"tasks":2}'),
        (b"target-state-src", b'{"state":"PAUSED","state.v2":"PAUSED"}'),
        (b"target-state-src", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"target-state-new", b'{"state":"STARTED","state.v2":"STARTED"}'),
        (b"connector-new", b'{"properties":{"name":"new"}}'),
        (b"restart-connector-src", b'{"include-tasks":true,"only-failed":false}'),
        (b"logger-cluster-org.x", b'{"level":"INFO"}'),
        (b"connector-src", None),
        (b"target-state-src", None),
    ]


def test_the_next_worker_knows_what_is_wanted(broker: Broker) -> None:
    first = open_store(broker)
    first.put_connector("src", CONFIG)
    first.put_tasks("src", [TASK])
    first.put_connector("standing", CONFIG, TargetState.STOPPED)
    first.put_connector("gone", CONFIG)
    first.remove_connector("gone")
    first.put_restart("src", RestartRequest())
    first.close()
    heard = Heard()
    second = open_store(broker, heard)
    assert second.connectors() == ["src", "standing"]
    found = second.connector("src")
    assert found == WantedConnector(
        CONFIG, TargetState.STARTED, (TASK,), revision=1, generation=3, unfenced=0
    )
    standing = second.connector("standing")
    assert standing is not None
    assert standing.target_state is TargetState.STOPPED
    assert second.connector("gone") is None
    assert (heard.changes, heard.restarts) == ([], [])
    second.close()


@pytest.mark.parametrize("in_topic", [True, False])
def test_the_listener_hears_what_counts(broker: Broker, in_topic: bool) -> None:
    heard = Heard()
    store = open_store(broker, heard) if in_topic else ConfigStore(heard)
    store.open()
    store.put_connector("src", CONFIG)
    store.put_tasks("src", [TASK])
    store.put_target_state("src", TargetState.PAUSED)
    store.put_restart("src", RestartRequest(include_tasks=True, only_failed=True))
    store.put_logger("a.b", "DEBUG")
    store.remove_connector("src")
    assert heard.changes == ["src", "src", "src", "src"]
    assert heard.restarts == [("src", RestartRequest(include_tasks=True, only_failed=True))]
    assert heard.loggers == [("a.b", "DEBUG")]
    store.close()


def test_tasks_count_only_with_their_commit(broker: Broker) -> None:
    open_store(broker).close()
    write(
        broker,
        (b"connector-src", b'{"properties":{"name":"src"}}'),
        (b"task-src-0", b'{"properties":{"n":"1"}}'),
        (b"commit-src", b'{"tasks":1}'),
        (b"task-src-0", b'{"properties":{"n":"2"}}'),
    )
    store = open_store(broker)
    found = store.connector("src")
    assert found is not None
    assert (found.tasks, found.consistent) == (({"n": "1"},), True)
    store.close()


def test_a_set_of_tasks_with_a_gap_is_ignored(broker: Broker) -> None:
    open_store(broker).close()
    write(
        broker,
        (b"connector-src", b'{"properties":{"name":"src"}}'),
        (b"task-src-1", b'{"properties":{"n":"1"}}'),
        (b"commit-src", b'{"tasks":2}'),
    )
    store = open_store(broker)
    found = store.connector("src")
    assert found is not None
    assert (found.tasks, found.consistent) == ((), False)
    store.close()


def test_a_name_may_hold_anything(broker: Broker) -> None:
    store = open_store(broker)
    for name in (" new 2 ", "a/b", "task-x-0", "ä", "x-1"):
        store.put_connector(name, {"name": name})
        store.put_tasks(name, [{"of": name}])
    store.close()
    again = open_store(broker)
    for name in again.connectors():
        found = again.connector(name)
        assert found is not None
        assert (found.config, found.tasks) == ({"name": name}, ({"of": name},))
    assert len(again.connectors()) == 5
    again.close()


def test_tasks_of_a_deleted_connector_are_leftovers(broker: Broker) -> None:
    open_store(broker).close()
    write(
        broker,
        (b"task-src-0", b'{"properties":{"n":"1"}}'),
        (b"commit-src", b'{"tasks":1}'),
        (b"connector-src", None),
        (b"task-old-0", b'{"properties":{"n":"1"}}'),
        (b"commit-old", b'{"tasks":1}'),
    )
    store = open_store(broker)
    assert not store.has_leftovers("src")
    assert store.has_leftovers("old")
    assert store.connectors() == []
    store.put_tasks("old", [])
    assert not store.has_leftovers("old")
    store.close()


def test_records_that_are_not_kafka_connects_are_ignored(broker: Broker) -> None:
    open_store(broker).close()
    write(
        broker,
        (b"\xff", b"{}"),
        (b"connector-a", b"{"),
        (b"connector-b", b"[]"),
        (b"connector-c", b'{"properties":5}'),
        (b"target-state-d", b'{"state":"FLYING"}'),
        (b"commit-e", b'{"tasks":"x"}'),
        (b"session-key", b'{"key":"k","algorithm":"HmacSHA256","creation-timestamp":1}'),
        (b"tasks-fencing-f", b'{"task-count":1}'),
        (b"connector-g", b'{"properties":{"name":"g"}}'),
    )
    store = open_store(broker)
    assert store.connectors() == ["g"]
    store.close()


def test_a_topic_with_several_partitions_is_refused(broker: Broker) -> None:
    with admin(broker) as administration:
        topic = NewTopic(TOPIC, 2, 1, {"cleanup.policy": "compact"})
        administration.create_topics([topic]).all()
    with pytest.raises(ConfigError, match="has 2 partitions, it must have one"):
        open_store(broker)


def test_a_set_of_tasks_is_unfenced_until_a_record_says_so(broker: Broker) -> None:
    store = open_store(broker)
    store.put_connector("src", CONFIG)
    store.put_tasks("src", [TASK, TASK])
    assert unfenced(store) == 0, "there were no tasks before"
    store.put_fencing("src", 2)
    assert unfenced(store) is None
    store.put_tasks("src", [TASK])
    assert unfenced(store) == 2
    store.remove_connector("src")
    store.put_connector("src", CONFIG)
    store.put_tasks("src", [TASK])
    assert unfenced(store) == 2, "tasks of the connector before may still run"
    store.close()
    assert unfenced(open_store(broker)) == 2


def unfenced(store: ConfigStore) -> int | None:
    """How many earlier tasks of the connector are to be fenced."""
    found = store.connector("src")
    assert found is not None
    return found.unfenced
