"""confluent-kafka (librdkafka), unchanged, against the broker."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
    TopicPartitionInfo,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP_MS = 1_700_000_000_000

# The three ways in which a librdkafka group shares its partitions.
GROUP_PROTOCOLS = {
    "range": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
CLASSIC_TIMES = {"heartbeat.interval.ms": 200, "session.timeout.ms": 10_000}
READ_COMMITTED = {"isolation.level": "read_committed"}
READ_UNCOMMITTED = {"isolation.level": "read_uncommitted"}

Unique = Callable[[str], str]


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def topic(admin: AdminClient, bootstrap: str, unique: Unique) -> str:
    """A topic of four partitions."""
    name = unique("orders")
    admin.create_topics([NewTopic(name, 4, 1)])[name].result(60)
    wait_leaders(bootstrap, name)
    return name


def wait_leaders(bootstrap: str, topic: str) -> None:
    """Returns when the leaders of the four partitions answer.

    Before that a producer has to send its first batch again, and may do so after its second.
    """
    with consumer(bootstrap) as probe:

        def answered() -> bool:
            try:
                for partition in range(4):
                    probe.get_watermark_offsets(TopicPartition(topic, partition), timeout=5)
            except KafkaException:
                return False
            return True

        wait_until(answered, "the election of the leaders")


def produce(bootstrap: str, topic: str, values: Sequence[str], **settings: object) -> None:
    """Sends values over all partitions in turn, and checks that each one is acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            errors.append(error)

    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % 4, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert not errors


def ordered_producer(bootstrap: str, **settings: object) -> Producer:
    """A producer whose retries do not change the order, as those of a plain one may."""
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})


@contextmanager
def consumer(bootstrap: str, **settings: object) -> Iterator[Consumer]:
    each = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    try:
        yield each
    finally:
        each.close()


def group_settings(group: str, protocol: str) -> dict[str, object]:
    times = {} if protocol == "consumer" else CLASSIC_TIMES
    return {"group.id": group, **GROUP_PROTOCOLS[protocol], **times}


def take(consumers: Sequence[Consumer], count: int) -> list[list[Message]]:
    """Polls the consumers in turn until they have `count` records together; one list for each."""
    taken: list[list[Message]] = [[] for _ in consumers]

    def enough() -> bool:
        for each, records in zip(consumers, taken, strict=True):
            for message in each.consume(500, 0.05):
                if message.error():
                    raise KafkaException(message.error())
                records.append(message)
        return sum(len(records) for records in taken) >= count

    wait_until(enough, f"the arrival of {count} records")
    return taken


def read_partitions(bootstrap: str, topic: str, count: int, **settings: object) -> list[Message]:
    """The first `count` records of the topic, read without a group."""
    with consumer(bootstrap, **settings) as reader:
        reader.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(4)])
        (records,) = take([reader], count)
        return records


def values_of(records: Sequence[Message]) -> list[str]:
    return [(record.value() or b"").decode() for record in records]


def partitions_of(each: Consumer) -> set[int]:
    return {assigned.partition for assigned in each.assignment()}


def wait_split(members: Sequence[Consumer], sizes: Sequence[int]) -> None:
    """Returns when the members share the four partitions in the given sizes."""

    def split() -> bool:
        for member in members:
            assert member.poll(0.02) is None
        held = [partitions_of(member) for member in members]
        return [len(each) for each in held] == list(sizes) and len(set().union(*held)) == 4

    wait_until(split, f"a split of the partitions into {sizes}")


