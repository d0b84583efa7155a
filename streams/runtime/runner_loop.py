"""RunnerLoop: the loop of a runner's thread, from joining the group to leaving it.

    poll -> open and restore tasks -> process in rounds -> punctuate -> commit -> ...

Rebalance callbacks run inside `poll`: revoked tasks are committed there, before other members get
them. Records that were fetched but not processed are fetched again by the next owner.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter_ns  # for metrics only: decisions are by the clock
from typing import Protocol

from broker import concurrency, garbage
from broker.client.api import RebalanceListener
from broker.client.record_consumer import Consumer, WokenUp
from broker.client.record_producer import Producer
from broker.errors import (
    ConnectionFailed,
    CorruptBatchError,
    MillstreamError,
    RequestTimeout,
)
from broker.model import TopicPartition
from streams.errors import StreamsError, TaskMigrated
from streams.runtime.assignor import TaskAssignment
from streams.runtime.chunks import FetchedInput
from streams.runtime.commit import Commit
from streams.runtime.environment import Environment
from streams.runtime.internal_topics import existing_topics
from streams.runtime.output_buffer import OutputBuffer
from streams.runtime.owned_task import OwnedTask
from streams.runtime.partitions import TaskId, has_patterns, topics_of_tasks
from streams.runtime.production import Production
from streams.runtime.restore_loop import Restorer
from streams.runtime.runner_metrics import RunnerMetrics
from streams.runtime.runner_state import RunnerState, ShutdownRequested
from streams.runtime.runner_tasks import RunnerTasks
from streams.runtime.task_metrics import PROCESS_NANOSECONDS

logger = logging.getLogger(__name__)

ROUND_RECORDS = 1000
ROUNDS_MS = 50  # how long rounds may continue before the consumer is polled again
SHARED_ROUNDS_MS = 10  # the same for runners that share threads
IDLE_MS = 1_000  # a runner that shares its thread checks its tasks this often
SLOW_CHECKS_MS = 500  # the interval of checks of warm-ups and of positions of standbys
TOPICS_CHECK_MS = 30_000  # unless metadata_max_age_ms is set
SHUTDOWN_REPORT_MS = 10_000
LOCKED_WAIT_MS = 20  # another runner is about to release a task's directory
RESTORE_WAIT_MS = 10  # while other tasks run
OUTPUT_LINGER_MS = 100  # how long an incomplete batch waits, unless "producer.linger_ms" is set


class RunnerControl(Protocol):
    """The interface of the runner for its loop."""

    name: str
    metrics: RunnerMetrics
    tasks: RunnerTasks | None
    consumer: Consumer | None
    production: Production | None
    stopping: concurrency.Event
    abandoned: concurrency.Event
    paused: concurrency.Event

    @property
    def shares_thread(self) -> bool: ...

    def wake_up(self) -> None: ...

    def enter(self, state: RunnerState) -> None: ...


class RunnerLoop:
    """Opens, runs and closes everything that belongs to a runner's thread."""

    def __init__(self, environment: Environment, runner: RunnerControl) -> None:
        config = environment.config
        self._runner = runner
        self._environment = environment
        self._config = config
        self._clock = environment.clock
        self._metrics = runner.metrics
        self._assignor = environment.assignor()
        self._production = Production(
            lambda: environment.clients.producer(runner.name),
            self._make_output,
            transactional=config.exactly_once,
            clock=environment.clock,
            timeout_ms=config.task_timeout_ms,
        )
        runner.production = self._production
        self._consumer = environment.clients.main_consumer(runner.name, self._assignor)
        runner.consumer = self._consumer
        self._shares_thread = runner.shares_thread
        if self._shares_thread:
            self._consumer.on_ready(runner.wake_up)
        self._restorer = Restorer(self._open_restore_consumer, environment.bounds)
        self._tasks = RunnerTasks(environment, self._consumer, self._production, self._restorer)
        runner.tasks = self._tasks
        self._commit = Commit(
            self._consumer,
            self._production,
            exactly_once=config.exactly_once,
            clock=environment.clock,
            timeout_ms=config.task_timeout_ms,
            fault=environment.fault,
        )
        self._input = FetchedInput(config.buffered_records_per_partition)
        self._paused = False  # paused by the user
        self._rejoin = False  # the assignment of a previous process is incomplete
        self._full: set[TopicPartition] = set()  # paused, because enough records are buffered
        self._failing_since_ms: int | None = None  # since when commits fail
        self._unresponsive_since_ms: int | None = None  # since when the broker does not respond
        now_ms = self._clock.monotonic_ms()
        self._commit_at_ms = now_ms + config.commit_interval_ms
        self._output_since_ms: int | None = None  # since when output waits for full batches
        self._purge_at_ms = now_ms + config.repartition_purge_interval_ms
        self._slow_checks_at_ms = now_ms
        self._summary_at_ms = now_ms + config.log_summary_interval_ms
        self._probe_at_ms: int | None = None
        linger_ms = config.prefixed("producer.").get("linger_ms", OUTPUT_LINGER_MS)
        self._output_linger_ms = int(str(linger_ms))
        age_ms = config.prefixed("consumer.").get("metadata_max_age_ms", TOPICS_CHECK_MS)
        self._topics_check_ms = int(str(age_ms))
        self._patterns_at_ms = now_ms + self._topics_check_ms
        self._bytes_max = config.state_buffer_max_bytes // config.num_stream_threads

    def _open_restore_consumer(self) -> Consumer:
        consumer = self._environment.clients.restore_consumer(self._runner.name)
        if self._shares_thread:
            consumer.on_ready(self._runner.wake_up)
        return consumer

    def _make_output(self, producer: Producer, begin: Callable[[], None]) -> OutputBuffer:
        return OutputBuffer(
            producer,
            handler=self._config.production_exception_handler,
            before_send=begin,
            batch_limit=self._environment.batch_limit,
            transactional=self._config.exactly_once,
            dead_letter_topic=self._config.errors_dead_letter_queue_topic_name,
        )

    # --- from start to end --------------------------------------------------------------------

    def run(self) -> Iterator[int]:
        """Run until stopped or failed.

        After each iteration, yields the delay in ms until the next one is due: 0 for a runner with
        its own thread, which waits in its poll.
        """
        self._subscribe()
        busy = False
        while not self._runner.stopping.is_set():
            try:
                busy = self._run_once(busy)
            except MillstreamError as error:
                if self._runner.abandoned.is_set():
                    break
                if not isinstance(error, TaskMigrated):
                    raise
                self._restart_tasks(error)
            yield self._delay_ms() if self._shares_thread and not busy else 0
        self._runner.enter(RunnerState.STOPPING)
        self._commit_and_close()

    def report_shutdown(self) -> None:
        """If all instances must stop, notify the group before this member leaves it."""
        if not self._environment.report.shutdown:
            return
        deadline_ms = self._clock.monotonic_ms() + SHUTDOWN_REPORT_MS
        self._consumer.enforce_rebalance("all instances must stop")
        while self._clock.monotonic_ms() < deadline_ms:
            try:
                self._consumer.poll_batches(self._config.poll_ms)
            except ShutdownRequested:
                return  # the leader has notified all members
            except (WokenUp, TaskMigrated):
                continue

    def close(self) -> None:
        """Release everything; open tasks lose uncommitted changes."""
        closers: list[Callable[[], None]] = [
            partial(self._tasks.close, owned) for owned in self._tasks.snapshot
        ]
        closers += [self._restorer.close, self._production.close, self._consumer.close]
        for closer in closers:
            try:
                closer()
            except Exception as error:
                # The others must be closed nevertheless.
                logger.warning("%s did not close cleanly: %s", self._runner.name, error)

    def _subscribe(self) -> None:
        listener = RebalanceListener(self._assigned, self._revoked, self._lost)
        self._consumer.subscribe(self._environment.layout.subscription(), listener)
        self._runner.enter(RunnerState.REBALANCING)

    def _run_once(self, busy: bool) -> bool:
        """Run one iteration of the loop; returns whether there are more records to process."""
        if self._runner.paused.is_set():
            self._pause_reading()
        elif self._paused:
            self._resume_reading()
        self._poll(0 if busy or self._shares_thread else self._wait_ms(self._config.poll_ms))
        try:
            self._open_tasks(busy)
            self._unresponsive_since_ms = None
        except (RequestTimeout, ConnectionFailed) as error:
            self._unresponsive_since_ms = self._check_timeout(self._unresponsive_since_ms, error)
            logger.warning("%s retries: %s", self._runner.name, error)
        if self._paused:
            self._do_periodic_work()
            return False
        busy = self._process()
        self._punctuate()
        self._commit_when_due()
        self._send_when_due()
        self._do_periodic_work()
        garbage.collect_when_due()
        return busy

    def _pause_reading(self) -> None:
        """Commit and stop fetching; the runner stays in its group."""
        self._paused = True
        reading = self._consumer.assignment() - self._consumer.paused()
        if reading:
            self._consumer.pause(reading)
        if not self._assignor.rebalancing:
            self._commit_now()

    def _resume_reading(self) -> None:
        """Resume the partitions for which tasks have room."""
        self._paused = False
        for owned in self._tasks.running():
            self._consumer.resume([tp for tp in owned.inputs if tp not in self._full])

    def _commit_and_close(self) -> None:
        """Commit, unless the application is being deleted, and close all tasks."""
        try:
            if self._runner.abandoned.is_set():
                self._production.abort()
            elif not self._assignor.rebalancing:
                self._commit_now()
        except TaskMigrated as error:
            logger.info("the last commit was refused: %s", error)
            self._production.abort()
        for owned in self._tasks.snapshot:
            self._tasks.close(owned)

    # --- polling ------------------------------------------------------------------------------

    def _delay_ms(self) -> int:
        """The delay until the next iteration, unless the loop is woken up before."""
        if self._restorer.restoring:
            return RESTORE_WAIT_MS
        return min(self._consumer.poll_due_in_ms, self._wait_ms(IDLE_MS))

    def _wait_ms(self, wait_ms: int) -> int:
        """How long the next poll may wait, at most `wait_ms`."""
        if self._restorer.restoring:
            return 0
        if not self._tasks.all_running:
            return LOCKED_WAIT_MS
        now_ms = self._clock.monotonic_ms()
        # While the group rebalances no commit is possible, however long it has been due.
        if not self._assignor.rebalancing and any(
            owned.needs_commit for owned in self._tasks.running()
        ):
            wait_ms = min(wait_ms, self._commit_at_ms - now_ms)
        if self._paused:
            return max(0, wait_ms)
        if self._output_since_ms is not None:
            wait_ms = min(wait_ms, self._output_since_ms + self._output_linger_ms - now_ms)
        wall_ms = self._clock.now_ms()
        for owned in self._tasks.running():
            wait_ms = min(wait_ms, owned.running().next_wall_clock_ms - wall_ms)
        return max(0, wait_ms)

    def _poll(self, timeout_ms: int) -> None:
        consumer, metrics = self._consumer, self._metrics
        started_ns = perf_counter_ns()
        try:
            batches = consumer.poll_batches(timeout_ms)
        except WokenUp:
            return
        except CorruptBatchError as error:
            # The task gets the error in order; the next batches can be read.
            self._input.add_unreadable(error)
            consumer.seek(TopicPartition(error.topic, error.partition), error.next_offset)
            return
        metrics.polled(perf_counter_ns() - started_ns)
        if not batches:
            return
        metrics.batches_consumed_total += len(batches)
        metrics.records_consumed_total += sum(batch.header.record_count for batch in batches)
        self._input.add(batches, consumer.position)

    # --- rebalance callbacks, inside poll -----------------------------------------------------

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        received = self._assignor.received
        self._metrics.rebalances_total += 1
        if self._assignor.is_of_previous_process:
            received = self._check_previous_assignment(received)
        if received.shutdown:
            raise ShutdownRequested("an instance asked the whole application to stop")
        if received.error:
            raise StreamsError(f"the leader cannot assign tasks: {received.error}")
        if partitions:
            self._consumer.pause(partitions)
        self._update_layout(received.active)
        self._close_changed_tasks()
        self._tasks.assign(received.active, received.standby)
        self._assignor.standbys = received.standby
        probing_ms = self._config.probing_rebalance_interval_ms
        self._probe_at_ms = self._clock.monotonic_ms() + probing_ms if received.probing else None
        self._environment.set_hosts(received.hosts)

    def _check_previous_assignment(self, received: TaskAssignment) -> TaskAssignment:
        """Return the part of a previous process's assignment that is still valid.

        The coordinator noticed neither the crash nor what may have changed since: topics, the
        topology, or a task that was being moved. If the assignment is incomplete, rejoin.
        """
        layout = self._environment.layout
        if not received.is_complete(layout):
            self._rejoin = True
        if received.active <= set(layout.tasks()) and (
            set(topics_of_tasks(layout, received.active)) == self._consumer.assignment()
        ):
            return replace(received, error="", shutdown=False)
        return TaskAssignment()

    def _update_layout(self, active: frozenset[TaskId]) -> None:
        """Compute the layout again if the leader has seen newer topics or partitions."""
        layout = self._environment.layout
        known = set(layout.tasks())
        if not active <= known or set(topics_of_tasks(layout, active)) != (
            self._consumer.assignment()
        ):
            self._environment.refresh_layout()

    def _close_changed_tasks(self) -> None:
        """Commit and close tasks whose inputs have changed; they are opened again."""
        layout = self._environment.layout
        changed = [
            owned
            for owned in self._tasks.snapshot
            if owned.task_id not in layout.tasks()
            or owned.inputs != tuple(layout.inputs(owned.task_id))
        ]
        if changed:
            self._commit_now()
            for owned in changed:
                self._tasks.close(owned)
                for tp in owned.inputs:
                    self._drop_input(tp)

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._begin_rebalance()
        try:
            self._commit_now()
        except TaskMigrated as error:
            self._restart_tasks(error)
        self._close_tasks_of(partitions)

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._begin_rebalance()
        self._metrics.tasks_migrated_total += len(self._tasks.reading(partitions))
        self._production.abort()
        self._close_tasks_of(partitions)

    def _begin_rebalance(self) -> None:
        if not self._runner.stopping.is_set():
            self._runner.enter(RunnerState.REBALANCING)

    def _close_tasks_of(self, partitions: frozenset[TopicPartition]) -> None:
        for owned in self._tasks.reading(partitions):
            self._tasks.close(owned)
        for tp in partitions:
            self._drop_input(tp)

    def _drop_input(self, tp: TopicPartition) -> None:
        self._input.drop(tp)
        self._full.discard(tp)

    def _restart_tasks(self, error: TaskMigrated) -> None:
        """Discard everything since the last commit, and restart the tasks from there."""
        self._failing_since_ms = self._check_timeout(self._failing_since_ms, error)
        logger.warning("%s restarts from the last commit: %s", self._runner.name, error)
        self._metrics.tasks_migrated_total += len(self._tasks.running())
        self._production.abort()
        for owned in self._tasks.running():
            for tp in owned.inputs:
                self._drop_input(tp)
            self._tasks.restart(owned)

    def _check_timeout(self, since_ms: int | None, error: MillstreamError) -> int:
        """Return since when an error repeats; raise after `task_timeout_ms`."""
        now_ms = self._clock.monotonic_ms()
        if since_ms is None:
            return now_ms
        if now_ms - since_ms > self._config.task_timeout_ms:
            raise StreamsError(
                f"no progress within {self._config.task_timeout_ms} ms: {error}",
                hint='see "task_timeout_ms"',
            ) from error
        return since_ms

    # --- opening and restoring ----------------------------------------------------------------

    def _open_tasks(self, busy: bool) -> None:
        tasks = self._tasks
        restorer = self._restorer
        if not restorer.is_idle:
            wait_ms = 0
            if restorer.restoring and not busy and not self._shares_thread:
                wait_ms = RESTORE_WAIT_MS if tasks.running() else self._config.poll_ms
            restorer.step(wait_ms)
        for owned in tasks.open_assigned():
            # Records that arrived before the task was open are read again from the committed
            # offset.
            for tp in owned.inputs:
                self._drop_input(tp)
        self._metrics.restored_records_total = restorer.restored_records
        if self._runner.stopping.is_set():
            return
        assignor = self._assignor
        handing_over = assignor.rebalancing or assignor.received.handing_over
        ready = tasks.all_running and not handing_over
        self._runner.enter(RunnerState.RUNNING if ready else RunnerState.REBALANCING)

    # --- processing ---------------------------------------------------------------------------

    def _process(self) -> bool:
        """Process rounds over all tasks until they are empty, or a poll or commit is due."""
        running = self._tasks.running()
        if not running:
            return False
        started_ns = perf_counter_ns()
        rounds_ms = SHARED_ROUNDS_MS if self._shares_thread else ROUNDS_MS
        until_ms = self._clock.monotonic_ms() + rounds_ms
        total = 0
        while True:
            done = sum(self._process_task(owned) for owned in running)
            total += done
            if not done or self._clock.monotonic_ms() >= until_ms or self._is_commit_due():
                break
        self._metrics.processed(total, perf_counter_ns() - started_ns)
        return total > 0

    def _process_task(self, owned: OwnedTask) -> int:
        task = owned.running()
        for tp in owned.inputs:
            self._feed(owned, tp)
        if not task.buffered_total or not task.ready(self._clock.monotonic_ms(), self._lags(owned)):
            return 0
        started_ns = perf_counter_ns()
        done = task.process(ROUND_RECORDS)
        task.metrics.counter(PROCESS_NANOSECONDS).add(perf_counter_ns() - started_ns)
        if done:
            owned.needs_commit = True
        return done

    def _lags(self, owned: OwnedTask) -> Mapping[TopicPartition, int]:
        """The lag of each input, if it is known."""
        lags = owned.lags
        for tp in owned.inputs:
            lag = self._consumer.current_lag(tp)
            if lag is None:
                lags.pop(tp, None)
            else:
                lags[tp] = lag
        return lags

    def _feed(self, owned: OwnedTask, tp: TopicPartition) -> None:
        """Add records for which the task has room; pause a partition that has more."""
        task = owned.running()
        self._input.feed(tp, task.buffered(tp), task.add, partial(self._skip_corrupt_batch, owned))
        if self._input.has_batches(tp):
            if tp not in self._full:
                self._full.add(tp)
                self._consumer.pause([tp])
        elif tp in self._full:
            self._full.discard(tp)
            self._consumer.resume([tp])

    def _skip_corrupt_batch(self, owned: OwnedTask, error: CorruptBatchError) -> None:
        owned.running().skip_corrupt_batch(error)
        owned.needs_commit = True

    def _punctuate(self) -> None:
        for owned in self._tasks.running():
            task = owned.running()
            started_ns = perf_counter_ns()
            ran = task.punctuate_stream_time() + task.punctuate_wall_clock()
            if ran:
                owned.needs_commit = True
                self._metrics.punctuated(ran, perf_counter_ns() - started_ns)

    # --- sending and committing ---------------------------------------------------------------

    def _send_when_due(self) -> None:
        """Send batches that were not filled in time, without waiting for the commit.

        With exactly-once they wait for the commit: they are not visible before.
        """
        output = self._production.output
        if self._config.exactly_once or not output.has_rows:
            self._output_since_ms = None
            return
        now_ms = self._clock.monotonic_ms()
        if self._output_since_ms is None:
            self._output_since_ms = now_ms
        if now_ms >= self._output_since_ms + self._output_linger_ms:
            self._output_since_ms = None
            output.send_buffered()

    def _is_commit_due(self) -> bool:
        if self._clock.monotonic_ms() >= self._commit_at_ms:
            return True
        running = self._tasks.running()
        if any(owned.running().commit_requested for owned in running):
            return True
        return sum(owned.state.dirty_bytes for owned in running) > self._bytes_max

    def _commit_when_due(self) -> None:
        # During a rebalance the broker refuses commits; this one follows in the new generation.
        if self._is_commit_due() and not self._assignor.rebalancing:
            self._commit_now()

    def _commit_now(self) -> None:
        config, metrics = self._config, self._metrics
        tasks = [owned for owned in self._tasks.running() if owned.needs_commit]
        self._commit_at_ms = self._clock.monotonic_ms() + config.commit_interval_ms
        if not tasks:
            return
        started_ns = perf_counter_ns()
        if not self._commit.run(tasks):
            self._commit_at_ms = self._clock.monotonic_ms()  # retry after the next poll
            return
        self._failing_since_ms = None
        metrics.committed(perf_counter_ns() - started_ns)
        output = self._production.output
        metrics.records_produced_total = output.records_sent
        metrics.bytes_produced_total = output.bytes_sent
        self._commit_at_ms = self._clock.monotonic_ms() + config.commit_interval_ms
        self._purge_when_due()

    def _purge_when_due(self) -> None:
        """Delete records of repartition topics that are no longer needed."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._purge_at_ms:
            return
        self._purge_at_ms = now_ms + self._config.repartition_purge_interval_ms
        internal = self._environment.layout.repartition_topics
        before = {
            tp: offset
            for owned in self._tasks.running()
            for tp, offset in owned.committed.items()
            if tp.topic in internal
        }
        if not before:
            return
        try:
            errors = self._environment.admin.delete_records(before).errors
        except (RequestTimeout, ConnectionFailed) as timeout:
            logger.warning("records of repartition topics are deleted later: %s", timeout)
            return
        for tp, error in errors.items():
            logger.warning("records of %s were not deleted: %s", tp, error)

    # --- periodic work ------------------------------------------------------------------------

    def _do_periodic_work(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._rejoin:
            self._rejoin = False
            self._consumer.enforce_rebalance("an instance restarted with an outdated assignment")
        if self._probe_at_ms is not None and now_ms >= self._probe_at_ms:
            self._probe_at_ms = None
            self._consumer.enforce_rebalance("a probing rebalance is due")
        if now_ms < self._slow_checks_at_ms:
            return
        self._slow_checks_at_ms = now_ms + SLOW_CHECKS_MS
        metrics, tasks = self._metrics, self._tasks
        metrics.tasks_active = len(tasks.running())
        metrics.tasks_standby = len(tasks.standbys())
        metrics.restore_remaining = self._restorer.remaining()
        metrics.update_rates(now_ms)
        self._log_summary(now_ms)
        for owned in tasks.running():
            owned.update_ends(self._consumer)
        tasks.report_standby_positions()
        self._environment.clean_directories()
        try:
            if tasks.standbys():
                self._check_standbys()
            if now_ms >= self._patterns_at_ms and has_patterns(self._environment.topology):
                self._patterns_at_ms = now_ms + self._topics_check_ms
                self._match_patterns()
        except (RequestTimeout, ConnectionFailed) as error:
            logger.warning(
                "%s cannot check the cluster now and retries later: %s", self._runner.name, error
            )

    def _log_summary(self, now_ms: int) -> None:
        interval_ms = self._config.log_summary_interval_ms
        if interval_ms > 0 and now_ms >= self._summary_at_ms:
            self._summary_at_ms = now_ms + interval_ms
            logger.info(
                "%s: processed %d records, ran %d punctuators and committed %d times "
                "since the last summary",
                self._runner.name,
                *self._metrics.since_last_summary(),
            )

    def _check_standbys(self) -> None:
        sources = self._restorer.source_partitions()
        if sources:
            committed = self._consumer.committed(sources)
            self._restorer.raise_limits(
                {tp: position.offset for tp, position in committed.items() if position is not None}
            )
        warming = [
            owned
            for task in self._assignor.received.warming
            if (owned := self._tasks.owned(task)) is not None
        ]
        ends = self._environment.end_positions(
            self._environment.layout, [each.task_id for each in warming]
        )
        acceptable = self._config.acceptable_recovery_lag
        if warming and all(
            ends[each.task_id] - each.position_sum() <= acceptable for each in warming
        ):
            self._consumer.enforce_rebalance("a warm-up standby has caught up")

    def _match_patterns(self) -> None:
        """Subscribe to new topics that match a pattern."""
        counts = existing_topics(self._environment.admin)
        if (
            self._environment.layout_for(counts).subscription()
            != self._environment.layout.subscription()
        ):
            self._environment.refresh_layout()
        topics = self._environment.layout.subscription()
        if topics != self._consumer.subscription():
            listener = RebalanceListener(self._assigned, self._revoked, self._lost)
            self._consumer.subscribe(topics, listener)
