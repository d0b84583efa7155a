"""OffsetFlush: stores the offsets of a source task asynchronously, one write at a time.

add ──► pending ──begin──► in flight ──► stored
           ▲                   │
           └───── failure ─────┘
"""

import logging
from collections.abc import Mapping, Sequence

from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.clock import Clock
from broker.errors import MillstreamError
from connect.retries import is_transient
from connect.runtime.metrics import SourceMetrics
from connect.runtime.source.submitted import PartitionKey
from connect.state.offsets import OffsetStore, SourceOffset

logger = logging.getLogger(__name__)

Offsets = dict[PartitionKey, tuple[Mapping[str, object], Mapping[str, object]]]


class OffsetFlush:
    """The offsets of one task. Not thread-safe: callers hold a lock."""

    def __init__(
        self,
        connector: str,
        store: OffsetStore,
        producer: Producer,
        metrics: SourceMetrics,
        clock: Clock,
    ) -> None:
        self._connector = connector
        self._store = store
        self._producer = producer
        self._metrics = metrics
        self._clock = clock
        self._pending: Offsets = {}
        self._in_flight: Offsets = {}
        self._deliveries: Sequence[Delivery] = ()
        self._started_ms = 0

    def add(self, offsets: Offsets) -> None:
        """Add offsets to the next write; a later offset of a partition replaces an earlier one."""
        self._pending.update(offsets)

    def begin(self) -> None:
        """Write the pending offsets, unless a write is under way."""
        if self._in_flight:
            return
        self._started_ms = self._clock.monotonic_ms()
        if self._pending:
            offsets = [
                SourceOffset(partition, offset) for partition, offset in self._pending.values()
            ]
            try:
                self._deliveries = self._store.send(self._connector, offsets, self._producer)
            except MillstreamError as error:
                self._metrics.commit_failed()
                if not is_transient(error):
                    raise
                logger.warning(
                    'cannot store offsets of "%s", will retry: %s', self._connector, error
                )
                return
            self._in_flight, self._pending = self._pending, {}
        else:
            self._metrics.committed(0)

    def is_under_way(self) -> bool:
        """Whether a write has not ended yet; processes its acknowledgements."""
        if self._in_flight and all(delivery.done() for delivery in self._deliveries):
            self._end()
        return bool(self._in_flight)

    def _end(self) -> None:
        failed = any(delivery.exception(0) is not None for delivery in self._deliveries)
        if failed:
            self._pending = {**self._in_flight, **self._pending}
            self._metrics.commit_failed()
        else:
            self._metrics.committed(self._clock.monotonic_ms() - self._started_ms)
        self._in_flight, self._deliveries = {}, ()

    def age_ms(self) -> int:
        """The time since the start of the write."""
        return self._clock.monotonic_ms() - self._started_ms

    @property
    def is_empty(self) -> bool:
        """Whether all offsets are stored."""
        return not self._pending and not self._in_flight
