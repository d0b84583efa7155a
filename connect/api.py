"""The API for authors of connectors, converters, transforms and predicates.

A connector decides what to copy and divides it into task configurations; tasks copy. The
worker sets `context` before `start`, runs every task on a thread of its own, and calls no two
methods of one task at the same time, except `stop` of a source task.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from broker import concurrency
from broker.model import TopicPartition
from connect.config_def import ConfigDef
from connect.data import ConnectSchema
from connect.records import Header, Record, SinkRecord, SourceRecord

if TYPE_CHECKING:
    from broker.client.api import RecordMetadata  # brings all clients, which connectors do not need


class ExactlyOnceSupport(enum.Enum):
    """Whether a source connector supports exactly-once delivery with a configuration."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class OffsetReader(Protocol):
    """Reads the stored offsets of a source connector."""

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        """The last committed offset of one partition of the source; None if there is none."""
        ...

    def offsets(
        self, partitions: Iterable[Mapping[str, object]]
    ) -> Sequence[Mapping[str, object] | None]:
        """The last committed offsets of several partitions, in their order."""
        ...


class ConnectorContext(Protocol):
    """The worker's services for a connector."""

    @property
    def offset_reader(self) -> OffsetReader:
        """The offsets of a source connector."""
        ...

    def request_task_reconfiguration(self) -> None:
        """Has `task_configs` called again, because the work has changed."""
        ...

    def raise_error(self, error: Exception) -> None:
        """Fails the connector, for an error found outside its own methods."""
        ...


class TransactionContext(Protocol):
    """Defines where the transactions of a source task end, with transaction.boundary=connector."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commits after the given record of the next batch, or after the whole next batch."""
        ...

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Aborts after the given record of the next batch, or after the whole next batch."""
        ...


class SourceTaskContext(Protocol):
    """The worker's services for a source task."""

    @property
    def offset_reader(self) -> OffsetReader:
        """The stored offsets of the connector."""
        ...

    @property
    def transaction_context(self) -> TransactionContext | None:
        """Defines where transactions end; None unless transaction.boundary=connector."""
        ...

    def configs(self) -> Mapping[str, str]:
        """The task's configuration."""
        ...

    def stopping(self) -> concurrency.Event:
        """Set when the task must stop: `poll` may wait on it instead of sleeping."""
        ...


class ErrantRecordReporter(Protocol):
    """Reports single records that a sink task cannot deliver."""

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Writes a record to the dead letter queue and the log, before its offset is committed.

        The future completes when it is written. Only a task that stores its own offsets must wait
        for it before it moves them past the record.
        """
        ...


class SinkTaskContext(Protocol):
    """The worker's services for a sink task."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Reports single bad records; None if errors fail the task."""
        ...

    def configs(self) -> Mapping[str, str]:
        """The task's configuration."""
        ...

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Continues reading from this offset."""
        ...

    def timeout(self, timeout_ms: int) -> None:
        """How long to wait before `put` is called again after a RetriableError."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are assigned to this task."""
        ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pauses these partitions until they are resumed."""
        ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resumes these partitions."""
        ...

    def request_commit(self) -> None:
        """Requests a commit of offsets, without waiting for the interval."""
        ...


class Connector(ABC):
    """Decides what to copy, and divides it into task configurations."""

    context: ConnectorContext

    @classmethod
    def version(cls) -> str:
        """The version that the REST API shows."""
        return "undefined"

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings; called without starting it."""
        return ConfigDef()

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]] | None:
        """Errors by setting that `config` cannot detect, such as a missing table."""
        return None

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The files and directories that it opens, by setting.

        The worker refuses those that are not in one of its `connector.allowed.paths`.
        """
        return {}

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Starts the connector with this configuration."""

    @abstractmethod
    def task_class(self) -> "type[SourceTask] | type[SinkTask]":
        """The class of its tasks."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One configuration per task; at most this many."""

    def stop(self) -> None:  # noqa: B027 - most have nothing to close
        """Releases the resources that `start` acquired."""


