"""Production: the producer of a runner, its OutputBuffer and, if exactly-once, its transaction."""

import logging
from collections.abc import Callable, Mapping

from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.record_producer import Producer
from broker.clock import Clock
from broker.errors import BrokerError, ClientError, MillstreamError, RequestTimeout
from broker.model import TopicPartition
from streams.errors import StreamsError, TaskMigrated
from streams.runtime.output_buffer import OutputBuffer

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Production:
    """Sends all output of a runner; only the runner's thread uses it."""

    def __init__(
        self,
        open_producer: Callable[[], Producer],
        make_output: Callable[[Producer, Callable[[], None]], OutputBuffer],
        *,
        transactional: bool,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        """Open the producer; a transactional one aborts an open transaction of its predecessor."""
        self._open_producer = open_producer
        self._transactional = transactional
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._in_transaction = False
        self._producer = self._open()
        self.output = make_output(self._producer, self.begin)

    def _open(self) -> Producer:
        producer = self._open_producer()
        if not self._transactional:
            return producer
        try:
            self._retry("opening the transactional producer", producer.init_transactions)
        except BaseException:
            producer.close(0)
            raise
        return producer

    def abandon(self) -> None:
        """Make a commit that waits for the broker fail; any thread may call this."""
        self.output.is_abandoned = True
        self._producer.abandon()

    def begin(self) -> None:
        """Start a transaction unless one is open."""
        if self._transactional and not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True

    def commit(self, offsets: Offsets, group: GroupMetadata, fault: Callable[[str], None]) -> None:
        """Commit the transaction with these offsets; raises TaskMigrated if that fails."""
        try:
            self.begin()
            self._producer.send_offsets_to_transaction(offsets, group)
            fault("offsets sent")
            self._retry("committing the transaction", self._producer.commit_transaction)
        except (BrokerError, ClientError) as error:
            raise TaskMigrated(f"the transaction cannot be committed: {error}") from error
        self._in_transaction = False

    def abort(self) -> None:
        """Drop everything since the last commit; a producer that cannot continue is replaced."""
        self.output.discard()
        if not self._transactional:
            return
        if self._in_transaction:
            try:
                self._producer.abort_transaction()
            except MillstreamError as error:
                if self.output.is_abandoned:
                    logger.info("a transaction of a deleted application stays open: %s", error)
                    return
                logger.info("a transaction was not aborted, its producer is replaced: %s", error)
                self._replace()
        self._in_transaction = False

    def _replace(self) -> None:
        self._producer.close(0)
        self._producer = self._open()
        self.output.replace_producer(self._producer)

    def _retry(self, description: str, action: Callable[[], None]) -> None:
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        while True:
            try:
                action()
            except RequestTimeout as error:
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise StreamsError(
                        f"{description} took longer than {self._timeout_ms} ms",
                        hint='the broker does not respond; see "task_timeout_ms"',
                    ) from error
            else:
                return

    def close(self) -> None:
        """Close the producer; an open transaction is aborted."""
        self._producer.close(1_000)