def test_topics_are_created_described_altered_and_deleted(
    admin: AdminClient, unique: Unique
) -> None:
    name = unique("managed")
    new = NewTopic(name, 2, 1, config={"retention.ms": "86400000"})
    admin.create_topics([new])[name].result(60)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([new])[name].result(60)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS

    admin.create_partitions([NewPartitions(name, 3)])[name].result(60)

    def partitions() -> list[TopicPartitionInfo]:
        described = admin.describe_topics(TopicCollection([name]))[name].result(60)
        return list(described.partitions)

    wait_until(lambda: [each.id for each in partitions()] == [0, 1, 2], "the third partition")
    assert {each.leader.id for each in partitions() if each.leader} == {
        node.id for node in admin.describe_cluster().result(60).nodes
    }

    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(60)

    def configs() -> dict[str, ConfigEntry]:
        answer = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])
        (entries,) = [future.result(60) for future in answer.values()]
        return dict(entries)

    wait_until(lambda: configs()["cleanup.policy"].value == "compact", "the changed setting")
    assert configs()["retention.ms"].value == "86400000"
    assert configs()["segment.bytes"].is_default

    admin.delete_topics([name])[name].result(60)
    wait_until(lambda: name not in admin.list_topics(timeout=30).topics, "the end of the topic")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_whole_under_every_compression(
    bootstrap: str, topic: str, compression: str
) -> None:
    producer = ordered_producer(bootstrap, **{"compression.type": compression})
    padding = "abc" * 50
    for number in range(100):
        producer.produce(
            topic,
            key=f"key-{number}",
            value=f"{number}-{padding}",
            partition=0,
            timestamp=FIRST_TIMESTAMP_MS + number,
            headers=[("number", str(number).encode()), ("empty", b""), ("null", None)],
        )
    assert producer.flush(30) == 0
    records = read_partitions(bootstrap, topic, 100)
    assert [record.offset() for record in records] == list(range(100))
    assert values_of(records) == [f"{number}-{padding}" for number in range(100)]
    assert [record.key() for record in records] == [f"key-{each}".encode() for each in range(100)]
    assert [record.timestamp()[1] - FIRST_TIMESTAMP_MS for record in records] == list(range(100))
    assert records[7].headers() == [("number", b"7"), ("empty", b""), ("null", None)]


def test_a_tombstone_and_an_empty_value_stay_different(bootstrap: str, topic: str) -> None:
    producer = ordered_producer(bootstrap)
    producer.produce(topic, key="a", value=None, partition=0)
    producer.produce(topic, key="a", value=b"", partition=0)
    assert producer.flush(30) == 0
    assert [each.value() for each in read_partitions(bootstrap, topic, 2)] == [None, b""]


@pytest.mark.parametrize("protocol", GROUP_PROTOCOLS)
def test_a_group_shares_partitions_as_members_come_and_go(
    bootstrap: str, topic: str, unique: Unique, protocol: str
) -> None:
    settings = group_settings(unique("group"), protocol)
    with consumer(bootstrap, **settings) as first:
        first.subscribe([topic])
        wait_split([first], [4])
        produce(bootstrap, topic, [f"alone-{number}" for number in range(40)])
        (alone,) = take([first], 40)
        with consumer(bootstrap, **settings) as second:
            second.subscribe([topic])
            wait_split([first, second], [2, 2])
            produce(bootstrap, topic, [f"shared-{number}" for number in range(40)])
            shared = take([first, second], 40)
        wait_split([first], [4])
        produce(bootstrap, topic, [f"again-{number}" for number in range(40)])
        (again,) = take([first], 40)
    assert [len(each) for each in shared] == [20, 20]
    for prefix, seen in (("alone", alone), ("shared", [*shared[0], *shared[1]]), ("again", again)):
        assert sorted(values_of(seen)) == sorted(f"{prefix}-{number}" for number in range(40))


@pytest.mark.parametrize("protocol", GROUP_PROTOCOLS)
def test_a_group_resumes_after_its_committed_offsets(
    admin: AdminClient, bootstrap: str, topic: str, unique: Unique, protocol: str
) -> None:
    group = unique("resuming")
    settings = group_settings(group, protocol) | {"enable.auto.commit": False}
    produce(bootstrap, topic, [f"{number}" for number in range(40)])
    with consumer(bootstrap, **settings) as first:
        first.subscribe([topic])
        take([first], 40)
        positions = [TopicPartition(topic, each, 7, metadata="seven") for each in range(4)]
        committed = first.commit(offsets=positions, asynchronous=False)
        assert committed is not None
        assert [each.error for each in committed] == [None] * 4
    with consumer(bootstrap, **settings) as second:
        second.subscribe([topic])
        (records,) = take([second], 12)
        assert {record.offset() for record in records} == {7, 8, 9}
        assert {each.metadata for each in second.committed(positions)} == {"seven"}
    listed = admin.list_consumer_groups().result(60).valid
    assert group in [each.group_id for each in listed]