class SourceConnector(Connector):
    """Reads from another system into topics."""

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether exactly-once delivery is supported; None if the connector does not know."""
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """Whether tasks use their transaction context."""
        return False

    def alter_offsets(
        self,
        config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object], Mapping[str, object] | None]],
    ) -> bool:
        """Checks offsets that a user sets; True if all of them are managed by the worker."""
        return False


class SinkConnector(Connector):
    """Writes topics into another system."""

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Checks offsets that a user sets; True if all of them are managed by the worker."""
        return False


class SourceTask(ABC):
    """Reads one part of a source."""

    context: SourceTaskContext

    @classmethod
    def version(cls) -> str:
        """The version that logs show."""
        return "undefined"

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Opens the source at the position of the context's offsets."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records; may wait for them, but returns soon after `stop`."""

    def commit(self) -> None:  # noqa: B027 - most sources need not know
        """Called when everything polled so far is written and its offsets are stored."""

    def commit_record(  # noqa: B027 - most sources need not know
        self, record: SourceRecord, metadata: "RecordMetadata | None"
    ) -> None:
        """Called when a record is written; the metadata is None when a transform dropped it."""

    def stop(self) -> None:  # noqa: B027 - most have nothing to close
        """Asks `poll` to return; called from another thread, once."""


class SinkTask(ABC):
    """Writes some partitions of its topics."""

    context: SinkTaskContext

    @classmethod
    def version(cls) -> str:
        """The version that logs show."""
        return "undefined"

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Opens the target."""

    def open(self, partitions: Iterable[TopicPartition]) -> None:  # noqa: B027 - optional
        """Called when these partitions are assigned, before their first records."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Writes records; after a RetriableError the same records are put again."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: B027 - optional
        """Makes everything put so far durable."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed: all of them, after a flush."""
        self.flush(offsets)
        return offsets

    def close(self, partitions: Iterable[TopicPartition]) -> None:  # noqa: B027 - optional
        """Called when these partitions are revoked, or at the end."""

    def stop(self) -> None:  # noqa: B027 - most have nothing to close
        """Releases the target; no other method is called after it."""


class Converter(Protocol):
    """Turns keys or values into bytes and back."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        ...

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it; called once, before any other method."""
        ...

    def from_connect_data(
        self,
        topic: str,
        headers: Sequence[Header],
        schema: ConnectSchema | None,
        value: object,
    ) -> bytes | None:
        """The bytes of a value; None writes a null."""
        ...

    def to_connect_data(
        self, topic: str, headers: Sequence[Header], data: bytes | None
    ) -> tuple[ConnectSchema | None, object]:
        """The schema and value of some bytes."""
        ...


@runtime_checkable
class BulkConverter(Protocol):
    """An optional interface of converters: converts many keys or values at once, without headers.

    After an error the values are converted one by one, so it need not name the invalid one.
    """

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """The bytes of each value."""
        ...

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """The schemas and values of each, in two columns."""
        ...


class HeaderConverter(Protocol):
    """Turns headers into bytes and back."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        ...

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it; called once, before any other method."""
        ...

    def from_connect_header(
        self, topic: str, key: str, schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The bytes of a header's value."""
        ...

    def to_connect_header(
        self, topic: str, key: str, data: bytes | None
    ) -> tuple[ConnectSchema | None, object]:
        """The schema and value of a header's bytes."""
        ...


class Transformation(ABC):
    """Changes or drops records, one at a time."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027 - some have no settings
        """Configures it; called once, before any other method."""

    @abstractmethod
    def apply(self, record: Record) -> Record | None:
        """The transformed record; None drops it."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Releases its resources."""


class Predicate(ABC):
    """Decides to which records a transform applies."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027 - some have no settings
        """Configures it; called once, before any other method."""

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Whether the transform applies to this record."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Releases its resources."""
