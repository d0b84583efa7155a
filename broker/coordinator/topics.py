"""TopicCatalog: the existing topics, with their ids, partition counts and own settings.

The catalog is one file, topics.json, replaced as a whole (temporary file, fsync, rename, fsync of
the directory), so a crash leaves the old or the new one:

    {"version": 1, "topics": [
        {"name": "orders", "id": "J7pX…", "partitions": 4, "configs": {"retention.ms": "1000"}}]}

A topic is written to the catalog before its logs are created, and removed from it before they are
deleted; storage renames logs that belong to no topic when it opens them.

Writing the file waits for the disk, so it happens without the broker's lock:

    stage     under the lock: a change is checked against the staged topics, and queued
    write     without it: the file with all queued changes
    apply     under it again, a few steps at a time: logs, names, listeners; then requests end

A caller that may block, such as a test, does all three at once (`create`, `delete`, ...).
"""

import base64
import logging
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

import orjson

from broker import concurrency
from broker.config import BrokerConfig, TopicConfig, refuses
from broker.coordinator.partitions import Partitions
from broker.errors import BrokerError, ConfigError, ErrorCode, StorageError
from broker.machine import Machine
from broker.model import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC, TopicPartition
from broker.pending import Pending

FILE_NAME = "topics.json"
FORMAT_VERSION = 1
NAME_LENGTH_MAX = 249
PARTITIONS_MAX = 10_000
NAME_PATTERN = re.compile(r"[a-zA-Z0-9._-]+\Z")

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 100  # of a change, under the lock: creating or renaming a log is one step