def test_groups_are_described_altered_and_deleted(
    admin: AdminClient, bootstrap: str, topic: str, unique: Unique
) -> None:
    group = unique("described")
    with consumer(bootstrap, **group_settings(group, "range")) as member:
        member.subscribe([topic])
        wait_split([member], [4])
        described = admin.describe_consumer_groups([group])[group].result(60)
        assert described.state == ConsumerGroupState.STABLE
        assert described.partition_assignor == "range"
        (only,) = described.members
        assert len(only.assignment.topic_partitions) == 4
    wait_until(
        lambda: (
            admin.describe_consumer_groups([group])[group].result(60).state
            == ConsumerGroupState.EMPTY
        ),
        "the end of the last member",
    )
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 3)])
    admin.alter_consumer_group_offsets([moved])[group].result(60)
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1)])
    answer = admin.list_consumer_group_offsets([request])[group].result(60)
    assert [each.offset for each in answer.topic_partitions] == [3]
    admin.delete_consumer_groups([group])[group].result(60)
    assert group not in [each.group_id for each in admin.list_consumer_groups().result(60).valid]


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    bootstrap: str, topic: str, unique: Unique, protocol: str
) -> None:
    settings = group_settings(unique("static"), protocol)
    returning = {"group.instance.id": "returns"}
    assigned: list[int] = []
    with consumer(bootstrap, **settings, **{"group.instance.id": "stays"}) as stays:
        stays.subscribe([topic], on_assign=lambda _member, parts: assigned.append(len(parts)))
        with consumer(bootstrap, **settings, **returning) as returns:
            returns.subscribe([topic])
            wait_split([stays, returns], [2, 2])
            held = partitions_of(returns)
        assigned.clear()
        with consumer(bootstrap, **settings, **returning) as returns:
            returns.subscribe([topic])
            wait_split([stays, returns], [2, 2])
            assert partitions_of(returns) == held
            produce(bootstrap, topic, [f"{number}" for number in range(8)])
            assert [len(each) for each in take([stays, returns], 8)] == [4, 4]
    assert assigned == []


def test_a_second_static_member_of_the_same_name_fences_the_first(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    settings = group_settings(unique("fenced"), "range")
    instance = {"group.instance.id": "one"}
    errors: list[KafkaError] = []
    with consumer(bootstrap, **settings, **instance) as first:
        first.subscribe([topic])
        wait_split([first], [4])
        with consumer(bootstrap, **settings, **instance) as second:
            second.subscribe([topic])
            wait_split([second], [4])

            def fenced() -> bool:
                errors.extend(error for each in first.consume(9, 0.05) if (error := each.error()))
                return any(each.code() == KafkaError._FATAL for each in errors)

            wait_until(fenced, "the fencing of the first member")


def test_an_idempotent_producer_keeps_order_and_count(bootstrap: str, topic: str) -> None:
    values = [f"{number}" for number in range(400)]
    produce(bootstrap, topic, values, **{"enable.idempotence": True, "batch.num.messages": 10})
    records = read_partitions(bootstrap, topic, 400)
    for partition in range(4):
        mine = [record for record in records if record.partition() == partition]
        assert values_of(mine) == values[partition::4]
        assert [record.offset() for record in mine] == list(range(100))


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 5}
    )
    producer.init_transactions(30)
    return producer


