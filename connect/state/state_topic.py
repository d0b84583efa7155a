"""StateTopic: a compacted topic with part of a worker's state.

    open     create or check the topic, then read it to its end
    append   write records and wait until all in-sync replicas have them
    refresh  read the records that any worker has written since

Each record is passed to `apply`, in the order of its partition; records of transactions once they
are committed. `refresh` reads to the end of the log, not to the last stable offset: committed
records may follow an open transaction of another producer, which must end first. Any thread may
call any method; calls are serialized.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from broker import concurrency
from broker.client.administration.values import ConfigResource, NewTopic
from broker.client.api import ConsumerRecord
from broker.client.cluster_admin import Admin
from broker.client.opening import Target, admin, consumer, producer
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.errors import ErrorCode, MillstreamError
from broker.model import LATEST_TIMESTAMP, TopicPartition
from connect.errors import ConfigError, Conflict, ConnectError, RetriableError
from connect.retries import is_transient

T = TypeVar("T")

logger = logging.getLogger(__name__)

WRITE_TIMEOUT_MS = 30_000
POLL_MS = 50  # transaction markers move the position without ending a poll
POLL_RECORDS = 10_000
SILENT_POLLS_MAX = 2_400  # longer than transactions of dead tasks stay open
FETCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic, with the settings to create it with."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


class StateTopic:
    """One topic, with the clients that read and write it."""

    def __init__(
        self,
        target: Target,
        spec: TopicSpec,
        *,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """`options` are those of all clients; nothing is sent before `open`."""
        self.name = spec.name
        self._target = target
        self._spec = spec
        self._apply: Callable[[ConsumerRecord], None] = _ignore
        self._options = dict(options or {})
        self._lock = concurrency.RLock()
        self._reader: Consumer | None = None
        self._writer: Producer | None = None
        self._admin: Admin | None = None
        self._closing = False

    def open(self, apply: Callable[[ConsumerRecord], None]) -> None:
        """Create or check the topic, and read it to its end."""
        self._apply, self._closing = apply, False
        with self._lock, _describing(f'cannot open topic "{self.name}"'):
            self._admin = admin(self._target, **self._options)
            self._prepare(self._admin)
            self._writer = producer(
                self._target,
                linger_ms=0,
                acks="all",
                max_block_ms=WRITE_TIMEOUT_MS,
                delivery_timeout_ms=WRITE_TIMEOUT_MS,
                **self._options,
            )
            self._reader = consumer(
                self._target,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=FETCH_BYTES,
                **self._options,
            )
            partitions = self._reader.partitions_for(self.name)
            self._reader.assign([TopicPartition(self.name, number) for number in partitions])
            self._reader.seek_to_beginning()
            # Not beyond open transactions: those of tasks that died with the last worker end
            # when the next tasks start, and a worker must not wait a minute for that.
            self._read_to(self._reader, self._reader.end_offsets(self._reader.assignment()))

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write keys with values, None to delete one; raises if any record was not written."""
        with self._lock, _describing(f'cannot write to topic "{self.name}"'):
            writer = self._opened(self._writer)
            sent = [writer.send(self.name, value, key) for key, value in records]
            for each in sent:
                each.result(WRITE_TIMEOUT_MS)

    def send(self, key: bytes, value: bytes | None) -> None:
        """Write a record without waiting; failures are logged."""
        with self._lock, _describing(f'cannot write to topic "{self.name}"'):
            if self._writer is not None:
                self._writer.send(self.name, value, key, callback=self._sent)

    def refresh(self) -> None:
        """Read the records since the last refresh."""
        with self._lock, _describing(f'cannot read topic "{self.name}"'):
            self._read_to_end(self._opened(self._reader))

    def _opened(self, client: T | None) -> T:
        """Return a client of the topic; raises Conflict once the worker has closed it."""
        if client is None and self._closing:
            raise Conflict("the worker is stopping")
        assert client is not None, "the topic is not open"
        return client

    def close(self) -> None:
        """Write the remaining records and close the clients."""
        self._closing = True  # threads that wait for the end of the topic release the lock
        with self._lock:
            writer, self._writer = self._writer, None
            reader, self._reader = self._reader, None
            administration, self._admin = self._admin, None
            if writer is not None:
                writer.close(WRITE_TIMEOUT_MS)
            if reader is not None:
                reader.close(0)
            if administration is not None:
                administration.close()

    # --- the topic ----------------------------------------------------------------------------

    def _prepare(self, administration: Admin) -> None:
        brokers = len(administration.describe_cluster().nodes)
        replicas = min(self._spec.replication_factor, brokers)
        if replicas < self._spec.replication_factor:
            logger.warning(
                'topic "%s" is created with %d replicas instead of %d: there are not '
                "enough brokers",
                self.name,
                replicas,
                self._spec.replication_factor,
            )
        configs = {**self._spec.configs, "cleanup.policy": "compact"}
        topic = NewTopic(self.name, self._spec.partitions, replicas, configs)
        error = administration.create_topics([topic]).errors.get(self.name)
        if error is not None:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise error
            self._check(administration)

    def _check(self, administration: Admin) -> None:
        """Check that an existing topic is compacted."""
        resource = ConfigResource("topic", self.name)
        policy = administration.describe_configs([resource])[resource]["cleanup.policy"].value
        if policy != "compact":
            raise ConfigError(
                f'topic "{self.name}" has cleanup.policy={policy}, it must be compact',
                hint="connectors would be lost: set cleanup.policy=compact, or use another topic",
            )
        if self._spec.partitions == 1:
            described = administration.describe_topics([self.name])[self.name]
            if len(described.partitions) != 1:
                raise ConfigError(
                    f'topic "{self.name}" has {len(described.partitions)} partitions, it must '
                    "have one",
                    hint="the order of all its records matters: use another topic",
                )

    def _read_to_end(self, reader: Consumer) -> None:
        wanted = dict.fromkeys(reader.assignment(), LATEST_TIMESTAMP)
        found = self._opened(self._admin).list_offsets(wanted).all()
        self._read_to(reader, {tp: end.offset for tp, end in found.items()})

    def _read_to(self, reader: Consumer, ends: Mapping[TopicPartition, int]) -> None:
        silent = 0
        while any(reader.position(tp) < end for tp, end in ends.items()):
            if self._closing:
                raise Conflict("the worker is stopping")
            records = reader.poll(POLL_MS, max_records=POLL_RECORDS)
            silent = 0 if records else silent + 1
            if silent > SILENT_POLLS_MAX:
                raise RetriableError(f'timed out reading topic "{self.name}" to the end')
            for record in records:
                self._apply(record)

    def _sent(self, metadata: object, error: BaseException | None) -> None:
        if error is not None:
            logger.warning('a record was not written to topic "%s": %s', self.name, error)


def _ignore(record: ConsumerRecord) -> None:
    """The `apply` of a topic that was not opened."""


@contextmanager
def _describing(what: str) -> Iterator[None]:
    """Add the failed operation to errors of the clients."""
    try:
        yield
    except ConnectError:
        raise
    except MillstreamError as error:
        kind = RetriableError if is_transient(error) else ConnectError
        raise kind(f"{what}: {error.message}", at=error.at, hint=error.hint) from error
