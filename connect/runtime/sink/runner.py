"""SinkRunner: the loop of a sink task.

    commit if due -> poll -> converters -> transforms -> put -> offsets of what was put

          put: RetriableError
    ┌────────────────────────────┐
    ▼                            │
  DELIVERING ──► all partitions paused, polls continue (heartbeats, rebalances, commits of earlier
                 batches); after the task's timeout the same batch is put again

See README.md for the life of a record.
"""

import logging
from collections.abc import Callable, Iterable

from broker.client.api import ConsumerRecord, RebalanceListener
from broker.client.record_consumer import WokenUp
from broker.client.retry import is_retriable
from broker.errors import CorruptBatchError, MillstreamError
from broker.model import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.records import SinkRecord, TimestampType
from connect.retries import RETRY_MS
from connect.runtime.dead_letters import DeadLetterRefused
from connect.runtime.error_handling import RecordFailure, Stage
from connect.runtime.metrics import TaskMetrics
from connect.runtime.sink.commit import SinkCommit
from connect.runtime.sink.offsets import SinkOffsets, partition_runs
from connect.runtime.sink.pipeline import NO_TIMESTAMP
from connect.runtime.sink.setup import SinkContext, SinkSetup

logger = logging.getLogger(__name__)

# Longer polls would delay a stop, a pause or a commit that the task requests.
POLL_MS_MAX = 500
REDELIVERY_FIRST_MS = 300
REDELIVERY_LONGEST_MS = 60_000
CLOSE_TIMEOUT_MS = 5_000
KAFKA_CONSUMER = "org.apache.kafka.clients.consumer.KafkaConsumer"


