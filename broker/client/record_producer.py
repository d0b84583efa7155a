"""Producer: writes records over any transport.

    send() -> partition -> Accumulator (batches per partition) -> Sender's thread -> Cluster

`send` only routes a record and appends it to a batch; encoding, compression and I/O happen in the
sender's thread and, for network clients, the transport's.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Self

from broker import concurrency
from broker.batch.codec import check_batches
from broker.batch.layout import HEADER_BYTES
from broker.batch.records import Row
from broker.client.accumulator import Accumulator, BatchQueue
from broker.client.api import DeliveryCallback, GroupMetadata, Headers, OffsetAndMetadata
from broker.client.bulk import ManyRow
from broker.client.cluster import Cluster
from broker.client.config import ProducerConfig
from broker.client.partitioner import StickyPartitioner, partition_for_key
from broker.client.produced_batch import RECORD_OVERHEAD_BYTES, Delivery, headers_bytes
from broker.client.sender import Sender
from broker.client.sequences import Sequences
from broker.client.transaction import Transaction
from broker.errors import BrokerError, ClientError, ErrorCode, RequestTimeout
from broker.model import TopicPartition

FOREVER_MS = 1 << 40
ROWS_AT_ONCE = 500  # while the lock is held


class TopicRoute:
    """The metadata of a topic that `send` needs."""

    __slots__ = ("available", "count", "queues", "sticky", "sticky_bytes", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.count = 0
        self.available: list[int] = []  # partitions with a leader
        self.queues: list[BatchQueue] = []
        self.sticky = -1  # where records without a key go for now
        self.sticky_bytes = 0


class Producer:
    """Writes records. Any thread may call any method."""

    def __init__(self, cluster: Cluster, config: ProducerConfig | None = None) -> None:
        """Start the sender's thread; the cluster is closed with the producer."""
        self._config = config or ProducerConfig()
        self._cluster = cluster
        self._clock = cluster.clock
        self._now_ms = cluster.clock.now_ms
        self._accumulator = Accumulator(self._config, cluster.clock)
        self._append = self._accumulator.append
        self._record_bytes_max = self._config.max_request_size
        self._batch_bytes = max(1, self._config.batch_size - HEADER_BYTES)
        self._sticky = StickyPartitioner(self._batch_bytes, cluster.random)
        self._routes: dict[str, TopicRoute] = {}
        self._routing = concurrency.Lock()  # senders and the transport's thread update routes
        self._pid = os.getpid()
        self._closed = False
        sequences = Sequences() if self._config.idempotent else None
        self._transaction: Transaction | None = None
        if self._config.transactional_id is not None:
            assert sequences is not None
            self._transaction = Transaction(cluster, self._config, self._accumulator, sequences)
        self._sender = Sender(
            cluster, self._config, self._accumulator, sequences, self._transaction
        )
        cluster.on_refresh(self._update_routes)
        self._sender.start()

    # --- records ------------------------------------------------------------------------------

    def send(  # noqa: PLR0913 - a record has this many parts
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        callback: DeliveryCallback | None = None,
    ) -> Delivery:
        """Queue a record; waits only for unknown topics and for buffer memory."""
        if headers or type(value) not in PLAIN or type(key) not in PLAIN:
            value, key, headers = _as_bytes(value, "value"), _as_bytes(key, "key"), _fixed(headers)
        size = RECORD_OVERHEAD_BYTES + (headers_bytes(headers) if headers else 0)
        if value is not None:
            size += len(value)
        if key is not None:
            size += len(key)
        if size > self._record_bytes_max:
            raise self._too_large(size)
        route = self._routes.get(topic) or self._route(topic)
        if partition is not None:
            route = self._route(topic, partition)
        elif key is not None:
            partition = partition_for_key(key, route.count)
        else:
            partition = self._sticky_partition(route, size)
        row = (key, value, headers, self._now_ms() if timestamp_ms is None else timestamp_ms)
        return self._append(route.queues[partition], row, size, callback)

    def send_many(
        self, topic: str, rows: Sequence[ManyRow], deliveries: list[Delivery | None]
    ) -> None:
        """Queue records of one topic in their order, as `send` does one.

        The delivery of each is added to the list; an exception is about the record after them.
        """
        for start in range(0, len(rows), ROWS_AT_ONCE):
            placed: list[tuple[BatchQueue, Row, int]] = []
            try:
                self._place(topic, rows[start : start + ROWS_AT_ONCE], placed)
            finally:
                self._accumulator.append_many(placed, deliveries.append)

    def _place(
        self,
        topic: str,
        rows: Sequence[ManyRow],
        placed: list[tuple[BatchQueue, Row, int]],
    ) -> None:
        """Find the queue and the size of each record."""
        route = self._routes.get(topic) or self._route(topic)
        now_ms, limit = self._now_ms(), self._record_bytes_max
        for key, value, headers, timestamp_ms, partition in rows:
            size = RECORD_OVERHEAD_BYTES
            if headers or type(value) not in PLAIN or type(key) not in PLAIN:
                value, key = _as_bytes(value, "value"), _as_bytes(key, "key")
                headers = _fixed(headers)
                size += headers_bytes(headers)
            if value is not None:
                size += len(value)
            if key is not None:
                size += len(key)
            if size > limit:
                raise self._too_large(size)
            if partition is not None:
                queue = self._route(topic, partition).queues[partition]
            elif key is not None:
                queue = route.queues[partition_for_key(key, route.count)]
            else:
                queue = route.queues[self._sticky_partition(route, size)]
            stamp_ms = now_ms if timestamp_ms is None else timestamp_ms
            placed.append((queue, (key, value, headers, stamp_ms), size))

    def _sticky_partition(self, route: TopicRoute, size: int) -> int:
        """The partition for a record without a key: the same until a batch is full."""
        route.sticky_bytes += size
        sticky = route.sticky  # read once: another thread may find that it has no leader
        if sticky < 0 or route.sticky_bytes > self._batch_bytes:
            # Counted before the record is placed: each switch would leave a batch of one record.
            self._sticky.appended(
                route.topic, route.available, route.sticky_bytes, batch_closed=True
            )
            sticky = route.sticky = self._sticky.partition(route.topic, route.available)
            route.sticky_bytes = size
        return sticky

    def send_batch(
        self,
        tp: TopicPartition,
        batch: bytes | memoryview,
        *,
        callback: DeliveryCallback | None = None,
    ) -> Delivery:
        """Queue one whole record batch unchanged; the delivery is that of its first record."""
        view = memoryview(batch)
        found = check_batches(view, batch_bytes_max=self._config.max_request_size)
        if len(found) != 1:
            raise ClientError(f"send_batch accepts one record batch, not {len(found)}")
        header = found[0]
        queue = self._route(tp.topic, tp.partition).queues[tp.partition]
        counts = (header.record_count, header.base_timestamp)
        return self._accumulator.append_encoded(queue, batch, counts, callback)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[int]:
        """The partitions of a topic; waits up to max_block_ms unless another timeout is given."""
        limit_ms = self._config.max_block_ms if timeout_ms is None else timeout_ms
        return self._cluster.partitions(topic, timeout_ms=limit_ms)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Send everything now and wait for the outcomes of all records."""
        self._check_usable("flush")
        batches = self._accumulator.begin_flush()
        try:
            limit_ms = FOREVER_MS if timeout_ms is None else timeout_ms
            for batch in batches:
                started_ms = self._clock.monotonic_ms()
                if not self._accumulator.outcomes.wait(batch.is_settled, max(0, limit_ms)):
                    raise RequestTimeout(
                        f"not all records were delivered within {timeout_ms} ms",
                        hint="they are retried until delivery_timeout_ms expires",
                    )
                limit_ms -= self._clock.monotonic_ms() - started_ms
        finally:
            self._accumulator.end_flush()

    # --- transactions -------------------------------------------------------------------------

    @property
    def transactional_id(self) -> str | None:
        return self._config.transactional_id

    def init_transactions(self) -> None:
        """Fence earlier producers of this transactional id and end their open transactions."""
        self._transactional("init_transactions").init()

    def begin_transaction(self) -> None:
        """Start a transaction: all records sent from now on belong to it."""
        self._transactional("begin_transaction").begin()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit offsets of a group as part of the transaction."""
        self._transactional("send_offsets_to_transaction").send_offsets(offsets, group)

    def commit_transaction(self) -> None:
        """Commit the transaction; returns when the coordinator has committed it."""
        transaction = self._transactional("commit_transaction")
        transaction.begin_commit()
        self.flush()
        transaction.end()

    def abort_transaction(self) -> None:
        transaction = self._transactional("abort_transaction")
        transaction.begin_abort()
        self.flush()
        transaction.end()

    def _transactional(self, what: str) -> Transaction:
        self._check_usable(what)
        if self._transaction is None:
            raise ClientError(f"{what}() needs a producer with a transactional_id")
        return self._transaction

    # --- routes -------------------------------------------------------------------------------

    def _route(self, topic: str, partition: int | None = None) -> TopicRoute:
        """The route of a topic, which must have the partition; waits until the topic is known."""
        route = self._routes.get(topic)
        if route is not None and (partition is None or 0 <= partition < route.count):
            return route
        if os.getpid() != self._pid:
            raise ClientError(
                "a producer cannot be used after a fork",
                hint="create a new one in the child process",
            )
        limit_ms = self._config.max_block_ms
        self._cluster.topic(topic, timeout_ms=limit_ms)
        if partition is not None:
            self._cluster.leader(TopicPartition(topic, partition), timeout_ms=limit_ms)
        self._routes.setdefault(topic, TopicRoute(topic))
        self._update_routes()
        return self._routes[topic]

    def _update_routes(self) -> None:
        """Apply new metadata: added partitions, changed leaders."""
        with self._routing:
            for route in tuple(self._routes.values()):
                self._update_route(route)

    def _update_route(self, route: TopicRoute) -> None:
        known = self._cluster.known_topic(route.topic)
        if known is None or not known.partitions:
            return
        for partition in range(len(route.queues), len(known.partitions)):
            route.queues.append(self._accumulator.queue(TopicPartition(route.topic, partition)))
        led = [p for p in sorted(known.partitions) if known.partitions[p].leader >= 0]
        route.available = led or sorted(known.partitions)
        route.count = len(route.queues)
        if route.sticky not in route.available:
            route.sticky = -1

    # --- closing ------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Fail all records that are not delivered, and a commit or flush that waits for them.

        An open transaction can then only be aborted.
        """
        if self._transaction is not None:
            self._transaction.abandon()
        self._sender.abandon()

    def close(self, timeout_ms: int | None = None) -> None:
        """Send the remaining records, for as long as the timeout allows, then stop."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            return  # threads and connections belong to the parent
        try:
            self._finish(timeout_ms)
        finally:
            self._sender.stop_soon()
            if self._transaction is not None:
                self._transaction.close()
            self._cluster.close()
            self._sender.join()

    def _finish(self, timeout_ms: int | None) -> None:
        transaction = self._transaction
        try:
            if transaction is None:
                self._accumulator.refuse(ClientError("the producer is closed"))
                self.flush(timeout_ms)
            elif transaction.is_open():
                self.abort_transaction()
        except (RequestTimeout, BrokerError):
            return  # each delivery has its outcome; the coordinator times the transaction out

    def _check_usable(self, what: str) -> None:
        if os.getpid() != self._pid:
            raise ClientError(
                "a producer cannot be used after a fork",
                hint="create a new one in the child process",
            )
        if self._sender.is_current():
            raise ClientError(
                f"{what}() cannot be called in a delivery callback",
                hint="callbacks run in the sender thread: waiting there would deadlock",
            )

    def _too_large(self, size: int) -> BrokerError:
        return BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of {size} bytes is larger than max_request_size",
            hint=f"max_request_size is {self._config.max_request_size}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


PLAIN = (bytes, type(None))


def _as_bytes(value: object, what: str) -> bytes | None:
    """An immutable copy, as the record waits in the buffer."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ClientError(
        f"the {what} of a record is a {type(value).__name__}, not bytes",
        hint="serialize it first, for example with a serde of broker.serde",
    )


def _fixed(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    fixed = tuple((name, _as_bytes(value, "header")) for name, value in headers)
    for name, _ in fixed:
        if not isinstance(name, str):
            raise ClientError(f"a header key is {name!r}, not a string")
    return fixed
