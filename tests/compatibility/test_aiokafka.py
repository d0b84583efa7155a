"""aiokafka, unchanged, against the broker."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack

import pytest
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRecord,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ProducerFenced

pytestmark = pytest.mark.slow

FIRST_TIMESTAMP_MS = 1_700_000_000_000
ASSIGNORS = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]

Unique = Callable[[str], str]


class Clients:
    """Opens clients of one broker inside a test and closes them at its end."""

    def __init__(self, bootstrap: str, stack: AsyncExitStack) -> None:
        self._bootstrap = bootstrap
        self._stack = stack

    async def producer(self, **settings: object) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, **settings)
        return await self._stack.enter_async_context(producer)

    async def reader(self, *topics: str, **settings: object) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="earliest",
            **settings,
        )
        return await self._stack.enter_async_context(consumer)

    async def member(self, topic: str, group: str, **settings: object) -> AIOKafkaConsumer:
        return await self.reader(
            topic,
            group_id=group,
            heartbeat_interval_ms=200,
            session_timeout_ms=10_000,
            **settings,
        )

    async def admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        self._stack.push_async_callback(admin.close)
        await admin.start()
        return admin

    async def topic(self, name: str) -> str:
        """Makes a topic of four partitions and returns when their leaders answer."""
        admin = await self.admin()
        await admin.create_topics([NewTopic(name, 4, 1)])
        reader = await self.reader()
        await reader.end_offsets([TopicPartition(name, each) for each in range(4)])
        return name


def run(bootstrap: str, scenario: Callable[[Clients], Coroutine[object, object, None]]) -> None:
    """Runs one scenario on an event loop of its own, with a deadline."""

    async def whole() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            await scenario(Clients(bootstrap, stack))

    asyncio.run(whole())


async def send(
    producer: AIOKafkaProducer, topic: str, values: Sequence[str], *, partition: int | None = None
) -> None:
    """Sends values to one partition, or over all four in turn, and waits for all answers."""
    sent = [
        await producer.send(
            topic, value.encode(), partition=number % 4 if partition is None else partition
        )
        for number, value in enumerate(values)
    ]
    await asyncio.gather(*sent)


async def take(consumers: Sequence[AIOKafkaConsumer], count: int) -> list[list[ConsumerRecord]]:
    """Reads with all consumers until they have `count` records together; one list for each."""
    taken: list[list[ConsumerRecord]] = [[] for _ in consumers]
    async with asyncio.timeout(30):
        while sum(len(records) for records in taken) < count:
            for consumer, records in zip(consumers, taken, strict=True):
                for batch in (await consumer.getmany(timeout_ms=50)).values():
                    records.extend(batch)
    return taken


async def wait_split(members: Sequence[AIOKafkaConsumer], sizes: Sequence[int]) -> None:
    """Returns when the members share the four partitions in the given sizes."""
    async with asyncio.timeout(30):
        while True:
            held = [member.assignment() for member in members]
            if [len(each) for each in held] == list(sizes) and len(set().union(*held)) == 4:
                return
            for member in members:
                assert not await member.getmany(timeout_ms=20)


def values_of(records: Sequence[ConsumerRecord]) -> list[str]:
    return [record.value.decode() for record in records]


def test_topics_are_created_described_altered_and_deleted(bootstrap: str, unique: Unique) -> None:
    name = unique("managed")

    async def scenario(clients: Clients) -> None:
        admin = await clients.admin()
        new = NewTopic(name, 2, 1, topic_configs={"retention.ms": "86400000"})
        created = await admin.create_topics([new])
        assert [each[1] for each in created.topic_errors] == [0]
        again = await admin.create_topics([new])
        assert [each[1] for each in again.topic_errors] == [36]
        await admin.create_partitions({name: NewPartitions(3)})
        async with asyncio.timeout(30):
            while len((await admin.describe_topics([name]))[0]["partitions"]) != 3:
                pass
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        (answer,) = await admin.describe_configs([resource])
        configs = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        assert configs["retention.ms"] == "86400000"
        assert configs["cleanup.policy"] == "delete"
        await admin.delete_topics([name])
        async with asyncio.timeout(30):
            while name in await admin.list_topics():
                pass

    run(bootstrap, scenario)


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_whole_under_every_compression(
    bootstrap: str, unique: Unique, compression: str | None
) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("whole"))
        producer = await clients.producer(compression_type=compression, linger_ms=5)
        sent = [
            await producer.send(
                topic,
                f"value-{number}-{'abc' * 50}".encode(),
                key=f"key-{number}".encode(),
                partition=1,
                timestamp_ms=FIRST_TIMESTAMP_MS + number,
                headers=[("number", str(number).encode()), ("empty", b"")],
            )
            for number in range(100)
        ]
        answers = await asyncio.gather(*sent)
        assert [answer.offset for answer in answers] == list(range(100))
        reader = await clients.reader(topic)
        (records,) = await take([reader], 100)
        assert [record.offset for record in records] == list(range(100))
        assert values_of(records) == [f"value-{each}-{'abc' * 50}" for each in range(100)]
        assert [record.key.decode() for record in records] == [f"key-{n}" for n in range(100)]
        assert [each.timestamp - FIRST_TIMESTAMP_MS for each in records] == list(range(100))
        assert records[7].headers == (("number", b"7"), ("empty", b""))

    run(bootstrap, scenario)


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: str(each.name))
def test_a_group_shares_partitions_as_members_come_and_go(
    bootstrap: str, unique: Unique, assignor: type
) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("shared"))
        group = unique("group")
        producer = await clients.producer()
        settings = {"partition_assignment_strategy": (assignor,)}
        first = await clients.member(topic, group, **settings)
        await wait_split([first], [4])
        await send(producer, topic, [f"alone-{number}" for number in range(40)])
        (alone,) = await take([first], 40)
        second = await clients.member(topic, group, **settings)
        await wait_split([first, second], [2, 2])
        await send(producer, topic, [f"shared-{number}" for number in range(40)])
        shared = await take([first, second], 40)
        await second.stop()
        await wait_split([first], [4])
        await send(producer, topic, [f"again-{number}" for number in range(40)])
        (again,) = await take([first], 40)
        assert [len(each) for each in shared] == [20, 20]
        phases = {"alone": alone, "shared": [*shared[0], *shared[1]], "again": again}
        for prefix, seen in phases.items():
            assert sorted(values_of(seen)) == sorted(f"{prefix}-{each}" for each in range(40))

    run(bootstrap, scenario)


def test_a_group_resumes_after_its_committed_offsets(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("resumed"))
        group = unique("resuming")
        await send(await clients.producer(), topic, [str(number) for number in range(40)])
        first = await clients.member(topic, group, enable_auto_commit=False)
        await take([first], 40)
        await first.commit({TopicPartition(topic, each): (7, "seven") for each in range(4)})
        await first.stop()
        second = await clients.member(topic, group, enable_auto_commit=False)
        (records,) = await take([second], 12)
        assert {record.offset for record in records} == {7, 8, 9}
        assert await second.committed(TopicPartition(topic, 3)) == 7
        admin = await clients.admin()
        listed = await admin.list_consumer_groups()
        assert (group, "consumer") in [(each[0], each[1]) for each in listed]
        offsets = await admin.list_consumer_group_offsets(group)
        assert offsets[TopicPartition(topic, 0)] == (7, "seven")

    run(bootstrap, scenario)


def test_a_static_member_comes_back_to_its_partitions(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("static"))
        group = unique("static")
        stays = await clients.member(topic, group, group_instance_id="stays")
        returns = await clients.member(topic, group, group_instance_id="returns")
        await wait_split([stays, returns], [2, 2])
        held = (stays.assignment(), returns.assignment())
        await returns.stop()
        returns = await clients.member(topic, group, group_instance_id="returns")
        await wait_split([stays, returns], [2, 2])
        assert (stays.assignment(), returns.assignment()) == held

    run(bootstrap, scenario)


def test_an_idempotent_producer_keeps_order_and_count(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("idempotent"))
        producer = await clients.producer(enable_idempotence=True, max_batch_size=200)
        values = [str(number) for number in range(200)]
        await send(producer, topic, values, partition=0)
        reader = await clients.reader(topic)
        (records,) = await take([reader], 200)
        assert values_of(records) == values

    run(bootstrap, scenario)


def test_transactions_are_read_by_their_outcome(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("transactions"))
        producer = await clients.producer(transactional_id=unique("writer"))
        for outcome in ("kept", "dropped", "kept"):
            await producer.begin_transaction()
            await send(producer, topic, [outcome] * 8)
            if outcome == "kept":
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        await send(await clients.producer(), topic, ["end"] * 4)
        committed = await clients.reader(topic, isolation_level="read_committed")
        (records,) = await take([committed], 20)
        assert sorted(values_of(records)) == ["end"] * 4 + ["kept"] * 16
        everything = await clients.reader(topic)
        (records,) = await take([everything], 28)
        assert values_of(records).count("dropped") == 8

    run(bootstrap, scenario)


def test_offsets_in_a_transaction_follow_its_outcome(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("moved"))
        group = unique("mover")
        producer = await clients.producer(transactional_id=unique("mover"))
        zero = TopicPartition(topic, 0)
        for offset, commits in ((4, True), (9, False)):
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({zero: offset}, group)
            if commits:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        member = await clients.member(topic, group)
        assert await member.committed(zero) == 4

    run(bootstrap, scenario)


def test_a_new_transactional_producer_fences_the_old_one(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("fenced"))
        name = unique("fenced")
        old = await clients.producer(transactional_id=name)
        await old.begin_transaction()
        await old.send_and_wait(topic, b"of the old one", partition=0)
        new = await clients.producer(transactional_id=name)
        with pytest.raises(ProducerFenced):
            await old.send_and_wait(topic, b"too late", partition=0)
        async with new.transaction():
            await new.send_and_wait(topic, b"of the new one", partition=0)
        reader = await clients.reader(topic, isolation_level="read_committed")
        (records,) = await take([reader], 1)
        assert values_of(records) == ["of the new one"]

    run(bootstrap, scenario)


def test_offsets_are_found_by_timestamp_and_seeked_to(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("times"))
        producer = await clients.producer(enable_idempotence=True, max_batch_size=500)
        for number in range(100):
            await producer.send(
                topic,
                str(number).encode(),
                partition=2,
                timestamp_ms=FIRST_TIMESTAMP_MS + 10 * number,
            )
        await producer.flush()
        two = TopicPartition(topic, 2)
        reader = await clients.reader()
        reader.assign([two])
        found = await reader.offsets_for_times({two: FIRST_TIMESTAMP_MS + 495})
        assert (found[two].offset, found[two].timestamp) == (50, FIRST_TIMESTAMP_MS + 500)
        assert await reader.beginning_offsets([two]) == {two: 0}
        assert await reader.end_offsets([two]) == {two: 100}
        reader.seek(two, 97)
        (records,) = await take([reader], 3)
        assert values_of(records) == ["97", "98", "99"]

    run(bootstrap, scenario)


def test_deleted_records_are_gone_for_readers(bootstrap: str, unique: Unique) -> None:
    async def scenario(clients: Clients) -> None:
        topic = await clients.topic(unique("shortened"))
        await send(await clients.producer(), topic, [str(each) for each in range(10)], partition=0)
        admin = await clients.admin()
        zero = TopicPartition(topic, 0)
        assert await admin.delete_records({zero: RecordsToDelete(before_offset=6)}) == {zero: 6}
        reader = await clients.reader(topic)
        (records,) = await take([reader], 4)
        assert [record.offset for record in records] == [6, 7, 8, 9]

    run(bootstrap, scenario)
