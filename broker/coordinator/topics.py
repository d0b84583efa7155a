"""TopicCatalog: which topics exist, with their ids, partition counts and own settings.

The catalog is one file, topics.json, replaced as a whole (temporary file, fsync, rename, fsync of
the directory), so a crash leaves the old or the new one:

    {"version": 1, "topics": [
        {"name": "orders", "id": "J7pX…", "partitions": 4, "configs": {"retention.ms": "1000"}}]}

A topic is written down before its logs are made and struck out before they are removed; logs that
no topic owns are leftovers, which storage puts aside under another name when it opens.
"""

import base64
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import orjson

from broker.config import BrokerConfig, TopicConfig
from broker.errors import BrokerError, ConfigError, ErrorCode, StorageError
from broker.model import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC, TopicPartition
from broker.storage.files import FileSystem

FILE_NAME = "topics.json"
FORMAT_VERSION = 1
NAME_LENGTH_MAX = 249
PARTITIONS_MAX = 10_000
NAME_PATTERN = re.compile(r"[a-zA-Z0-9._-]+\Z")

Change = Literal["created", "grown", "altered", "deleted"]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic; `overrides` are the settings it has of its own, by Kafka's names."""

    name: str
    id: bytes
    partition_count: int
    overrides: Mapping[str, str]
    config: TopicConfig

    @property
    def internal(self) -> bool:
        """Whether it holds the state of a coordinator."""
        return self.name in INTERNAL_TOPICS

    @property
    def partitions(self) -> list[TopicPartition]:
        """Its partitions in order."""
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What is asked for when a topic is created."""

    name: str
    partition_count: int
    overrides: Mapping[str, str]


class ConfiguredLog(Protocol):
    """A partition's log as the catalog sees it."""

    def update_config(self, config: TopicConfig) -> None:
        """Let changed settings take effect at once."""
        ...


class PartitionStore(Protocol):
    """Storage as the catalog sees it."""

    def create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig, /
    ) -> ConfiguredLog:
        """Make the log of a partition."""
        ...

    def log(self, topic_partition: TopicPartition, /) -> ConfiguredLog:
        """The log of a partition."""
        ...

    def delete(self, topic_partition: TopicPartition, /) -> None:
        """Remove the log of a partition."""
        ...