Change = Literal["created", "grown", "altered", "deleted"]
Steps = Generator[None, None, None]
Listener = Callable[[Change, Sequence["Topic"]], Steps]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic; `overrides` are its own settings, by Kafka's names."""

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
    """The parameters of a topic to create."""

    name: str
    partition_count: int
    overrides: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a change; an error if the disk failed."""

    error: StorageError | None = None


@dataclass(slots=True)
class StagedChange:
    """Topics after a change, None for deleted ones, and before it; and the requests that wait."""

    after: dict[str, Topic | None]
    before: dict[str, Topic | None]
    pending: Pending[Outcome] = field(default_factory=Pending)
    followers: list[Pending[Outcome]] = field(
        default_factory=list
    )  # other requests that wait for it
    settled: concurrency.Event = field(default_factory=lambda: concurrency.Event())

    def settle(self, error: StorageError | None) -> None:
        """Notify the waiters."""
        for each in (self.pending, *self.followers):
            each.complete(Outcome(error))
        self.settled.set()


class TopicCatalog:
    """All topics by name and by id. Listeners are called for each change once it is on disk."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        config: BrokerConfig,
        partitions: Partitions,
        lock: "concurrency.RLock | None" = None,
        machine: Machine | None = None,
    ) -> None:
        """An empty catalog in a data directory; `load` reads the file."""
        self._file = os.path.join(path, FILE_NAME)
        self._machine = machine or Machine()
        self._config = config
        self.partitions = partitions
        self._lock = lock or concurrency.RLock()
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._listeners: list[Listener] = []
        # Including all staged changes; used names, in the form in which they collide.
        self._wanted: dict[str, Topic] = {}
        self._folded: dict[str, str] = {}
        self._staged: list[StagedChange] = []
        self._creations: dict[str, StagedChange] = {}  # of topics that do not exist yet
        self._version = 0
        # Acquired with or without the broker's lock, never before it.
        self._writing = concurrency.Lock()
        self._written_version = 0
        self.has_changes = concurrency.Event()

    def __len__(self) -> int:
        """How many topics there are."""
        return len(self._topics)

    def load(self) -> None:
        """Read topics.json, if it exists; StorageError if it is damaged."""
        data = self._machine.files.read_file(self._file)
        if data is None:
            return
        for topic in _parse_catalog(data, self._config, self._file):
            self._put(topic)
            self._wanted[topic.name] = topic
            self._folded[_fold(topic.name)] = topic.name

    def expected(self) -> dict[TopicPartition, tuple[bytes, TopicConfig]]:
        """Every partition that should exist, which storage opens."""
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
        """All names in order, including internal topics."""
        return sorted(self._topics)

    def topics(self) -> list[Topic]:
        """All topics in the order of their names, including internal ones."""
        return [self._topics[name] for name in sorted(self._topics)]

    def subscribe(self, listener: Listener) -> None:
        """Call back after each change with the current topics, or the former ones if deleted.

        The listener works in steps, each under the lock, with other requests in between.
        """
        self._listeners.append(listener)

    def check_name_is_free(self, name: str) -> None:
        """Raise BrokerError if a new topic cannot have this name."""
        check_name(name)
        other = self._folded.get(_fold(name))
        if other == name:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f'topic "{name}" already exists')
        if other is not None:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f'topic "{name}" collides with "{other}": "." and "_" count as the same',
            )

    def check_new(self, new: NewTopic) -> TopicConfig:
        """The settings of a new topic; BrokerError if it cannot be created."""
        self.check_name_is_free(new.name)
        _check_partition_count(new.partition_count)
        return self._topic_config(new.overrides)

    # --- synchronous changes ---------------------------------------------------------------------

    def create(
        self, name: str, *, partition_count: int, overrides: Mapping[str, str] | None = None
    ) -> Topic:
        """Create one topic."""
        return self.create_all([NewTopic(name, partition_count, overrides or {})])[0]

    def create_all(self, new_topics: Iterable[NewTopic]) -> list[Topic]:
        """Create several topics with one write of the catalog: all or none."""
        with self._lock:
            made, pending = self.stage_new(new_topics)
            self._settle(pending)
        return made

    def ensure_internal(self, name: str) -> Topic:
        """The coordinators' topic with this name, created on first use."""
        found = self._topics.get(name)
        if found is not None:
            return found
        with self._lock:
            if name not in self._wanted:
                self._settle(self.stage_new([self.internal_topic(name)])[1])
            if name not in self._topics:
                raise BrokerError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE, f'topic "{name}" is being created'
                )
            return self._topics[name]

    def prepare_internal(self, name: str) -> None:
        """Create the coordinators' topic if it does not exist. Called without the lock."""
        if name in self._topics:
            return
        with self._lock:
            if name not in self._wanted:
                self.stage_new([self.internal_topic(name)])
            change = self._creations.get(name)
        self.write_changes()
        if change is not None:
            change.settled.wait()

    def delete(self, name: str) -> Topic:
        """Delete a topic and its logs."""
        with self._lock:
            topic = self._known(name)
            self._settle(self.stage({name: None}))
        return topic

    def grow(self, name: str, partition_count: int) -> Topic:
        """Add partitions to a topic."""
        with self._lock:
            topic = self.grown(name, partition_count)
            self._settle(self.stage({name: topic}))
        return topic

    def alter_config(self, name: str, overrides: Mapping[str, str]) -> Topic:
        """Replace a topic's own settings; they take effect immediately."""
        with self._lock:
            topic = self.altered(name, overrides)
            self._settle(self.stage({name: topic}))
        return topic

    def _settle(self, pending: Pending[Outcome]) -> None:
        """Write and apply the staged changes, under the lock."""
        self.write_changes(pause=False)
        assert pending.done, "what is staged under the lock is written by the next write"
        if pending.value.error is not None:
            raise pending.value.error

    # --- asynchronous changes --------------------------------------------------------------------

    def stage_new(self, new_topics: Iterable[NewTopic]) -> tuple[list[Topic], Pending[Outcome]]:
        """Stage new topics, all or none; returns them, and the pending outcome."""
        made: list[Topic] = []
        for new in new_topics:
            config = self.check_new(new)
            topic_id = self._new_topic_id()
            made.append(Topic(new.name, topic_id, new.partition_count, dict(new.overrides), config))
        return made, self.stage({topic.name: topic for topic in made})

    def stage(self, after: Mapping[str, Topic | None]) -> Pending[Outcome]:
        """Stage changed or deleted topics; an error in the outcome means that none changed."""
        before = {name: self._wanted.get(name) for name in after}
        for name, topic in after.items():
            if topic is None:
                self._wanted.pop(name, None)
            else:
                self._wanted[name] = topic
                self._folded[_fold(name)] = name
        change = StagedChange(dict(after), before)
        self._creations.update((name, change) for name, old in before.items() if old is None)
        self._staged.append(change)
        self.has_changes.set()
        return change.pending

    def creation(self, name: str) -> Pending[Outcome] | None:
        """The pending outcome of another request that creates this topic; None if there is none."""
        change = self._creations.get(name)
        if change is None:
            return None
        following: Pending[Outcome] = Pending()
        change.followers.append(following)
        return following

    def _settled(self, change: StagedChange, error: StorageError | None) -> None:
        for name in change.after:
            if self._creations.get(name) is change:
                del self._creations[name]
        change.settle(error)

    def grown(self, name: str, partition_count: int) -> Topic:
        """A topic with more partitions; BrokerError if it cannot have them."""
        old = self._known(name)
        self.check_growth(old, partition_count)
        return replace(old, partition_count=partition_count)

    def altered(self, name: str, overrides: Mapping[str, str]) -> Topic:
        """A topic with other settings; BrokerError if one is invalid."""
        config = self._topic_config(overrides)
        return replace(self._known(name), overrides=dict(overrides), config=config)

    def wanted(self, name: str) -> Topic | None:
        """A topic including staged changes; None if it does not exist or is being deleted."""
        return self._wanted.get(name)

    def write_changes(self, *, pause: bool = True) -> None:
        """Write and apply the staged changes; waits for the disk, so call it without the lock.

        It pauses briefly between the steps, so that other threads can acquire the lock.
        """
        with self._lock:
            self.has_changes.clear()
            staged, self._staged = self._staged, []
            if not staged:
                return
            self._version += 1
            version = self._version
            topics = list(self._wanted.values())
        try:
            self._save(version, topics)
        except StorageError as error:
            with self._lock:
                self._roll_back(staged, error)
            return
        for change in staged:
            try:
                self._run(self._apply(change), pause=pause)
            except Exception as error:
                logger.exception("a saved change of topics could not be applied")
                with self._lock:
                    self._settled(change, StorageError(f"changing topics failed: {error!r}"))

    def _save(self, version: int, topics: Iterable[Topic]) -> None:
        document = {
            "version": FORMAT_VERSION,
            "topics": [
                {
                    "name": topic.name,
                    "id": format_topic_id(topic.id),
                    "partitions": topic.partition_count,
                    "configs": dict(topic.overrides),
                }
                for topic in topics
            ],
        }
        data = orjson.dumps(document, option=orjson.OPT_INDENT_2)
        with self._writing:
            if version > self._written_version:  # otherwise a later write contains this change
                self._replace_file(data)
                self._written_version = version

    def _replace_file(self, data: bytes) -> None:
        try:
            self._machine.files.write_file(self._file, data)
        except OSError as error:
            raise StorageError(f"cannot write the topic catalog: {error}", at=self._file) from error

    def _roll_back(self, staged: list[StagedChange], error: StorageError) -> None:
        """Nothing is on disk: drop these changes and those that depend on them."""
        later, self._staged = self._staged, []
        failed = [*staged, *later]
        for change in reversed(failed):
            for name, topic in change.before.items():
                if topic is not None:
                    self._wanted[name] = topic
                elif self._wanted.pop(name, None) is not None:
                    del self._folded[_fold(name)]
        for change in failed:
            self._settled(change, error)

    def _run(self, steps: Steps, *, pause: bool) -> None:
        while True:
            with self._lock:
                if sum(1 for _ in islice(steps, STEPS_AT_ONCE)) < STEPS_AT_ONCE:
                    return
            if pause:
                concurrency.pause()

    def _apply(self, change: StagedChange) -> Steps:
        failure: StorageError | None = None
        changed: dict[Change, list[Topic]] = {}
        for name, new in change.after.items():
            old = self._topics.get(name)
            try:
                if new is None:
                    assert old is not None, "only a topic that is there can go"
                    changed.setdefault("deleted", []).append(old)
                    yield from self._remove(old)
                else:
                    changed.setdefault(_kind_of_change(old, new), []).append(new)
                    yield from self._make(old, new)
            except StorageError as error:
                failure = error
        for kind, topics in changed.items():
            for listener in self._listeners:
                yield from listener(kind, topics)
        for topic in changed.get("deleted", ()):
            del self._folded[_fold(topic.name)]  # the name becomes free only now
        self._settled(change, failure)

    def _make(self, old: Topic | None, new: Topic) -> Steps:
        known = 0 if old is None else old.partition_count
        for partition in new.partitions[known:]:
            self.partitions.create(partition, new.id, new.config)
            yield
        self._put(new)
        if old is not None and old.config != new.config:
            for partition in new.partitions[:known]:
                self.partitions.update_config(partition, new.config)
                yield

    def _remove(self, topic: Topic) -> Steps:
        del self._topics[topic.name], self._by_id[topic.id]
        failure: StorageError | None = None
        for partition in topic.partitions:
            try:
                self.partitions.delete(partition)
            except StorageError as error:
                failure = error
            yield
        if failure is not None:
            raise failure

    # --- checks ----------------------------------------------------------------------------------

    def check_growth(self, topic: Topic, partition_count: int) -> None:
        """Raise BrokerError if a topic cannot have this many partitions."""
        if partition_count <= topic.partition_count:
            raise BrokerError(
                ErrorCode.INVALID_PARTITIONS,
                f'topic "{topic.name}" has {topic.partition_count} partitions: '
                f"{partition_count} would not add any",
            )
        _check_partition_count(partition_count)

    def _known(self, name: str) -> Topic:
        topic = self._wanted.get(name)
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

    def internal_topic(self, name: str) -> NewTopic:
        """A coordinators' topic with Kafka's settings."""
        config = self._config
        if name == GROUP_TOPIC:
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
            return NewTopic(name, config.offsets_topic_num_partitions, settings)
        assert name == TRANSACTION_TOPIC, f"{name} is not an internal topic"
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return NewTopic(name, config.transaction_state_log_num_partitions, settings)

    def _new_topic_id(self) -> bytes:
        # Command lines would parse an id that starts with "-" as an option.
        while format_topic_id(topic_id := self._machine.uuid().bytes).startswith("-"):
            pass
        return topic_id

    def _put(self, topic: Topic) -> None:
        self._topics[topic.name] = topic
        self._by_id[topic.id] = topic


