"""kafka-python, unchanged, against the broker."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest
from kafka import (
    IsolationLevel,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from kafka.admin import ConfigResource, ConfigResourceType, TransactionState
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError, ProducerFencedError, TopicAlreadyExistsError

from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

FIRST_TIMESTAMP_MS = 1_700_000_000_000
ASSIGNORS = [RangePartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor]

Unique = Callable[[str], str]


class Clients:
    """Opens clients of one broker inside a test and closes them at its end."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self._bootstrap = bootstrap
        self._stack = stack

    def producer(self, **settings: object) -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, **settings)
        self._stack.callback(producer.close, timeout=5)
        return producer

    def reader(self, *topics: str, **settings: object) -> KafkaConsumer:
        consumer = KafkaConsumer(
            *topics,
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="earliest",
            **settings,
        )
        self._stack.callback(consumer.close)
        return consumer

    def group_reader(self, topic: str, group: str, **settings: object) -> KafkaConsumer:
        times = {"heartbeat_interval_ms": 200, "session_timeout_ms": 10_000}
        return self.reader(topic, group_id=group, **times, **settings)

    def member(self, topic: str, group: str, **settings: object) -> "Member":
        member = Member(self.group_reader(topic, group, **settings))
        self._stack.callback(member.close)
        return member

    def admin(self) -> KafkaAdminClient:
        return self._stack.enter_context(KafkaAdminClient(bootstrap_servers=self._bootstrap))

    def topic(self, name: str) -> str:
        """Makes a topic of four partitions and returns when their leaders answer."""
        admin = self.admin()
        options = {"num_partitions": 4, "replication_factor": 1}
        admin.create_topics({name: options}, wait_for_metadata=True)
        ends = {TopicPartition(name, each): OffsetSpec.LATEST for each in range(4)}
        admin.list_partition_offsets(ends)
        return name


@pytest.fixture
def clients(bootstrap: str) -> Iterator[Clients]:
    with ExitStack() as stack:
        yield Clients(bootstrap, stack)


def send(producer: KafkaProducer, topic: str, values: Sequence[str]) -> None:
    """Sends values over all partitions in turn and waits for all answers."""
    sent = [
        producer.send(topic, value.encode(), partition=number % 4)
        for number, value in enumerate(values)
    ]
    for each in sent:
        each.get(timeout=60)


def take(consumers: Sequence[KafkaConsumer], count: int) -> list[list[object]]:
    """Polls the consumers in turn until they have `count` records together; one list for each."""
    taken: list[list[object]] = [[] for _ in consumers]

    def enough() -> bool:
        for consumer, records in zip(consumers, taken, strict=True):
            for batch in consumer.poll(timeout_ms=500).values():
                records.extend(batch)
        return sum(len(records) for records in taken) >= count

    wait_until(enough, f"the arrival of {count} records")
    return taken


