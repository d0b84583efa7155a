"""Offsets of source connectors: the records of Kafka's offset topic, and the file."""

from pathlib import Path
from unittest.mock import patch

import pytest

from broker import Broker
from broker.client.administration.values import NewTopic
from broker.client.api import ConsumerRecord
from broker.client.opening import admin, producer
from broker.client.record_consumer import Consumer
from broker.errors import CorruptBatchError
from broker.files import FileSystem
from connect.errors import ConfigError, Conflict, ConnectError, DataError, RetriableError
from connect.state.offsets import (
    FileOffsets,
    OffsetStore,
    SourceOffset,
    TopicOffsets,
    offset_record,
)
from connect.state.state_topic import StateTopic, TopicSpec
from tests.support.topics import read_topic

SPEC = TopicSpec("connect-offsets", partitions=25, replication_factor=1)
FILE = {"filename": "/tmp/in.txt"}


def open_offsets(broker: Broker) -> TopicOffsets:
    offsets = TopicOffsets(StateTopic(broker, SPEC))
    offsets.open()
    return offsets


def test_an_offset_has_the_bytes_that_kafka_connect_writes() -> None:
    record = offset_record("src", SourceOffset(FILE, {"position": 6}))
    assert record == (b'["src",{"filename":"/tmp/in.txt"}]', b'{"position":6}')
    assert offset_record("src", SourceOffset({"a": "ä"}, None)) == (
        '["src",{"a":"ä"}]'.encode(),
        None,
    )
    primitives = {"a": None, "b": True, "c": 1.5, "d": b"\x00\xff"}
    assert offset_record("s", SourceOffset({}, primitives)) == (
        b'["s",{}]',
        b'{"a":null,"b":true,"c":1.5,"d":"AP8="}',
    )


@pytest.mark.parametrize(
    ("value", "kind"), [({"b": 1}, "MAP"), ([1], "ARRAY"), (object(), "object")]
)
def test_an_offset_has_only_primitive_values(value: object, kind: str) -> None:
    with pytest.raises(DataError, match=f"but field a contains {kind}"):
        offset_record("src", SourceOffset({"a": value}, {}))


def test_the_topic_is_made_with_25_compacted_partitions(broker: Broker) -> None:
    open_offsets(broker).close()
    with admin(broker) as administration:
        described = administration.describe_topics(["connect-offsets"])["connect-offsets"]
    assert len(described.partitions) == 25


def test_saved_offsets_are_there_for_the_next_worker(broker: Broker) -> None:
    first = open_offsets(broker)
    first.save("src", [SourceOffset(FILE, {"position": 2}), SourceOffset({"b": 1}, {"x": 1})])
    first.save("src", [SourceOffset(FILE, {"position": 6}), SourceOffset({"b": 1}, None)])
    first.close()
    second = open_offsets(broker)
    assert second.get("src", [{"b": 1}, FILE]) == [None, {"position": 6}]
    assert second.get("other", [FILE]) == [None]
    assert second.all_of("src") == [SourceOffset(FILE, {"position": 6})]
    second.close()


def test_a_partition_is_the_same_in_whatever_order_its_names_come(broker: Broker) -> None:
    with producer(broker) as other_worker:
        open_offsets(broker).close()
        other_worker.send("connect-offsets", b'{"p":1}', b'["src",{"t":"x","n":7}]').result()
    offsets = open_offsets(broker)
    assert offsets.get("src", [{"n": 7, "t": "x"}]) == [{"p": 1}]
    offsets.save("src", [SourceOffset({"n": 7, "t": "x"}, {"p": 2})])
    offsets.close()
    assert {record.key for record in read_topic(broker, "connect-offsets")} == {
        b'["src",{"t":"x","n":7}]'
    }


def test_offsets_of_a_transaction_count_when_it_is_committed(broker: Broker) -> None:
    offsets = open_offsets(broker)
    with producer(broker, transactional_id="task") as writer:
        writer.init_transactions()
        for position, commit in ((1, True), (2, False)):
            writer.begin_transaction()
            offsets.send("src", [SourceOffset(FILE, {"position": position})], writer)
            writer.commit_transaction() if commit else writer.abort_transaction()
    assert offsets.get("src", [FILE]) == [{"position": 1}]
    offsets.close()


def test_records_that_are_not_offsets_are_ignored(broker: Broker) -> None:
    open_offsets(broker).close()
    with producer(broker) as writer:
        for key, value in (
            (b"x", b"{}"),
            (b"[1,{}]", b"{}"),
            (b'["src"]', b"{}"),
            (b'["src",5]', b"{}"),
            (b'["src",{"a":1}]', b"{"),
            (b'["src",{"a":2}]', b"[]"),
            (b'["src",{"a":3}]', b'{"ok":1}'),
        ):
            writer.send("connect-offsets", value, key).result()
    offsets = open_offsets(broker)
    assert offsets.all_of("src") == [SourceOffset({"a": 3}, {"ok": 1})]
    offsets.close()