def test_only_committed_transactions_are_read_committed(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    producer = transactional(bootstrap, unique("writer"))
    for outcome in ("kept", "dropped", "kept"):
        producer.begin_transaction()
        for number in range(8):
            producer.produce(topic, value=f"{outcome}-{number}", partition=number % 4)
        producer.flush(30)
        if outcome == "kept":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    produce(bootstrap, topic, ["end"] * 4)
    committed = read_partitions(bootstrap, topic, 20, **READ_COMMITTED)
    assert sorted(values_of(committed)) == sorted(
        ["end"] * 4 + 2 * [f"kept-{number}" for number in range(8)]
    )
    everything = read_partitions(bootstrap, topic, 28, **READ_UNCOMMITTED)
    assert sum("dropped" in value for value in values_of(everything)) == 8


def test_an_open_transaction_holds_back_the_last_stable_offset(
    admin: AdminClient, bootstrap: str, topic: str, unique: Unique
) -> None:
    producer = transactional(bootstrap, unique("open"))
    producer.begin_transaction()
    producer.produce(topic, value="pending", partition=0)
    producer.flush(30)
    zero = TopicPartition(topic, 0)

    def latest(isolation: IsolationLevel) -> int:
        answer = admin.list_offsets({zero: OffsetSpec.latest()}, isolation_level=isolation)
        return int(answer[zero].result(60).offset)

    assert latest(IsolationLevel.READ_UNCOMMITTED) == 1
    assert latest(IsolationLevel.READ_COMMITTED) == 0
    producer.commit_transaction(30)
    # The marker that ends the transaction takes an offset of its own; it may come a moment later.
    wait_until(lambda: latest(IsolationLevel.READ_COMMITTED) == 2, "the end of the transaction")


def test_offsets_in_a_transaction_follow_its_outcome(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    produce(bootstrap, topic, [f"{number}" for number in range(40)])
    group = unique("transform")
    producer = transactional(bootstrap, unique("mover"))
    with consumer(
        bootstrap, **group_settings(group, "range"), **{"enable.auto.commit": False}
    ) as reader:
        reader.subscribe([topic])
        take([reader], 40)
        for offset, commits in ((4, True), (9, False)):
            producer.begin_transaction()
            positions = [TopicPartition(topic, each, offset) for each in range(4)]
            member = reader.consumer_group_metadata()
            producer.send_offsets_to_transaction(positions, member, 30)
            if commits:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
        asked = [TopicPartition(topic, each) for each in range(4)]
        assert {each.offset for each in reader.committed(asked, timeout=30)} == {4}


def test_a_new_transactional_producer_fences_the_old_one(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    name = unique("fenced")
    old = transactional(bootstrap, name)
    old.begin_transaction()
    old.produce(topic, value="of the old one", partition=0)
    old.flush(30)
    new = transactional(bootstrap, name)
    old.produce(topic, value="too late", partition=0)
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(30)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    new.begin_transaction()
    new.produce(topic, value="of the new one", partition=0)
    new.commit_transaction(30)
    records = read_partitions(bootstrap, topic, 1, **READ_COMMITTED)
    assert values_of(records) == ["of the new one"]


def test_a_transaction_left_open_is_aborted_after_its_time(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": unique("slow"),
            "transaction.timeout.ms": 1000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value="never committed", partition=0)
    producer.flush(30)
    produce(bootstrap, topic, ["after"])
    records = read_partitions(bootstrap, topic, 1, **READ_COMMITTED)
    assert values_of(records) == ["after"]


def test_offsets_are_found_by_timestamp_and_seeked_to(
    admin: AdminClient, bootstrap: str, topic: str
) -> None:
    producer = ordered_producer(bootstrap, **{"batch.num.messages": 10})
    for number in range(100):
        producer.produce(
            topic, value=f"{number}", partition=2, timestamp=FIRST_TIMESTAMP_MS + 10 * number
        )
    assert producer.flush(30) == 0
    two = TopicPartition(topic, 2)
    with consumer(bootstrap) as reader:
        wanted = TopicPartition(topic, 2, FIRST_TIMESTAMP_MS + 495)
        (found,) = reader.offsets_for_times([wanted], timeout=30)
        assert found.offset == 50
        assert reader.get_watermark_offsets(two, timeout=30) == (0, 100)
        reader.assign([found])
        (records,) = take([reader], 1)
        assert values_of(records)[0] == "50"
        reader.seek(TopicPartition(topic, 2, 97))
        (records,) = take([reader], 3)
        assert values_of(records)[-3:] == ["97", "98", "99"]
    newest = admin.list_offsets({two: OffsetSpec.max_timestamp()})[two].result(60)
    assert (newest.offset, newest.timestamp) == (99, FIRST_TIMESTAMP_MS + 990)


def test_deleted_records_are_gone_for_readers(
    admin: AdminClient, bootstrap: str, topic: str
) -> None:
    produce(bootstrap, topic, [f"{number}" for number in range(40)])
    cut = TopicPartition(topic, 0, 6)
    assert admin.delete_records([cut])[cut].result(60).low_watermark == 6
    records = read_partitions(bootstrap, topic, 34)
    assert min(record.offset() for record in records if record.partition() == 0) == 6


def test_a_record_above_the_limit_is_refused(
    admin: AdminClient, bootstrap: str, unique: Unique
) -> None:
    name = unique("small")
    admin.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": "1000"})])[name].result(
        30
    )
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[KafkaError | None] = []
    producer.produce(name, value=b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert [each and each.code() for each in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_a_topic_comes_into_being_when_first_written(bootstrap: str, unique: Unique) -> None:
    name = unique("automatic")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, value=b"first")
    assert producer.flush(30) == 0
    with consumer(bootstrap) as reader:
        reader.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
        (records,) = take([reader], 1)
        assert values_of(records) == ["first"]
