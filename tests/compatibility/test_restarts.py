"""Unchanged clients live through a restart of the broker, in order and after a kill."""

import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compatibility.conftest import Target
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

Unique = Callable[[str], str]
ENDS = ("stop", "kill")


@pytest.fixture
def topic(bootstrap: str, unique: Unique) -> str:
    """A topic of four partitions."""
    name = unique("lasting")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 4, 1)])[name].result(60)
    return name


def restart(target: Target, how: str) -> None:
    if how == "stop":
        target.stop()
    else:
        target.kill()
    target.start()


class Reader:
    """A member of a group that polls in a thread of its own and keeps what it gets."""

    def __init__(self, bootstrap: str, topic: str, **settings: object) -> None:
        self.values: list[int] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 500,
                **settings,
            }
        )
        self._consumer.subscribe([topic])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._leaving.is_set():
            for message in self._consumer.consume(500, 0.1):
                if message.error() is None:
                    self.values.append(int(message.value()))
        self._consumer.close()

    def close(self) -> None:
        self._leaving.set()
        self._thread.join()


@pytest.fixture
def start_reader(bootstrap: str) -> Iterator[Callable[..., Reader]]:
    readers: list[Reader] = []

    def start(topic: str, **settings: object) -> Reader:
        readers.append(Reader(bootstrap, topic, **settings))
        return readers[-1]

    yield start
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_producer_and_a_group_go_on_after_a_restart(
    target: Target,
    topic: str,
    unique: Unique,
    start_reader: Callable[..., Reader],
    how: str,
    protocol: str,
) -> None:
    group: dict[str, object] = {"group.id": unique("group"), "group.protocol": protocol}
    if protocol == "classic":  # a member that did not hear of its id before the end is waited for
        group["session.timeout.ms"] = 6_000
    reader = start_reader(topic, **group)
    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "enable.idempotence": True,
            "batch.num.messages": 10,
            "reconnect.backoff.max.ms": 500,
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    for number in range(2000):
        producer.produce(topic, value=f"{number}", partition=number % 4, on_delivery=delivered)
        producer.poll(0)
        if number == 1000:
            # Some of the first half are answered, some under way, some not yet sent.
            restart(target, how)
    assert producer.flush(60) == 0
    assert not failures
    wait_until(lambda: len(set(reader.values)) == 2000, "all records", timeout_s=60)
    # The reader's position is in its own memory, so nothing comes twice either.
    assert sorted(reader.values) == list(range(2000))


def committed_offsets(member: Consumer, topic: str) -> list[int]:
    """What the group has committed; asked again while the coordinator is still reading its log."""
    found: list[int] = []

    def answered() -> bool:
        asked = [TopicPartition(topic, each) for each in range(4)]
        try:
            found[:] = [each.offset for each in member.committed(asked, timeout=30)]
        except KafkaException as error:
            if not error.args[0].retriable() and error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
        return bool(found)

    wait_until(answered, "the committed offsets")
    return found


@pytest.mark.parametrize("how", ENDS)
def test_commits_and_transactions_survive_a_restart(
    target: Target, topic: str, unique: Unique, how: str
) -> None:
    group, name = unique("group"), unique("writer")
    settings = {"bootstrap.servers": target.bootstrap, "reconnect.backoff.max.ms": 500}
    positions = [TopicPartition(topic, each, 40 + each) for each in range(4)]
    member = Consumer({**settings, "group.id": group})
    member.commit(offsets=positions, asynchronous=False)
    writer = Producer({**settings, "transactional.id": name})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, value="1", partition=0)
    writer.commit_transaction(30)
    writer.begin_transaction()
    writer.produce(topic, value="2", partition=0)
    writer.flush(30)
    restart(target, how)
    assert committed_offsets(member, topic) == [40, 41, 42, 43]
    member.close()
    # The transaction that was open goes on where it was.
    writer.produce(topic, value="3", partition=0)
    writer.commit_transaction(60)
    reader = Consumer({**settings, "group.id": "unused", "isolation.level": "read_committed"})
    reader.assign([TopicPartition(topic, 0, 0)])
    seen: list[int] = []

    def complete() -> bool:
        for message in reader.consume(10, 0.1):
            if message.error():
                raise KafkaException(message.error())
            seen.append(int(message.value()))
        return len(seen) >= 3

    wait_until(complete, "three records")
    reader.close()
    assert seen == [1, 2, 3]
