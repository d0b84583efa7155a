"""Offsets of source connectors: the position in each source partition.

    key      ["my-connector",{"filename":"/tmp/in.txt"}]       JSON, no spaces
    value    {"position":42}                                    null: deleted

These are the records of Kafka Connect's offset topic, so its workers can continue where ours
stopped. The keys in partitions and offsets are strings, their values primitive. Standalone workers
store the same in a JSON file: [[key, value], ...].
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from broker import concurrency
from broker.client.api import ConsumerRecord
from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.files import FileSystem
from broker.model import OpenFile
from connect.errors import ConfigError, ConnectError, DataError
from connect.state.state_topic import StateTopic

# A source partition and its offset, as the connector defines them.
Partition = Mapping[str, object]
Offset = Mapping[str, object]


class SourceOffset(NamedTuple):
    """The offset of a source partition; None deletes it."""

    partition: Partition
    offset: Offset | None


class OffsetStore(Protocol):
    """Keeps the offsets of source connectors. Any thread may call any method."""

    def get(self, connector: str, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The current offsets of some partitions, in their order."""
        ...

    def all_of(self, connector: str) -> list[SourceOffset]:
        """The current offsets of all partitions of a connector."""
        ...

    def save(self, connector: str, offsets: Iterable[SourceOffset]) -> None:
        """Store offsets; returns when they are durable."""
        ...

    def send(
        self, connector: str, offsets: Iterable[SourceOffset], producer: Producer
    ) -> Sequence[Delivery]:
        """Store offsets through a producer, as part of its transaction if it has one."""
        ...


def offset_record(connector: str, offset: SourceOffset) -> tuple[bytes, bytes | None]:
    """Key and value of an offset's record; DataError if a value is not primitive."""
    key = _json([connector, check_primitive(offset.partition)])
    return key, None if offset.offset is None else _json(check_primitive(offset.offset))