class Member:
    """A member of a group that polls in a thread of its own, as an application does."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.records: list[object] = []
        self.partitions: set[object] = set()
        self._consumer = consumer
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._leaving.is_set():
            for batch in self._consumer.poll(timeout_ms=500).values():
                self.records.extend(batch)
            self.partitions = self._consumer.assignment()

    def take(self) -> list[object]:
        """What has come in since the last call."""
        taken, self.records = self.records, []
        return taken

    def close(self) -> None:
        self._leaving.set()
        self._thread.join()
        self._consumer.close()


def wait_split(members: Sequence[Member], sizes: Sequence[int]) -> None:
    """Returns when the members share the four partitions in the given sizes."""

    def split() -> bool:
        held = [member.partitions for member in members]
        return [len(each) for each in held] == list(sizes) and len(set().union(*held)) == 4

    wait_until(split, f"a split of the partitions into {sizes}")


def wait_records(members: Sequence[Member], count: int) -> list[list[object]]:
    """Returns when the members have `count` records together; one list for each."""

    def enough() -> bool:
        return sum(len(member.records) for member in members) >= count

    wait_until(enough, f"the arrival of {count} records")
    return [member.take() for member in members]


def column(records: Sequence[object], name: str) -> list[object]:
    return [getattr(record, name) for record in records]


def test_topics_are_created_described_altered_and_deleted(clients: Clients, unique: Unique) -> None:
    admin = clients.admin()
    name = unique("managed")
    new = {
        name: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "5000"}}
    }
    admin.create_topics(new, wait_for_metadata=True)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics(new)
    admin.create_partitions({name: 3})
    wait_until(
        lambda: len(admin.describe_topics([name])[0]["partitions"]) == 3, "the third partition"
    )
    change = ConfigResource(ConfigResourceType.TOPIC, name, {"cleanup.policy": "compact"})
    admin.alter_configs([change])
    asked = ConfigResource(ConfigResourceType.TOPIC, name)

    def setting(key: str) -> object:
        return admin.describe_configs([asked], config_filter="all")["topic"][name][key]["value"]

    wait_until(lambda: setting("cleanup.policy") == "compact", "the changed setting")
    assert setting("retention.ms") == "5000"
    admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics(), "the end of the topic")


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_whole_under_every_compression(
    clients: Clients, unique: Unique, compression: str | None
) -> None:
    topic = clients.topic(unique("whole"))
    producer = clients.producer(compression_type=compression, linger_ms=5)
    sent = [
        producer.send(
            topic,
            f"value-{number}-{'abc' * 50}".encode(),
            key=f"key-{number}".encode(),
            partition=1,
            timestamp_ms=FIRST_TIMESTAMP_MS + number,
            headers=[("number", str(number).encode()), ("empty", b"")],
        )
        for number in range(100)
    ]
    producer.flush(timeout=30)
    assert [each.get(timeout=60).offset for each in sent] == list(range(100))
    (records,) = take([clients.reader(topic)], 100)
    assert column(records, "offset") == list(range(100))
    assert column(records, "value") == [
        f"value-{number}-{'abc' * 50}".encode() for number in range(100)
    ]
    assert column(records, "key") == [f"key-{number}".encode() for number in range(100)]
    assert column(records, "timestamp") == [FIRST_TIMESTAMP_MS + each for each in range(100)]
    assert column(records, "headers")[7] == [("number", b"7"), ("empty", b"")]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: str(each.name))
def test_a_group_shares_partitions_as_members_come_and_go(
    clients: Clients, unique: Unique, assignor: type
) -> None:
    topic = clients.topic(unique("shared"))
    group = unique("group")
    producer = clients.producer()
    settings = {"partition_assignment_strategy": (assignor,)}
    first = clients.member(topic, group, **settings)
    wait_split([first], [4])
    send(producer, topic, [f"alone-{number}" for number in range(40)])
    (alone,) = wait_records([first], 40)
    second = clients.member(topic, group, **settings)
    wait_split([first, second], [2, 2])
    send(producer, topic, [f"shared-{number}" for number in range(40)])
    shared = wait_records([first, second], 40)
    second.close()
    wait_split([first], [4])
    send(producer, topic, [f"again-{number}" for number in range(40)])
    (again,) = wait_records([first], 40)
    assert [len(each) for each in shared] == [20, 20]
    phases = {"alone": alone, "shared": [*shared[0], *shared[1]], "again": again}
    for prefix, seen in phases.items():
        expected = {f"{prefix}-{number}".encode() for number in range(40)}
        assert len(seen) == 40
        assert set(column(seen, "value")) == expected


def test_a_group_resumes_after_its_committed_offsets(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("resumed"))
    group = unique("resuming")
    send(clients.producer(), topic, [str(number) for number in range(40)])
    first = clients.group_reader(topic, group, enable_auto_commit=False)
    take([first], 40)
    first.commit({TopicPartition(topic, each): OffsetAndMetadata(7, "seven") for each in range(4)})
    first.close()
    second = clients.group_reader(topic, group, enable_auto_commit=False)
    (records,) = take([second], 12)
    assert set(column(records, "offset")) == {7, 8, 9}
    assert second.committed(TopicPartition(topic, 3)) == 7
    second.close()

    admin = clients.admin()
    assert group in [each["group_id"] for each in admin.list_groups()]
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"
    zero = TopicPartition(topic, 0)
    admin.alter_group_offsets(group, {zero: OffsetAndMetadata(2, "")})
    assert admin.list_group_offsets({group: [zero]})[group][zero].offset == 2
    admin.delete_groups([group])
    assert group not in [each["group_id"] for each in admin.list_groups()]


def test_a_static_member_comes_back_to_its_partitions(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("static"))
    group = unique("static")
    stays = clients.member(topic, group, group_instance_id="stays")
    returns = clients.member(topic, group, group_instance_id="returns")
    wait_split([stays, returns], [2, 2])
    held = (stays.partitions, returns.partitions)
    returns.close()
    returns = clients.member(topic, group, group_instance_id="returns")
    wait_split([stays, returns], [2, 2])
    assert (stays.partitions, returns.partitions) == held


def test_an_idempotent_producer_keeps_order_and_count(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("idempotent"))
    producer = clients.producer(enable_idempotence=True, batch_size=200)
    send(producer, topic, [str(number) for number in range(400)])
    (records,) = take([clients.reader(topic)], 400)
    for partition in range(4):
        mine = [each for each in records if column([each], "partition") == [partition]]
        assert column(mine, "value") == [str(each).encode() for each in range(partition, 400, 4)]
        assert column(mine, "offset") == list(range(100))


def test_transactions_are_read_by_their_outcome(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("transactions"))
    producer = clients.producer(transactional_id=unique("writer"))
    producer.init_transactions()
    for outcome in ("kept", "dropped", "kept"):
        producer.begin_transaction()
        send(producer, topic, [outcome] * 8)
        if outcome == "kept":
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    send(clients.producer(), topic, ["end"] * 4)
    (records,) = take([clients.reader(topic, isolation_level="read_committed")], 20)
    assert sorted(map(str, column(records, "value"))) == ["b'end'"] * 4 + ["b'kept'"] * 16
    (records,) = take([clients.reader(topic)], 28)
    assert column(records, "value").count(b"dropped") == 8


def test_offsets_in_a_transaction_follow_its_outcome(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("moved"))
    group = unique("mover")
    producer = clients.producer(transactional_id=unique("mover"))
    producer.init_transactions()
    member = clients.group_reader(topic, group, enable_auto_commit=False)
    send(clients.producer(), topic, ["first"])
    take([member], 1)
    zero = TopicPartition(topic, 0)
    for offset, commits in ((4, True), (9, False)):
        producer.begin_transaction()
        moved: Mapping[object, object] = {zero: OffsetAndMetadata(offset, "")}
        producer.send_offsets_to_transaction(moved, member.group_metadata())
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    assert member.committed(zero) == 4


def test_a_new_transactional_producer_fences_the_old_one(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("fenced"))
    name = unique("fenced")
    old = clients.producer(transactional_id=name)
    old.init_transactions()
    old.begin_transaction()
    old.send(topic, b"of the old one", partition=0).get(timeout=60)
    new = clients.producer(transactional_id=name)
    new.init_transactions()
    with pytest.raises(KafkaError) as refused:
        old.commit_transaction()
    assert isinstance(refused.value, ProducerFencedError)
    new.begin_transaction()
    new.send(topic, b"of the new one", partition=0).get(timeout=60)
    new.commit_transaction()
    (records,) = take([clients.reader(topic, isolation_level="read_committed")], 1)
    assert column(records, "value") == [b"of the new one"]


def test_open_transactions_can_be_listed_and_described(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("open"))
    name = unique("open")
    producer = clients.producer(transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"pending", partition=0).get(timeout=60)
    admin = clients.admin()
    zero = TopicPartition(topic, 0)
    (open_ones,) = admin.list_transactions(state_filters=["Ongoing"]).values()
    (listed,) = [each for each in open_ones if each.transactional_id == name]
    described = admin.describe_transactions([name])[name]
    assert described.state == TransactionState.ONGOING
    assert described.producer_id == listed.producer_id
    assert set(described.topic_partitions) == {zero}
    writers = admin.describe_producers([zero])[zero].active_producers
    assert [each.producer_id for each in writers] == [listed.producer_id]
    latest = {zero: OffsetSpec.LATEST}
    stable = admin.list_partition_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED)
    assert stable[zero].offset == 0
    assert admin.list_partition_offsets(latest)[zero].offset == 1
    producer.abort_transaction()


def test_offsets_are_found_by_timestamp_and_seeked_to(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("times"))
    producer = clients.producer(enable_idempotence=True, batch_size=500)
    for number in range(100):
        producer.send(
            topic,
            str(number).encode(),
            partition=2,
            timestamp_ms=FIRST_TIMESTAMP_MS + 10 * number,
        )
    producer.flush(timeout=30)
    two = TopicPartition(topic, 2)
    reader = clients.reader()
    reader.assign([two])
    found = reader.offsets_for_times({two: FIRST_TIMESTAMP_MS + 495})
    assert (found[two].offset, found[two].timestamp) == (50, FIRST_TIMESTAMP_MS + 500)
    assert reader.beginning_offsets([two]) == {two: 0}
    assert reader.end_offsets([two]) == {two: 100}
    reader.seek(two, 97)
    (records,) = take([reader], 3)
    assert column(records, "value") == [b"97", b"98", b"99"]


def test_deleted_records_are_gone_for_readers(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("shortened"))
    send(clients.producer(), topic, [str(number) for number in range(40)])
    zero = TopicPartition(topic, 0)
    assert clients.admin().delete_records({zero: 6})[zero]["low_watermark"] == 6
    (records,) = take([clients.reader(topic)], 34)
    offsets = [record for record in records if column([record], "partition") == [0]]
    assert column(offsets, "offset") == [6, 7, 8, 9]


def test_log_folders_tell_the_size_of_each_partition(clients: Clients, unique: Unique) -> None:
    topic = clients.topic(unique("sized"))
    send(clients.producer(), topic, ["x" * 100] * 4)
    (answer,) = clients.admin().describe_log_dirs()
    (folder,) = answer["log_dirs"]
    sizes = {each["name"]: each["partitions"] for each in folder["topics"]}[topic]
    assert all(100 < partition["partition_size"] < 300 for partition in sizes)