class TopicCatalog:
    """All topics by name and by id. Listeners hear of each change after it is on disk."""

    def __init__(self, path: str | Path, *, config: BrokerConfig, storage: PartitionStore) -> None:
        """An empty catalog in a data directory; `load` reads what is there."""
        self._file = Path(path) / FILE_NAME
        self._config = config
        self._storage = storage
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._folded: dict[str, str] = {}
        self._listeners: list[Callable[[Change, Topic], None]] = []

    def __len__(self) -> int:
        """How many topics there are."""
        return len(self._topics)

    def load(self) -> None:
        """Read topics.json, if it is there; a damaged one raises StorageError."""
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return
        for topic in _parse_catalog(data, self._config, str(self._file)):
            self._put(topic)

    def expected(self) -> dict[TopicPartition, tuple[bytes, TopicConfig]]:
        """Every partition that should exist, for storage to open."""
        return {
            partition: (topic.id, topic.config)
            for topic in self._topics.values()
            for partition in topic.partitions
        }

    def get(self, name: str) -> Topic | None:
        """The topic of this name."""
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id."""
        return self._by_id.get(topic_id)

    def names(self) -> list[str]:
        """All names, internal topics included, in order."""
        return sorted(self._topics)

    def topics(self) -> list[Topic]:
        """All topics, internal ones included, in order of their names."""
        return [self._topics[name] for name in sorted(self._topics)]

    def subscribe(self, listener: Callable[[Change, Topic], None]) -> None:
        """Call back after each change, with the topic as it is now (as it was, if deleted)."""
        self._listeners.append(listener)

    def check_name_is_free(self, name: str) -> None:
        """BrokerError when a new topic cannot have this name."""
        check_name(name)
        if name in self._topics:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f'topic "{name}" already exists')
        other = self._folded.get(_fold(name))
        if other is not None:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f'topic "{name}" collides with "{other}": "." and "_" count as the same',
            )

    def check_new(self, new: NewTopic) -> TopicConfig:
        """The settings a new topic would get; BrokerError says why it cannot be made."""
        self.check_name_is_free(new.name)
        _check_partition_count(new.partition_count)
        return self._topic_config(new.overrides)

    def create(
        self, name: str, *, partition_count: int, overrides: Mapping[str, str] | None = None
    ) -> Topic:
        """Make one topic."""
        return self.create_all([NewTopic(name, partition_count, overrides or {})])[0]

    def create_all(self, new_topics: Iterable[NewTopic]) -> list[Topic]:
        """Make several topics with one write of the catalog: all or none."""
        made: list[Topic] = []
        for new in new_topics:
            config = self.check_new(new)
            made.append(
                Topic(new.name, _new_topic_id(), new.partition_count, dict(new.overrides), config)
            )
        self._save({**self._topics, **{topic.name: topic for topic in made}})
        for topic in made:
            self._put(topic)
            for partition in topic.partitions:
                self._storage.create(partition, topic.id, topic.config)
            self._tell("created", topic)
        return made

    def ensure_internal(self, name: str) -> Topic:
        """The coordinators' topic of this name, made at its first use."""
        found = self._topics.get(name)
        if found is not None:
            return found
        partition_count, overrides = self._internal_settings(name)
        return self.create(name, partition_count=partition_count, overrides=overrides)

    def delete(self, name: str) -> Topic:
        """Forget a topic and remove its logs."""
        topic = self._known(name)
        self._save({key: value for key, value in self._topics.items() if key != name})
        del self._topics[name], self._by_id[topic.id], self._folded[_fold(name)]
        for partition in topic.partitions:
            self._storage.delete(partition)
        self._tell("deleted", topic)
        return topic

    def check_growth(self, topic: Topic, partition_count: int) -> None:
        """BrokerError when a topic cannot have this many partitions."""
        if partition_count <= topic.partition_count:
            raise BrokerError(
                ErrorCode.INVALID_PARTITIONS,
                f'topic "{topic.name}" has {topic.partition_count} partitions: '
                f"{partition_count} would not add any",
            )
        _check_partition_count(partition_count)

    def grow(self, name: str, partition_count: int) -> Topic:
        """Add partitions to a topic."""
        old = self._known(name)
        self.check_growth(old, partition_count)
        topic = replace(old, partition_count=partition_count)
        self._save({**self._topics, name: topic})
        self._put(topic)
        for partition in topic.partitions[old.partition_count :]:
            self._storage.create(partition, topic.id, topic.config)
        self._tell("grown", topic)
        return topic

    def alter_config(self, name: str, overrides: Mapping[str, str]) -> Topic:
        """Replace a topic's own settings; they take effect at once."""
        old = self._known(name)
        config = self._topic_config(overrides)
        topic = replace(old, overrides=dict(overrides), config=config)
        self._save({**self._topics, name: topic})
        self._put(topic)
        for partition in topic.partitions:
            self._storage.log(partition).update_config(config)
        self._tell("altered", topic)
        return topic

    def check_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings a topic with these overrides has; BrokerError names a wrong one."""
        return self._topic_config(overrides)

    def _known(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{name}" does not exist'
            )
        return topic

    def _topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        try:
            return self._config.topic_config(overrides)
        except ConfigError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            raise BrokerError(ErrorCode.INVALID_CONFIG, message) from error

    def _internal_settings(self, name: str) -> tuple[int, dict[str, str]]:
        config = self._config
        if name == GROUP_TOPIC:
            return config.offsets_topic_num_partitions, {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        assert name == TRANSACTION_TOPIC, f"{name} is no internal topic"
        return config.transaction_state_log_num_partitions, {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }

    def _put(self, topic: Topic) -> None:
        self._topics[topic.name] = topic
        self._by_id[topic.id] = topic
        self._folded[_fold(topic.name)] = topic.name

    def _tell(self, change: Change, topic: Topic) -> None:
        for listener in self._listeners:
            listener(change, topic)

    def _save(self, topics: Mapping[str, Topic]) -> None:
        document = {
            "version": FORMAT_VERSION,
            "topics": [
                {
                    "name": topic.name,
                    "id": format_topic_id(topic.id),
                    "partitions": topic.partition_count,
                    "configs": dict(topic.overrides),
                }
                for topic in topics.values()
            ],
        }
        _replace_file(self._file, orjson.dumps(document, option=orjson.OPT_INDENT_2))


def check_name(name: str) -> None:
    """Kafka's rules for topic names."""
    if not name:
        reason = "it is empty"
    elif name in (".", ".."):
        reason = 'it cannot be "." or ".."'
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"it is longer than {NAME_LENGTH_MAX} characters"
    elif NAME_PATTERN.match(name) is None:
        reason = 'it has characters other than ASCII letters, digits, ".", "_" and "-"'
    else:
        return
    raise BrokerError(
        ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic name "{name[:300]}" is wrong: {reason}'
    )


def format_topic_id(topic_id: bytes) -> str:
    """A topic id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _check_partition_count(count: int) -> None:
    if count <= 0:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS, f"a topic needs at least one partition, not {count}"
        )
    if count > PARTITIONS_MAX:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"{count} partitions are more than the {PARTITIONS_MAX} a topic may have",
        )


def _fold(name: str) -> str:
    return name.replace(".", "_")


def _new_topic_id() -> bytes:
    # An id whose text starts with "-" would be taken for an option by command lines.
    while format_topic_id(topic_id := uuid.uuid4().bytes).startswith("-"):
        pass
    return topic_id


def _parse_catalog(data: bytes, config: BrokerConfig, path: str) -> list[Topic]:
    try:
        document = orjson.loads(data)
        if document["version"] != FORMAT_VERSION:
            raise StorageError(
                f"catalog version {document['version']} is not known",
                at=path,
                hint="it was written by a newer release",
            )
        return [_parse_topic(entry, config) for entry in document["topics"]]
    except (ValueError, KeyError, TypeError, BrokerError, ConfigError) as error:
        raise StorageError(
            f"the catalog of topics is damaged: {error}",
            at=path,
            hint="restore the file from a copy; the logs beside it are intact",
        ) from error


def _parse_topic(entry: Mapping[str, object], config: BrokerConfig) -> Topic:
    name, text, count = entry["name"], entry["id"], entry["partitions"]
    overrides = entry["configs"]
    if not isinstance(name, str) or not isinstance(text, str) or not isinstance(count, int):
        raise TypeError(f"topic {name!r} has fields of the wrong type")
    if not isinstance(overrides, dict):
        raise TypeError(f"settings of topic {name!r} are no object")
    check_name(name)
    _check_partition_count(count)
    topic_id = base64.urlsafe_b64decode(text + "==")
    if len(topic_id) != 16:
        raise ValueError(f"id of topic {name!r} has {len(topic_id)} bytes")
    return Topic(name, topic_id, count, overrides, config.topic_config(overrides))


def _replace_file(path: Path, data: bytes) -> None:
    try:
        FileSystem().write_file(str(path), data)
    except OSError as error:
        raise StorageError(f"cannot write the catalog of topics: {error}", at=str(path)) from error