def check_primitive(values: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """The same mapping; DataError, in Kafka's words, if a value is not primitive."""
    for name, value in (values or {}).items():
        if not isinstance(name, str):
            raise DataError("Offsets may only use String keys")
        if value is not None and not isinstance(value, str | bytes | bool | int | float):
            kind = "MAP" if isinstance(value, Mapping) else "ARRAY"
            kind = kind if isinstance(value, Mapping | list | tuple) else type(value).__name__
            raise DataError(
                "Offsets may only contain primitive types as values, "
                f"but field {name} contains {kind}"
            )
    return values


class _OffsetTable:
    """Offsets by connector and partition; the order of keys in a partition does not matter."""

    def __init__(self) -> None:
        self._connectors: dict[str, dict[bytes, SourceOffset]] = {}
        # A record must have the key of the record it replaces, even one of another worker.
        self._spellings: dict[tuple[str, bytes], bytes] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record; records that are not offsets are ignored."""
        try:
            connector, partition = orjson.loads(key or b"")
            offset = None if value is None else orjson.loads(value)
        except (ValueError, TypeError):
            return
        if not isinstance(connector, str) or not isinstance(partition, dict | None):
            return
        name = _canonical(partition)
        self._spellings[connector, name] = key or b""
        known = self._connectors.setdefault(connector, {})
        if isinstance(offset, dict):
            known[name] = SourceOffset(partition or {}, offset)
        else:
            known.pop(name, None)

    def record(self, connector: str, offset: SourceOffset) -> tuple[bytes, bytes | None]:
        """The key and value to write."""
        key, value = offset_record(connector, offset)
        return self._spellings.get((connector, _canonical(offset.partition)), key), value

    def get(self, connector: str, partition: Partition) -> Offset | None:
        """The offset of a partition."""
        known = self._connectors.get(connector, {}).get(_canonical(check_primitive(partition)))
        return None if known is None else known.offset

    def all_of(self, connector: str) -> list[SourceOffset]:
        """All offsets of a connector."""
        return list(self._connectors.get(connector, {}).values())

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """All records."""
        return [
            self.record(connector, offset)
            for connector, offsets in self._connectors.items()
            for offset in offsets.values()
        ]


class TopicOffsets:
    """Offsets in a topic; see OffsetStore."""

    def __init__(self, topic: StateTopic) -> None:
        self._table = _OffsetTable()
        self._topic = topic
        self._lock = concurrency.Lock()

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self._topic.name

    def open(self) -> None:
        """Create the topic if it does not exist, and read it."""
        self._topic.open(self._apply)

    def close(self) -> None:
        """Close the clients."""
        self._topic.close()

    def get(self, connector: str, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The current offsets of some partitions, in their order."""
        self._topic.refresh()
        with self._lock:
            return [self._table.get(connector, partition) for partition in partitions]

    def all_of(self, connector: str) -> list[SourceOffset]:
        """The current offsets of all partitions of a connector."""
        self._topic.refresh()
        with self._lock:
            return self._table.all_of(connector)

    def save(self, connector: str, offsets: Iterable[SourceOffset]) -> None:
        """Write the offsets; returns when all in-sync replicas have them."""
        self._topic.append(self._records(connector, offsets))

    def send(
        self, connector: str, offsets: Iterable[SourceOffset], producer: Producer
    ) -> Sequence[Delivery]:
        """Write the offsets through a producer, as part of its transaction if it has one."""
        return [
            producer.send(self.topic, value, key)
            for key, value in self._records(connector, offsets)
        ]

    def _records(
        self, connector: str, offsets: Iterable[SourceOffset]
    ) -> list[tuple[bytes, bytes | None]]:
        with self._lock:
            return [self._table.record(connector, offset) for offset in offsets]

    def _apply(self, record: ConsumerRecord) -> None:
        with self._lock:
            self._table.apply(record.key, record.value)


class FileOffsets:
    """Offsets in a JSON file, for standalone workers; see OffsetStore."""

    def __init__(self, file: Path, files: FileSystem | None = None) -> None:
        self._file = file
        self._files = files or FileSystem()
        self._table = _OffsetTable()
        self._lock = concurrency.Lock()
        self._locked: OpenFile | None = None

    def open(self) -> None:
        """Lock the file against other workers, and read it if it exists."""
        self._lock_file()
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        try:
            data = self._files.read_file(str(self._file))
            if data is None:
                return
            records = [(_json(key), _json(value)) for key, value in orjson.loads(data)]
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                f"cannot read the offsets of source connectors: {error}",
                at=str(self._file),
                hint="the file must be JSON of the form [[key, value], ...]; delete it to start "
                "without offsets",
            ) from error
        for key, value in records:
            self._table.apply(key, value)

    def close(self) -> None:
        """Unlock the file."""
        self._locked = None

    def _lock_file(self) -> None:
        """Use a lock of the operating system: it ends with the process, even on a crash."""
        path = self._file.with_name(f"{self._file.name}.lock")
        try:
            self._locked = self._files.lock(str(path))
        except BlockingIOError:
            raise ConfigError(
                "another worker uses this offsets file",
                at=str(self._file),
                hint="stop that worker, or set another offset.storage.file.filename: two workers "
                "with one file would overwrite each other's offsets",
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot lock the offsets of source connectors: {error.strerror}", at=str(path)
            ) from error

    def get(self, connector: str, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The offsets of some partitions, in their order."""
        with self._lock:
            return [self._table.get(connector, partition) for partition in partitions]

    def all_of(self, connector: str) -> list[SourceOffset]:
        """The offsets of all partitions of a connector."""
        with self._lock:
            return self._table.all_of(connector)

    def save(self, connector: str, offsets: Iterable[SourceOffset]) -> None:
        """Rewrite the file atomically."""
        with self._lock:
            for offset in offsets:
                self._table.apply(*self._table.record(connector, offset))
            content = b",\n ".join(
                b"[%s, %s]" % (key, value or b"null") for key, value in self._table.records()
            )
            try:
                self._files.write_file(str(self._file), b"[%s]\n" % content)
            except OSError as error:
                raise ConnectError(f"cannot write offsets: {error}", at=str(self._file)) from error

    def send(
        self, connector: str, offsets: Iterable[SourceOffset], producer: Producer
    ) -> Sequence[Delivery]:
        """Save the offsets immediately: a file has no transactions."""
        del producer
        self.save(connector, offsets)
        return ()


def _json(value: object) -> bytes:
    """Compact JSON; bytes as base64, as in Kafka's JSON converter."""
    return orjson.dumps(value, default=_encode)


def _canonical(partition: Partition | None) -> bytes:
    return orjson.dumps(partition, option=orjson.OPT_SORT_KEYS, default=_encode)


def _encode(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
