"""What connectors and tasks do, as the records of Kafka's status topic."""

from broker import Broker
from broker.client.opening import producer
from broker.clock import ManualClock
from connect.state.state_topic import StateTopic, TopicSpec
from connect.state.status_store import State, Status, StatusStore
from connect.state.task_state import TaskId
from tests.support.topics import read_topic

TOPIC = "connect-status"
RUNNING = Status(State.RUNNING, "127.0.0.1:8083", generation=3, version="1.0")


def open_store(broker: Broker) -> StatusStore:
    topic = StateTopic(broker, TopicSpec(TOPIC, partitions=5, replication_factor=3))
    store = StatusStore(ManualClock(1_794_876_794_998), topic)
    store.open()
    return store


def test_every_status_has_the_bytes_that_kafka_connect_writes(broker: Broker) -> None:
    store = open_store(broker)
    store.put("src", RUNNING)
    store.put(TaskId("src", 0), Status(State.FAILED, "w:1", trace="lost\n"))
    store.add_topic(TaskId("src", 0), "t")
    store.add_topic(TaskId("src", 0), "t")
    store.close()
    assert {(record.key, record.value) for record in read_topic(broker, TOPIC)} == {
        (
            b"status-connector-src",
            b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":3,'
            b'"version":"1.0"}',
        ),
        (
            b"status-task-src-0",
            b'{"state":"FAILED","trace":"lost\\n","worker_id":"w:1","generation":0,"version":null}',
        ),
        (
            b"status-topic-t:connector-src",
            b'{"topic":{"name":"t","connector":"src","task":0,"discoverTimestamp":1794876794998}}',
        ),
    }


def test_the_next_worker_knows_states_and_topics(broker: Broker) -> None:
    first = open_store(broker)
    first.put("src", RUNNING)
    for number in (10, 2):
        first.put(TaskId("src", number), RUNNING)
    first.put(TaskId("src", 3), RUNNING)
    first.remove(TaskId("src", 3))
    first.add_topic(TaskId("src", 2), "b")
    first.add_topic(TaskId("src", 2), "a")
    first.add_topic(TaskId("other", 0), "c")
    first.forget_topics("other")
    first.close()
    second = open_store(broker)
    assert second.get("src") == RUNNING
    assert list(second.tasks("src")) == [2, 10]
    assert second.topics("src") == ["a", "b"]
    assert second.topics("other") == []
    second.close()


def test_nothing_is_left_of_a_deleted_connector(broker: Broker) -> None:
    first = open_store(broker)
    first.put("src", RUNNING)
    first.put("src-0", RUNNING)
    first.put(TaskId("src", 0), RUNNING)
    first.add_topic(TaskId("src", 0), "t")
    first.remove_connector("src")
    first.close()
    second = open_store(broker)
    assert second.get("src") is None
    assert second.tasks("src") == {}
    assert second.topics("src") == []
    assert second.get("src-0") == RUNNING
    second.close()


def test_records_that_are_not_statuses_are_ignored(broker: Broker) -> None:
    open_store(broker).close()
    with producer(broker) as writer:
        for key, value in (
            (b"\xff", b"{}"),
            (b"status-connector-a", b"{"),
            (b"status-connector-b", b'{"state":"FLYING","worker_id":"w"}'),
            (b"status-connector-c", b'{"state":"RUNNING"}'),
            (b"status-task-d-x", b'{"state":"RUNNING","worker_id":"w"}'),
            (b"status-connector-e", b'{"state":"RUNNING","worker_id":"w"}'),
        ):
            writer.send(TOPIC, value, key).result()
    store = open_store(broker)
    assert [name for name in "abcde" if store.get(name) is not None] == ["e"]
    store.close()


def test_without_a_topic_states_live_as_long_as_the_worker() -> None:
    store = StatusStore(ManualClock())
    store.open()
    store.put("src", RUNNING)
    assert store.get("src") == RUNNING
    store.remove_connector("src")
    assert store.get("src") is None
    store.close()