def _kind_of_change(old: Topic | None, new: Topic) -> Change:
    if old is None:
        return "created"
    return "grown" if new.partition_count > old.partition_count else "altered"


def check_name(name: str) -> None:
    """Check Kafka's rules for topic names."""
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
        ErrorCode.INVALID_TOPIC_EXCEPTION, f'topic name "{name[:300]}" is invalid: {reason}'
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
            f"the topic catalog is damaged: {error}",
            at=path,
            hint="restore the file from a copy; the logs beside it are intact",
        ) from error


def _parse_topic(entry: Mapping[str, object], config: BrokerConfig) -> Topic:
    name, text, count = entry["name"], entry["id"], entry["partitions"]
    overrides = entry["configs"]
    if not isinstance(name, str) or not isinstance(text, str) or not isinstance(count, int):
        raise TypeError(f"topic {name!r} has fields of the wrong type")
    if not isinstance(overrides, dict):
        raise TypeError(f"settings of topic {name!r} are not an object")
    for refused in [setting for setting, value in overrides.items() if refuses(setting, value)]:
        # Earlier releases accepted the setting without effect.
        logger.warning('topic "%s": setting %s is dropped', name, refused)
        del overrides[refused]
    check_name(name)
    _check_partition_count(count)
    topic_id = base64.urlsafe_b64decode(text + "==")
    if len(topic_id) != 16:
        raise ValueError(f"id of topic {name!r} has {len(topic_id)} bytes")
    return Topic(name, topic_id, count, overrides, config.topic_config(overrides))