class SinkRunner:
    """The TaskBody of a sink task."""

    polls_while_paused = True
    has_steps = False

    def __init__(self, setup: SinkSetup, close_others: Callable[[], None]) -> None:
        """`close_others` closes the task's other resources, except its consumer."""
        self._setup = setup
        self._close_others = close_others
        self._consumer = setup.consumer
        self._task = setup.task
        self._offsets = SinkOffsets()
        self._commit = SinkCommit(setup, self._offsets)
        self._context = SinkContext(setup.config, setup.consumer, setup.errant_records)
        self._batch: list[SinkRecord] = []
        self._redeliveries = 0  # of the current batch
        self._redeliver_at_ms = 0
        self._paused = False
        self._started = False
        self._held: set[TopicPartition] = set()  # opened in the task
        self._topics: set[str] = set()

    # --- the TaskBody --------------------------------------------------------------------------

    @property
    def metrics(self) -> TaskMetrics:
        return self._setup.metrics

    def start(self) -> None:
        """Subscribe, and start the task; the first polls assign partitions."""
        listener = RebalanceListener(self._assigned, self._revoked, self._lost)
        self._consumer.subscribe(self._setup.topics, listener)
        self._task.context = self._context
        self._started = True
        self._task.start(self._setup.config)

    def turn(self) -> None:
        """Poll once, and process the records."""
        context = self._context
        self._check_dead_letters()
        if self._commit.step(requested=context.commit_requested):
            context.commit_requested = False
        self._rewind()
        records = self._poll(self._wait_ms())
        self._measure()
        if self._redeliveries:
            if self._setup.clock.monotonic_ms() >= self._redeliver_at_ms:
                self._deliver()
            return
        if records:
            self._convert(records)
        self._deliver()

    def pause(self) -> None:
        """Pause all partitions, stay in the group, and commit what was put."""
        self._paused = True
        self._context.hold_all(hold=True)
        self._context.request_commit()

    def resume(self) -> None:
        """Resume the partitions."""
        self._paused = False
        if not self._redeliveries:
            self._context.hold_all(hold=False)

    def finish(self, *, failed: bool) -> None:
        """Close all partitions, with a last commit."""
        self._close_partitions(self._held, lost=False)

    def close(self) -> None:
        """Stop the task and leave the group."""
        try:
            if self._started:
                self._task.stop()
        finally:
            try:
                self._consumer.close(CLOSE_TIMEOUT_MS)
            finally:
                self._close_others()

    def wake(self) -> None:
        """End the poll."""
        self._consumer.wakeup()

    def ask_to_stop(self) -> None:
        """Do nothing: the task's own thread stops it, after its last commit."""

    def step(self) -> None:
        """Do nothing: turns do not wait for long."""

    def abandon(self) -> None:
        """Leave the group; otherwise its partitions are not read until the session times out."""
        try:
            self._setup.leave_group(self._consumer.group_metadata())
        except MillstreamError:
            logger.exception("task %s cannot leave its group", self._setup.task_id)

    # --- one turn ------------------------------------------------------------------------------

    def _wait_ms(self) -> int:
        context = self._context
        limit_ms = min(self._commit.due_in_ms(), POLL_MS_MAX)
        if self._redeliveries:
            left_ms = self._redeliver_at_ms - self._setup.clock.monotonic_ms()
            limit_ms = min(limit_ms, max(0, left_ms))
        elif context.timeout_ms is not None:
            limit_ms = min(limit_ms, context.timeout_ms)
            context.timeout_ms = None
        return limit_ms

    def _poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        try:
            return self._consumer.poll(timeout_ms)
        except WokenUp:
            return []
        except CorruptBatchError as error:
            self._skip_batch(error)
            return []
        except MillstreamError as error:
            if not is_retriable(error):
                raise
            logger.warning("task %s cannot poll, will retry: %s", self._setup.task_id, error)
            self._setup.stop.wait(RETRY_MS)  # back off, even if the broker fails immediately
            return []

    def _skip_batch(self, error: CorruptBatchError) -> None:
        """Skip a batch that cannot be read, if errors are tolerated; it is reported."""
        handler, tp = self._setup.handler, TopicPartition(error.topic, error.partition)
        if not handler.settings.tolerates_all:
            raise ConnectError(
                error.message,
                at=error.at,
                hint="set errors.tolerance=all to skip batches that cannot be read, or set the "
                f"offset of the partition to {error.next_offset}",
            ) from error
        logger.error("task %s skips a batch: %s", self._setup.task_id, error)
        nothing = ConsumerRecord(*tp, error.offset, NO_TIMESTAMP, None, None, ())
        failure = RecordFailure(Stage.KAFKA_CONSUME, KAFKA_CONSUMER, error, nothing)
        handler.counts.failures += 1
        handler.report(failure)
        handler.skip(failure)
        self._consumer.seek(tp, error.next_offset)
        self._offsets.read(tp, first=error.offset, last=error.next_offset - 1)

    def _rewind(self) -> None:
        wanted, self._context.wanted_offsets = self._context.wanted_offsets, {}
        assigned = self._consumer.assignment() if wanted else set()
        for tp, offset in wanted.items():
            if tp not in assigned:
                logger.warning(
                    "task %s rewinds %s, which is not assigned to it", self._setup.task_id, tp
                )
                continue
            self._consumer.seek(tp, offset)
            self._offsets.rewind(tp, offset)

    def _convert(self, records: list[ConsumerRecord]) -> None:
        self._setup.metrics.read(len(records))
        self._setup.metrics.batch(len(records))
        runs = list(partition_runs(records))
        for tp, run in runs:
            self._offsets.read(tp, first=run[0].offset, last=run[-1].offset)
        for tp, run in runs:
            if tp.topic not in self._topics:
                self._topics.add(tp.topic)
                self._setup.on_topic(tp.topic)
            appended = self._consumer.has_append_time(tp)
            kind: TimestampType = "LogAppendTime" if appended else "CreateTime"
            self._setup.pipeline.add_records(run, kind, self._batch)

    def _check_dead_letters(self) -> None:
        """Raise if a letter was refused: the task must not commit past its record."""
        if self._setup.dead_letters is not None:
            self._setup.dead_letters.raise_refused()

    def _settle_dead_letters(self) -> None:
        """Wait for dead letters: a task that stores offsets itself may go past them in `put`."""
        letters = self._setup.dead_letters
        if letters is not None and not letters.settle(self._setup.flush_timeout_ms):
            raise RetriableError("dead letters are not acknowledged yet")

    def _deliver(self) -> None:
        """Put the batch, even an empty one: tasks do timed work in `put`."""
        clock = self._setup.clock
        started_ms = clock.monotonic_ms()
        try:
            self._settle_dead_letters()
            self._task.put(self._batch)
        except RetriableError as error:
            self._retry_later(error)
            return
        except DeadLetterRefused:
            raise
        except Exception as error:
            raise ConnectError(
                "Exiting WorkerSinkTask due to unrecoverable exception.",
                at=f"task {self._setup.task_id}, put of {len(self._batch)} records",
            ) from error
        if self._batch:
            self._setup.metrics.put(len(self._batch), clock.monotonic_ms() - started_ms)
        self._offsets.batch_done()
        self._setup.metrics.offsets_caught_up()
        self._batch = []
        if self._redeliveries:
            self._redeliveries = 0
            if not self._paused:
                self._context.hold_all(hold=False)

    def _retry_later(self, error: RetriableError) -> None:
        """Keep the batch, accept no other records, and retry later."""
        delay_ms = min(REDELIVERY_FIRST_MS << min(self._redeliveries, 20), REDELIVERY_LONGEST_MS)
        asked_ms, self._context.timeout_ms = self._context.timeout_ms, None
        self._redeliveries += 1
        wait_ms = delay_ms if asked_ms is None else asked_ms
        self._redeliver_at_ms = self._setup.clock.monotonic_ms() + wait_ms
        self._context.hold_all(hold=True)
        logger.warning(
            "task %s will put the same %d records again in %d ms: %s",
            self._setup.task_id,
            len(self._batch),
            wait_ms,
            error,
        )

    def _measure(self) -> None:
        assigned = self._consumer.assignment()
        lags = [self._consumer.current_lag(tp) or 0 for tp in assigned]
        metrics = self._setup.metrics
        metrics.partition_count = len(assigned)
        metrics.lag_max = max(lags, default=0)

    # --- rebalances, called inside poll --------------------------------------------------------

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        if self._paused or self._redeliveries:
            self._context.hold_all(hold=True)
        self._held |= partitions
        if partitions:
            self._task.open(sorted(partitions))
            self._rewind()

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._close_partitions(partitions, lost=False)

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._close_partitions(partitions, lost=True)

    def _close_partitions(self, partitions: Iterable[TopicPartition], *, lost: bool) -> None:
        """Close revoked partitions; lost ones are not committed: others may own them already."""
        given_up = self._held & set(partitions)
        if not given_up:
            return
        self._held -= given_up
        self._batch = [record for record in self._batch if _partition(record) not in given_up]
        if self._redeliveries and not self._batch:
            self._redeliveries = 0
            if not self._paused:
                self._context.hold_all(hold=False)
        try:
            if lost:
                self._task.close(sorted(given_up))
            else:
                self._commit.close(sorted(given_up))
        finally:
            self._offsets.forget(given_up)
            self._context.paused -= given_up


def _partition(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.original_topic, record.original_partition)
