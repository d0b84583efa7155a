"""The topic catalog: names, ids, settings, and what survives a restart."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.coordinator.partitions import Partitions
from broker.coordinator.topics import (
    Change,
    NewTopic,
    Steps,
    Topic,
    TopicCatalog,
    check_name,
    format_topic_id,
)
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import GROUP_TOPIC, TRANSACTION_TOPIC, TopicPartition
from broker.storage.data_directory import DataDirectory


def logs_in(path: Path) -> DataDirectory:
    """Logs, which have no files before the first append."""
    return DataDirectory(path, config=BrokerConfig(), clock=ManualClock(), lock=threading.RLock())


@pytest.fixture
def storage(tmp_path: Path) -> DataDirectory:
    return logs_in(tmp_path)


@pytest.fixture
def catalog(tmp_path: Path, storage: DataDirectory) -> TopicCatalog:
    return TopicCatalog(tmp_path, config=BrokerConfig(), partitions=Partitions(storage))


def reloaded(tmp_path: Path) -> TopicCatalog:
    partitions = Partitions(logs_in(tmp_path))
    catalog = TopicCatalog(tmp_path, config=BrokerConfig(), partitions=partitions)
    catalog.load()
    return catalog


def names_of_logs(storage: DataDirectory) -> set[str]:
    return {str(log.topic_partition) for log in storage.logs()}


def test_topics_survive_a_restart(tmp_path: Path, catalog: TopicCatalog) -> None:
    orders = catalog.create("orders", partition_count=2, overrides={"retention.ms": "5"})
    catalog.create("gone", partition_count=1)
    catalog.delete("gone")
    catalog.grow("orders", 3)
    again = reloaded(tmp_path)
    assert again.names() == ["orders"]
    found = again.get("orders")
    assert found is not None
    assert (found.id, found.partition_count, found.config.retention_ms) == (orders.id, 3, 5)
    assert again.by_id(orders.id) == found
    assert set(again.expected()) == {TopicPartition("orders", number) for number in range(3)}


def test_logs_follow_the_catalog(catalog: TopicCatalog, storage: DataDirectory) -> None:
    catalog.create("orders", partition_count=1)
    catalog.grow("orders", 2)
    assert names_of_logs(storage) == {"orders-0", "orders-1"}
    catalog.alter_config("orders", {"retention.ms": "7"})
    assert {log.config.retention_ms for log in storage.logs()} == {7}
    catalog.delete("orders")
    assert not storage.logs()


def test_listeners_hear_of_every_change(catalog: TopicCatalog) -> None:
    heard: list[tuple[Change, str, int]] = []

    def listener(change: Change, topics: Sequence[Topic]) -> Steps:
        for topic in topics:
            heard.append((change, topic.name, topic.partition_count))
            yield

    catalog.subscribe(listener)
    catalog.create("orders", partition_count=1)
    catalog.grow("orders", 2)
    catalog.alter_config("orders", {})
    catalog.delete("orders")
    assert heard == [
        ("created", "orders", 1),
        ("grown", "orders", 2),
        ("altered", "orders", 2),
        ("deleted", "orders", 2),
    ]


def test_several_topics_are_made_together_or_not_at_all(
    tmp_path: Path, catalog: TopicCatalog
) -> None:
    catalog.create("a", partition_count=1)
    with pytest.raises(BrokerError):
        catalog.create_all([NewTopic("b", 1, {}), NewTopic("a", 1, {})])
    assert reloaded(tmp_path).names() == ["a"]
    catalog.create_all([NewTopic("b", 1, {}), NewTopic("c", 2, {})])
    assert reloaded(tmp_path).names() == ["a", "b", "c"]


def test_ids_are_kafkas_kind_of_text(catalog: TopicCatalog) -> None:
    made = catalog.create_all([NewTopic(f"t{number}", 1, {}) for number in range(200)])
    ids = [format_topic_id(topic.id) for topic in made]
    assert len(set(ids)) == 200
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)


@pytest.mark.parametrize(
    ("name", "partitions", "compression", "segment_bytes"),
    [(GROUP_TOPIC, 50, "producer", 104857600), (TRANSACTION_TOPIC, 50, "uncompressed", 104857600)],
)
def test_internal_topics_have_kafkas_settings(
    catalog: TopicCatalog, name: str, partitions: int, compression: str, segment_bytes: int
) -> None:
    topic = catalog.ensure_internal(name)
    assert catalog.ensure_internal(name) is topic
    assert (topic.internal, topic.partition_count) == (True, partitions)
    assert topic.config.cleanup_policy == ("compact",)
    assert topic.config.compression_type == compression
    assert topic.config.segment_bytes == segment_bytes


@pytest.mark.parametrize("name", ["a", "A-9_z.", "x" * 249, "...", "_"])
def test_good_names_pass(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n", "a:b"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BrokerError) as refused:
        check_name(name)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    "change",
    [
        lambda catalog: catalog.delete("nope"),
        lambda catalog: catalog.grow("nope", 2),
        lambda catalog: catalog.alter_config("nope", {}),
    ],
)
def test_changes_to_what_is_not_there_are_refused(
    catalog: TopicCatalog, change: Callable[[TopicCatalog], Topic]
) -> None:
    with pytest.raises(BrokerError) as refused:
        change(catalog)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 2, "topics": []}',
        b'{"version": 1}',
        b'{"version": 1, "topics": [{"name": "a"}]}',
        b'{"version": 1, "topics": [{"name": "a b", "id": "AAAAAAAAAAAAAAAAAAAAAA",'
        b' "partitions": 1, "configs": {}}]}',
        b'{"version": 1, "topics": [{"name": "a", "id": "AAAA", "partitions": 1, "configs": {}}]}',
        b'{"version": 1, "topics": [{"name": "a", "id": "AAAAAAAAAAAAAAAAAAAAAA",'
        b' "partitions": 0, "configs": {}}]}',
        b'{"version": 1, "topics": [{"name": "a", "id": "AAAAAAAAAAAAAAAAAAAAAA",'
        b' "partitions": 1, "configs": {"nope": "1"}}]}',
    ],
)
def test_a_damaged_catalog_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "topics.json").write_bytes(text)
    with pytest.raises(StorageError, match=r"topics\.json"):
        reloaded(tmp_path)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_catalog(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("catalog")
    (folder / "topics.json").write_bytes(data)
    with pytest.raises(StorageError):
        reloaded(folder)


def test_a_catalog_that_cannot_be_written_leaves_things_as_they_were(
    tmp_path: Path, catalog: TopicCatalog, storage: DataDirectory
) -> None:
    catalog.create("orders", partition_count=1)
    (tmp_path / "topics.json.tmp").mkdir()
    with pytest.raises(StorageError):
        catalog.create("more", partition_count=1)
    assert catalog.names() == ["orders"]
    assert names_of_logs(storage) == {"orders-0"}
    document = orjson.loads((tmp_path / "topics.json").read_bytes())
    assert [entry["name"] for entry in document["topics"]] == ["orders"]


def test_a_staged_change_is_seen_when_it_is_on_disk(
    tmp_path: Path, catalog: TopicCatalog, storage: DataDirectory
) -> None:
    _, made = catalog.stage_new([NewTopic("a", 1, {}), NewTopic("b", 2, {})])
    assert (catalog.names(), made.done, names_of_logs(storage)) == ([], False, set())
    with pytest.raises(BrokerError) as caught:
        catalog.stage_new([NewTopic("a", 1, {})])
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    gone = catalog.stage({"b": None})
    catalog.write_changes()
    assert made.done
    assert gone.done
    assert catalog.names() == ["a"]
    assert names_of_logs(storage) == {"a-0"}
    assert reloaded(tmp_path).names() == ["a"]


def test_a_write_that_fails_undoes_all_that_is_staged(
    tmp_path: Path, catalog: TopicCatalog
) -> None:
    catalog.create("orders", partition_count=1)
    _, first = catalog.stage_new([NewTopic("a", 1, {})])
    second = catalog.stage({"orders": catalog.grown("orders", 3)})
    (tmp_path / "topics.json.tmp").mkdir()
    catalog.write_changes()
    assert first.value.error is not None
    assert second.value.error is not None
    (tmp_path / "topics.json.tmp").rmdir()
    assert catalog.grow("orders", 2).partition_count == 2
    catalog.create("a", partition_count=1)
    assert catalog.names() == ["a", "orders"]


def test_the_name_of_a_deleted_topic_is_free_when_listeners_are_done(
    catalog: TopicCatalog,
) -> None:
    seen: list[ErrorCode] = []

    def listener(change: Change, topics: Sequence[Topic]) -> Steps:
        yield
        if change == "deleted":
            try:
                catalog.check_name_is_free("orders")
            except BrokerError as error:
                seen.append(error.code)

    catalog.subscribe(listener)
    catalog.create("orders", partition_count=1)
    catalog.delete("orders")
    assert seen == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert catalog.create("orders", partition_count=2).partition_count == 2


def test_a_setting_that_was_accepted_once_does_not_stop_a_start(
    tmp_path: Path, catalog: TopicCatalog
) -> None:
    catalog.create("orders", partition_count=1, overrides={"retention.ms": "5"})
    path = tmp_path / "topics.json"
    document = orjson.loads(path.read_bytes())
    document["topics"][0]["configs"]["preallocate"] = "true"
    path.write_bytes(orjson.dumps(document))
    found = reloaded(tmp_path).get("orders")
    assert found is not None
    assert (found.overrides, found.config.preallocate) == ({"retention.ms": "5"}, False)
