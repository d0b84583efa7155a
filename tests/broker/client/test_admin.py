"""The admin on every kind of broker: a value or an error for each thing asked about."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from broker.client import admin, consumer, producer
from broker.client.administration.values import ConfigEntry, Results
from broker.client.api import (
    ConfigChange,
    ConfigResource,
    NewTopic,
    OffsetAndMetadata,
)
from broker.client.opening import Target
from broker.errors import BrokerError, ConfigError, ErrorCode
from broker.model import TopicPartition
from tests.support.peer import wait_until

K = TypeVar("K")
V = TypeVar("V")
MakeTopic = Callable[..., str]

NO_TOPIC = "no-such-topic"


def codes(results: Results[K, V]) -> dict[K, ErrorCode]:
    return {key: error.code for key, error in results.errors.items()}


def fill(target: Target, topic: str, count: int) -> None:
    with producer(target) as out:
        for number in range(count):
            out.send(topic, b"%d" % number, partition=0, timestamp_ms=1_700_000_000_000 + number)


def read_as_group(target: Target, topic: str, group_id: str, count: int) -> None:
    with consumer(target, group_id=group_id, auto_offset_reset="earliest") as reader:
        reader.subscribe([topic])
        seen = 0
        while seen < count:
            seen += len(reader.poll(timeout_ms=500))


def test_topics_are_made_described_grown_and_deleted(target: Target, make_topic: MakeTopic) -> None:
    name = f"{make_topic()}-made"
    with admin(target) as administration:
        new = NewTopic(name, 3, 1, {"retention.ms": "1000000"})
        assert administration.create_topics([new], validate_only=True)[name].partitions == 3
        assert name not in administration.list_topics()
        made = administration.create_topics([new, NewTopic("bad/name")])
        assert (made[name].partitions, made[name].replication_factor) == (3, 1)
        assert made[name].configs["retention.ms"] == "1000000"
        assert codes(made) == {"bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION}
        with pytest.raises(BrokerError, match="bad/name"):
            made.all()
        again = administration.create_topics([new])
        assert codes(again) == {name: ErrorCode.TOPIC_ALREADY_EXISTS}
        wait_until(lambda: name in administration.list_topics(), "the topic to be known")
        listed = administration.list_topics()[name]
        assert (listed.id, listed.partitions) == (made[name].id, 3)

        grown = administration.create_partitions({name: 5, NO_TOPIC: 2})
        assert grown[name] is None
        assert codes(grown) == {NO_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        smaller = administration.create_partitions({name: 2})
        assert codes(smaller) == {name: ErrorCode.INVALID_PARTITIONS}

        wait_until(
            lambda: len(administration.describe_topics([name])[name].partitions) == 5,
            "the partitions to be known",
        )
        described = administration.describe_topics([name, NO_TOPIC])
        assert sorted(described[name].partitions) == [0, 1, 2, 3, 4]
        node = administration.describe_cluster().nodes[0]
        assert {p.leader for p in described[name].partitions.values()} == {node.id}
        assert codes(described) == {NO_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        deleted = administration.delete_topics([name, NO_TOPIC])
        assert deleted[name] is None
        assert codes(deleted) == {NO_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        wait_until(lambda: name not in administration.list_topics(), "the topic to go")


def test_settings_are_changed_one_by_one(target: Target, make_topic: MakeTopic) -> None:
    topic = ConfigResource("topic", make_topic(retention_ms="5000"))
    unknown = ConfigResource("topic", NO_TOPIC)
    with admin(target) as administration:
        before = administration.describe_configs([topic, unknown])
        assert before[topic]["retention.ms"].value == "5000"
        assert not before[topic]["retention.ms"].is_default
        assert before[topic]["segment.bytes"].is_default
        assert codes(before) == {unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        changes = [
            ConfigChange("cleanup.policy", "compact", "append"),
            ConfigChange("retention.ms", operation="delete"),
            ConfigChange("segment.bytes", "1048576"),
        ]
        only_checked = administration.alter_configs({topic: changes}, validate_only=True)
        assert only_checked[topic] is None
        administration.alter_configs({topic: changes}).all()
        names = ["cleanup.policy", "retention.ms", "segment.bytes"]

        def described() -> dict[str, ConfigEntry]:
            return administration.describe_configs([topic], names)[topic]

        wait_until(lambda: described()["segment.bytes"].value == "1048576", "the settings")
        after = described()
        assert sorted(after) == names
        assert set((after["cleanup.policy"].value or "").split(",")) == {"delete", "compact"}
        assert after["retention.ms"].is_default

        wrong = administration.alter_configs({topic: [ConfigChange("retention.ms", "many")]})
        assert codes(wrong) == {topic: ErrorCode.INVALID_CONFIG}
        with pytest.raises(ConfigError, match="kind of resource"):
            administration.describe_configs([ConfigResource("tpoic", "x")])


def test_a_broker_shows_its_own_settings(target: Target) -> None:
    with admin(target) as administration:
        node = administration.describe_cluster().nodes[0]
        resource = ConfigResource("broker", str(node.id))
        found = administration.describe_configs([resource])[resource]
        assert found["offsets.topic.num.partitions"].value == "4"


def test_records_are_deleted_and_offsets_listed(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(target, topic, 10)
    tp, empty, missing = (
        TopicPartition(topic, 0),
        TopicPartition(topic, 1),
        TopicPartition(topic, 9),
    )
    with admin(target) as administration:
        deleted = administration.delete_records({tp: 4, missing: 1})
        assert deleted[tp] == 4
        assert codes(deleted) == {missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        too_far = administration.delete_records({tp: 99})
        assert codes(too_far) == {tp: ErrorCode.OFFSET_OUT_OF_RANGE}
        earliest = administration.list_offsets({tp: -2, empty: -2, missing: -2})
        assert (earliest[tp].offset, earliest[empty].offset) == (4, 0)
        assert codes(earliest) == {missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert administration.list_offsets({tp: -1}, committed=True)[tp].offset == 10
        youngest = administration.list_offsets({tp: -3})[tp]
        assert (youngest.offset, youngest.timestamp_ms) == (9, 1_700_000_000_009)
        by_time = administration.list_offsets({tp: 1_700_000_000_007, empty: 5})
        assert (by_time[tp].offset, by_time[empty].offset) == (7, -1)
        assert administration.delete_records({tp: -1})[tp] == 10


def test_log_dirs_show_what_partitions_take(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(target, topic, 100)
    with admin(target) as administration:
        (node,) = administration.describe_cluster().nodes
        dirs = administration.describe_log_dirs()[node.id]
        sizes = {tp: size for each in dirs for tp, size in each.partitions.items()}
        assert sizes[TopicPartition(topic, 0)].size_bytes > 100
        assert all(each.error is None and each.path for each in dirs)


def test_groups_are_listed_described_and_deleted(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(target, topic, 5)
    group_id = f"g-{topic}"
    with admin(target) as administration:
        with consumer(
            target, group_id=group_id, auto_offset_reset="earliest", client_id="me"
        ) as reader:
            reader.subscribe([topic])
            while not reader.poll(timeout_ms=500):
                pass
            listed = {group.group_id: group for group in administration.list_groups()}
            assert (listed[group_id].state, listed[group_id].type) == ("Stable", "classic")
            assert group_id not in {
                g.group_id for g in administration.list_groups(states=["Empty"])
            }
            described = administration.describe_groups([group_id, "no-such-group"])
            group = described[group_id]
            assert (group.protocol_type, group.assignor) == ("consumer", "range")
            (member,) = group.members
            assert member.member_id == reader.group_metadata().member_id
            assert set(member.partitions) == reader.assignment()
            assert (member.client_id, member.topics) == ("me", (topic,))
            assert codes(described) == {"no-such-group": ErrorCode.GROUP_ID_NOT_FOUND}
            busy = administration.delete_groups([group_id])
            assert codes(busy) == {group_id: ErrorCode.NON_EMPTY_GROUP}
        assert administration.describe_groups([group_id])[group_id].state == "Empty"
        deleted = administration.delete_groups([group_id, "no-such-group"])
        assert deleted[group_id] is None
        assert codes(deleted) == {"no-such-group": ErrorCode.GROUP_ID_NOT_FOUND}
        assert group_id not in {group.group_id for group in administration.list_groups()}


def test_offsets_of_a_group_are_set_reset_and_deleted(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(target, topic, 10)
    group_id = f"g-{topic}"
    tp, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    read_as_group(target, topic, group_id, 10)
    with admin(target) as administration:
        assert administration.list_group_offsets(group_id)[tp].offset == 10
        assert administration.list_group_offsets(group_id, [tp]).values.keys() == {tp}
        assert administration.list_group_offsets("no-such-group").values == {}
        administration.alter_group_offsets(
            group_id, {tp: OffsetAndMetadata(3, metadata="by hand")}
        ).all()
        assert administration.list_group_offsets(group_id)[tp].metadata == "by hand"
        reset = administration.reset_group_offsets(group_id, {tp: 1_700_000_000_006, empty: -2})
        assert reset.all() == {tp: 6, empty: 0}
        late = administration.reset_group_offsets(
            group_id, {tp: 1_800_000_000_000, TopicPartition(topic, 7): -2}
        )
        assert late[tp] == 10
        assert codes(late) == {TopicPartition(topic, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        administration.delete_group_offsets(group_id, [empty]).all()
        assert administration.list_group_offsets(group_id).values.keys() == {tp}


def test_offsets_of_a_group_with_members_cannot_be_set(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(target, topic, 1)
    tp = TopicPartition(topic, 0)
    with (
        admin(target) as administration,
        consumer(target, group_id=f"g-{topic}", auto_offset_reset="earliest") as reader,
    ):
        reader.subscribe([topic])
        while not reader.poll(timeout_ms=500):
            pass
        refused = administration.alter_group_offsets(f"g-{topic}", {tp: OffsetAndMetadata(0)})
        assert codes(refused) == {tp: ErrorCode.UNKNOWN_MEMBER_ID}
        in_use = administration.delete_group_offsets(f"g-{topic}", [tp])
        assert codes(in_use) == {tp: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_transactions_and_producers_are_shown(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    transactional_id = f"t-{topic}"
    with admin(target) as administration:
        with producer(target, transactional_id=transactional_id) as out:
            out.init_transactions()
            out.begin_transaction()
            out.send(topic, b"open")
            out.flush()
            (listed,) = [
                each
                for each in administration.list_transactions(states=["Ongoing"])
                if each.transactional_id == transactional_id
            ]
            described = administration.describe_transactions([transactional_id, "no-such-id"])
            found = described[transactional_id]
            assert (found.state, found.producer_id) == ("Ongoing", listed.producer_id)
            assert found.partitions == (tp,)
            assert codes(described) == {"no-such-id": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
            (seen,) = administration.describe_producers([tp])[tp]
            assert (seen.producer_id, seen.transaction_start_offset) == (listed.producer_id, 0)
            out.abort_transaction()
        # The coordinator answers before the marker is in the log.
        wait_until(
            lambda: administration.describe_producers([tp])[tp][0].transaction_start_offset is None,
            "the marker",
        )


def test_a_hanging_transaction_can_be_aborted(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    with (
        admin(target) as administration,
        producer(target, transactional_id=f"t-{topic}") as out,
    ):
        out.init_transactions()
        out.begin_transaction()
        out.send(topic, b"hangs")
        out.flush()
        assert administration.list_offsets({tp: -1}, committed=True)[tp].offset == 0
        (hanging,) = administration.describe_producers([tp])[tp]
        administration.abort_transaction(tp, hanging)
        wait_until(
            lambda: administration.list_offsets({tp: -1}, committed=True)[tp].offset == 2,
            "the marker",
        )
        out.abort_transaction()
