"""SchemaLog: the registry's topic, with one writer; readers see whole writes only.

    open    create or check the topic, initialize its transactional id, read to the end
    append  one transaction for all records of a change; acknowledged by all in-sync replicas

The transactional id is the topic's name: opening a second registry on the topic fences the first,
whose next write then fails permanently (50004). The id is initialized before the topic is read, so
that no record can follow the end that was read. If the outcome of a write is unknown, the next
write determines it: it opens the log again at the offset where it had stopped reading.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from broker.client.administration.values import ConfigResource, NewTopic
from broker.client.api import ConsumerRecord
from broker.client.cluster_admin import Admin
from broker.client.opening import Target, admin, consumer, producer
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.errors import BrokerError, CorruptBatchError, ErrorCode, MillstreamError, RegistryError
from broker.model import TopicPartition
from broker.registry import refusals
from broker.registry.records import BadRecord, Record, decode, encode

logger = logging.getLogger(__name__)

RECORD_BYTES_MAX = 1_000_000  # below the default max.message.bytes of brokers
WRITE_TIMEOUT_MS = 30_000
FETCH_BYTES = 16 * 1024 * 1024
POLL_MS = 50  # markers of transactions advance the position without waking the poll
POLL_RECORDS = 10_000
SILENT_POLLS_MAX = 1_200
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class SchemaLog:
    """The records of one registry; one thread uses it at a time."""

    def __init__(
        self,
        target: Target,
        topic: str,
        *,
        replication_factor: int,
        apply: Callable[[Record], None],
    ) -> None:
        """Nothing is sent to the broker yet; `apply` receives each record that is read."""
        self._target = target
        self._topic = topic
        self._replication_factor = replication_factor
        self._apply = apply
        self._producer: Producer | None = None
        self._next_offset = 0
        self._fenced = False
        # Keys with another spelling in older records: a record must have the key of its
        # predecessor.
        self._spellings: dict[bytes, bytes] = {}

    def open(self) -> None:
        """Become the only writer and read all records; raises RegistryError if that fails."""
        self._fenced = False
        try:
            with admin(self._target) as administration:
                self._prepare_topic(administration)
            self._take_over()
        except MillstreamError as error:
            self.close()
            raise _store_error(f'cannot open topic "{self._topic}"', error) from error

    def ready(self) -> None:
        """Make sure that all records are read before a change is prepared."""
        if self._fenced:
            raise self._fenced_error()
        if self._producer is None:
            try:
                self._take_over()
            except MillstreamError as error:
                self.close()
                raise _store_error(f'cannot write to topic "{self._topic}"', error) from error

    def append(self, records: Sequence[Record]) -> None:
        """Write records, all or none; RegistryError if it fails.

        `ready` must be called before, with no other write in between.
        """
        encoded = [encode(record) for record in records]
        for key, value in encoded:
            if len(key) + len(value or b"") > RECORD_BYTES_MAX:
                raise refusals.too_large()
        try:
            self._write(encoded)
        except MillstreamError as error:
            self._fenced = isinstance(error, BrokerError) and error.code in FENCED
            self.close()
            if self._fenced:
                raise self._fenced_error() from error
            raise _store_error(f'cannot write to topic "{self._topic}"', error) from error

    def close(self) -> None:
        """Close the producer."""
        closing, self._producer = self._producer, None
        if closing is None:
            return
        try:
            closing.close(timeout_ms=0)
        except MillstreamError as error:
            # The coordinator ends an open transaction, at the latest when the next writer starts.
            logger.warning('cannot close the writer of topic "%s": %s', self._topic, error)

    # --- the topic ----------------------------------------------------------------------------

    def _prepare_topic(self, administration: Admin) -> None:
        topic = NewTopic(self._topic, 1, self._replication_factor, {"cleanup.policy": "compact"})
        error = administration.create_topics([topic]).errors.get(self._topic)
        if error is None:
            return
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise error
        self._check_topic(administration)

    def _check_topic(self, administration: Admin) -> None:
        described = administration.describe_topics([self._topic])[self._topic]
        if len(described.partitions) != 1:
            raise RegistryError(
                50001,
                f'the schema topic "{self._topic}" should have only 1 partition but has '
                f"{len(described.partitions)}",
                hint="use another topic for the registry",
            )
        resource = ConfigResource("topic", self._topic)
        policy = administration.describe_configs([resource])[resource]["cleanup.policy"].value
        if policy != "compact":
            raise RegistryError(
                50001,
                f'the retention policy of the schema topic "{self._topic}" is incorrect: expected '
                f"cleanup.policy to be 'compact' but it is {policy}",
                hint="old schemas would be deleted: set cleanup.policy=compact on the topic",
            )

    # --- reading ------------------------------------------------------------------------------

    def _take_over(self) -> None:
        self._producer = producer(
            self._target,
            client_id="schema-registry",
            transactional_id=self._topic,
            linger_ms=0,
            acks="all",
            max_block_ms=WRITE_TIMEOUT_MS,
            delivery_timeout_ms=WRITE_TIMEOUT_MS,
        )
        self._producer.init_transactions()
        for offset, key, value in self._records_to_end():
            self._take_in(offset, key, value)

    def _records_to_end(self) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        tp = TopicPartition(self._topic, 0)
        with consumer(
            self._target,
            client_id="schema-registry",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=FETCH_BYTES,
        ) as reader:
            reader.assign([tp])
            reader.seek(tp, self._next_offset)
            end = reader.end_offsets([tp])[tp]
            silent = 0
            while reader.position(tp) < end:
                records = self._poll(reader, tp)
                silent = 0 if records else silent + 1
                if silent > SILENT_POLLS_MAX:
                    raise RegistryError(
                        50002, f'topic "{self._topic}" was not read to its end in time'
                    )
                for record in records:
                    yield record.offset, record.key, record.value
            self._next_offset = max(self._next_offset, end)

    def _poll(self, reader: Consumer, tp: TopicPartition) -> Sequence[ConsumerRecord]:
        """The next records; an unreadable one must not prevent a start."""
        try:
            return reader.poll(POLL_MS, max_records=POLL_RECORDS)
        except CorruptBatchError as error:
            logger.error("skipped %s: %s", error.at, error.message)
            reader.seek(tp, error.next_offset)
            return ()

    def _take_in(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Apply a record; a bad one must not prevent a start."""
        try:
            record = decode(key, value)
            self._apply(record)
        except Exception as error:  # whatever the bytes are, the start continues
            shown = error if isinstance(error, BadRecord) else repr(error)
            logger.warning('skipped topic "%s" offset %d: %s', self._topic, offset, shown)
            return
        if key is not None and not key.startswith(b'{"keytype":"SCHEMA","subject":'):
            ours = encode(record)[0]
            if ours != key:
                self._spellings[ours] = key

    # --- writing ------------------------------------------------------------------------------

    def _write(self, encoded: Sequence[tuple[bytes, bytes | None]]) -> None:
        assert self._producer is not None, "open comes first"
        self._producer.begin_transaction()
        sent = [
            self._producer.send(self._topic, value, self._spellings.get(key, key), partition=0)
            for key, value in encoded
        ]
        self._producer.commit_transaction()
        self._next_offset = sent[-1].result().offset + 1

    def _fenced_error(self) -> RegistryError:
        return RegistryError(
            50004,
            f'this registry can no longer write to topic "{self._topic}": another one took over',
            hint="send the request to the registry that was started last",
        )


def _store_error(what: str, error: MillstreamError) -> RegistryError:
    if isinstance(error, RegistryError):
        return error
    return RegistryError(50001, f"{what}: {error.message}", hint=error.hint)