def test_a_topic_that_is_not_compacted_is_refused(broker: Broker) -> None:
    with admin(broker) as administration:
        administration.create_topics([NewTopic(SPEC.name, 25, 1)]).all()
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete, it must be compact"):
        open_offsets(broker)


def test_the_file_keeps_offsets_whole(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    store = opened(file)
    first: OffsetStore = store
    first.save("src", [SourceOffset(FILE, {"position": 2})])
    first.save("other", [SourceOffset({"n": 1}, {"x": "y"})])
    first.save("src", [SourceOffset({"n": 2}, {"x": "y"}), SourceOffset({"n": 2}, None)])
    assert file.read_text() == (
        '[[["src",{"filename":"/tmp/in.txt"}], {"position":2}],\n [["other",{"n":1}], {"x":"y"}]]\n'
    )
    store.close()
    second = opened(file)
    assert second.all_of("src") == [SourceOffset(FILE, {"position": 2})]
    assert second.get("other", [{"n": 1}]) == [{"x": "y"}]
    second.close()
    assert not list(tmp_path.glob("*.tmp"))


def test_the_name_of_a_new_file_of_offsets_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    class Recording(FileSystem):
        def fsync_directory(self, path: str) -> None:
            synced.append(path)
            super().fsync_directory(path)

    monkeypatch.chdir(tmp_path)
    for file in (tmp_path / "offsets.json", Path("relative.json")):
        offsets = FileOffsets(file, Recording())
        offsets.open()
        offsets.save("src", [SourceOffset(FILE, {"position": 2})])
        offsets.close()
    assert synced == [str(tmp_path), "."]


def test_a_batch_that_cannot_be_read_is_not_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(self: object, reader: object, ends: object) -> None:
        raise CorruptBatchError("nonsense", topic="o", partition=0, offset=3, next_offset=5)

    monkeypatch.setattr(StateTopic, "_read_to", unreadable)
    offsets = TopicOffsets(StateTopic(broker, SPEC))
    with pytest.raises(ConnectError, match="cannot read offsets 3 to 4") as refused:
        offsets.open()
    assert not isinstance(refused.value, RetriableError)
    offsets.close()


@pytest.mark.parametrize("content", ["", "{}x", "[1]", "{"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"cannot read the offsets.*(?s:.)*offsets\.json"):
        opened(file)


def opened(file: Path) -> FileOffsets:
    offsets = FileOffsets(file)
    offsets.open()
    return offsets


def test_an_offset_behind_an_open_transaction_of_another_task_is_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = StateTopic(broker, TopicSpec("connect-offsets", partitions=1, replication_factor=1))
    offsets = TopicOffsets(topic)
    offsets.open()
    with (
        producer(broker, transactional_id="first") as first,
        producer(broker, transactional_id="second") as second,
    ):
        for task, writer in enumerate((first, second)):
            writer.init_transactions()
            writer.begin_transaction()
            offsets.send("src", [SourceOffset({"file": task}, {"line": 1})], writer)
            writer.flush()
        second.commit_transaction()
        real = StateTopic._read_to_end
        ended: list[bool] = []

        def read_to_end(self: StateTopic, reader: Consumer) -> None:
            poll = reader.poll

            def end_first(*given: int, **named: int) -> list[ConsumerRecord]:
                if not ended:
                    first.abort_transaction()
                    ended.append(True)
                return poll(*given, **named)

            with patch.object(type(reader), "poll", staticmethod(end_first)):
                real(self, reader)

        monkeypatch.setattr(StateTopic, "_read_to_end", read_to_end)
        assert offsets.get("src", [{"file": 0}, {"file": 1}]) == [None, {"line": 1}]
    offsets.close()


@pytest.mark.timeout(30)  # the transaction stays open for a minute
def test_a_worker_starts_while_a_transaction_of_a_killed_task_is_open(broker: Broker) -> None:
    offsets = open_offsets(broker)
    offsets.save("src", [SourceOffset(FILE, {"line": 1})])
    with producer(broker, transactional_id="killed") as killed:
        killed.init_transactions()
        killed.begin_transaction()
        offsets.send("src", [SourceOffset({"file": 2}, {"line": 1})], killed)
        killed.flush()
        following = open_offsets(broker)
        following.close()
        killed.abort_transaction()
    assert offsets.all_of("src") == [SourceOffset(FILE, {"line": 1})]
    offsets.close()


def test_who_asks_a_worker_that_stops_is_told_so(broker: Broker) -> None:
    offsets = open_offsets(broker)
    offsets.close()
    with pytest.raises(Conflict, match="the worker is stopping"):
        offsets.get("src", [FILE])
    with pytest.raises(Conflict, match="the worker is stopping"):
        offsets.save("src", [SourceOffset(FILE, {"position": 6})])
