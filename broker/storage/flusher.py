"""Flusher: fsyncs logs outside the broker's lock; one fsync serves all waiting requests."""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from broker import concurrency
from broker.errors import StorageError
from broker.files import FileSystem, NotOpened
from broker.storage.flushing import FlushTicket
from broker.storage.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)
WORKERS_MAX = 16
ROUND_LOGS_MAX = 64
RETRY_SECONDS = 0.2

Durable = Callable[[], None]
Failed = Callable[[StorageError], None]


def unanswered(_: StorageError) -> None:
    """Ignore a failure: the request times out by itself."""


class Flusher:
    """The logs with unflushed data, and the requests that wait for a flush.

    With a thread (`start`) every append is flushed as soon as the previous flush is done: group
    commit. Without, `flush` is called as the logs' settings require, and a thread is started for
    the first log that cannot wait (`flush_soon`). A log is flushed by one thread at a time.
    """

    def __init__(self, lock: concurrency.RLock, files: FileSystem) -> None:
        self._changed = concurrency.Condition(lock)
        self._files = files
        self._dirty: dict[PartitionLog, None] = {}
        self._urgent: dict[PartitionLog, None] = {}
        # Dirty logs whose files could not be opened; they are retried.
        self._postponed: dict[PartitionLog, None] = {}
        # In the order of their offsets, which is the order of the appends.
        self._waiters: dict[PartitionLog, deque[tuple[int, Durable, Failed]]] = {}
        self._pool: concurrency.ThreadPoolExecutor | None = None
        self._thread: concurrency.Thread | None = None
        self._takes_all = False  # the thread flushes all logs, not only those that cannot wait
        self._stopping = False

    def needs_flush(self, log: PartitionLog) -> None:
        """Register a log that was written to."""
        with self._changed:
            self._dirty[log] = None
            self._changed.notify()

    def flush_soon(self, log: PartitionLog) -> None:
        """Flush a log now, in a thread."""
        with self._changed:
            self._dirty[log] = None
            self._urgent[log] = None
            if self._thread is None and not self._stopping:
                self._start_thread()
            self._changed.notify()

    def when_durable(
        self, log: PartitionLog, offset: int, callback: Durable, failed: Failed
    ) -> None:
        """Call back, under the lock, once all records below an offset are on the disk."""
        if log.durable_offset >= offset:
            callback()
        elif log.failure is not None:
            failed(log.failure)
        else:
            self._waiters.setdefault(log, deque()).append((offset, callback, failed))

    def forget(self, log: PartitionLog) -> None:
        """Remove a log that is being deleted; its waiters are notified."""
        self._dirty.pop(log, None)
        self._postponed.pop(log, None)
        self._urgent.pop(log, None)
        gone = log.failure = StorageError("the partition was deleted", at=str(log.topic_partition))
        for _, _, failed in self._waiters.pop(log, ()):
            failed(gone)

    def start(self) -> None:
        """Flush in a separate thread from now on."""
        self._takes_all = True
        self._start_thread()

    def _start_thread(self) -> None:
        self._thread = concurrency.Thread(target=self._run, name="log-flusher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; dirty logs stay dirty."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopping and all(
                    log.flushing.is_under_way for log in self._candidates()
                ):
                    if not self._changed.wait(RETRY_SECONDS if self._postponed else None):
                        break  # files may be opened again, without a notification
                if self._stopping:
                    return
            self._flush_round(lambda: self._candidates())

    def _candidates(self) -> dict[PartitionLog, None]:
        """The logs that the thread flushes."""
        return self._dirty if self._takes_all else self._urgent

    def flush(self, wanted: Callable[[PartitionLog], bool] = lambda _: True) -> int:
        """Flush the requested dirty logs that no other thread flushes; return their number."""
        return self._flush_round(lambda: filter(wanted, self._dirty))

    def _flush_round(self, candidates: Callable[[], Iterable[PartitionLog]]) -> int:
        count = 0
        with self._changed:
            self._dirty.update(self._postponed)
            self._postponed.clear()
        while logs := self._flush_some(candidates):
            count += len(logs)
        return count

    def _flush_some(self, candidates: Callable[[], Iterable[PartitionLog]]) -> list[PartitionLog]:
        """Flush some of the candidates, which are read under the lock; returns the flushed ones."""
        with self._changed:
            # A few at a time: files stay open while they are flushed, and descriptors are limited.
            logs = list(
                islice(
                    (log for log in candidates() if not log.flushing.is_under_way), ROUND_LOGS_MAX
                )
            )
            for log in logs:
                self._dirty.pop(log, None)
                self._urgent.pop(log, None)
            tickets = [log.flushing.begin() for log in logs]
            for log, ticket in zip(logs, tickets, strict=True):
                if ticket is None:  # another thread has flushed it meanwhile
                    self._answer(log)
        self._sync_all([ticket for ticket in tickets if ticket is not None])
        return logs

    def _sync_all(self, tickets: list[FlushTicket]) -> None:
        if len(tickets) == 1:
            self._finish(tickets[0], self._sync(tickets[0]))
        elif tickets:
            # The file system commits the data of all waiting calls together.
            with self._changed:
                if self._pool is None:
                    self._pool = concurrency.ThreadPoolExecutor(
                        WORKERS_MAX, thread_name_prefix="log-fsync"
                    )
                pool = self._pool
            own, *others = tickets
            errors = pool.map(self._sync, others)
            self._finish(own, self._sync(own))
            for ticket, error in zip(others, errors, strict=True):
                self._finish(ticket, error)

    def _sync(self, ticket: FlushTicket) -> OSError | None:
        try:
            ticket.sync(self._files)
        except OSError as error:
            return error
        return None

    def _finish(self, ticket: FlushTicket, error: OSError | None) -> None:
        with self._changed:
            log = ticket.log
            self._changed.notify_all()  # wakes threads that wait for the ticket
            if isinstance(error, NotOpened):
                self._postpone(ticket, error)
                return
            if error is not None:
                self._failed(log, error)
                return
            try:
                log.flushing.finish(ticket)
            except Exception:
                # A listener has failed; the waiters are called nevertheless.
                LOGGER.exception(
                    "cannot notify all waiters of what is durable in %s", log.topic_partition
                )
            self._answer(log)

    def _answer(self, log: PartitionLog) -> None:
        """Call back for the records that are on disk."""
        waiters = self._waiters.get(log)
        while waiters and waiters[0][0] <= log.durable_offset:
            callback = waiters.popleft()[1]
            try:
                callback()
            except Exception:
                # All other waiters depend on this thread, so it must continue.
                LOGGER.exception(
                    "cannot complete requests that wait for %s to be durable", log.topic_partition
                )
        if not waiters:
            self._waiters.pop(log, None)

    def _postpone(self, ticket: FlushTicket, error: NotOpened) -> None:
        """No data is known to be lost; the waiters continue to wait."""
        log = ticket.log
        log.flushing.abandon(ticket)
        if log.failure is None:
            if not self._postponed:
                LOGGER.warning("cannot flush %s now, trying again: %s", log.topic_partition, error)
            self._postponed[log] = None
            if log in self._waiters:
                self._urgent[log] = None

    def _failed(self, log: PartitionLog, error: OSError) -> None:
        is_news = log.failure is None  # a log that is being deleted has lost its folder, too
        failure = log.fail(error)
        if is_news:
            LOGGER.error("%s", failure)
        for _, _, failed in self._waiters.pop(log, ()):
            failed(failure)

    def flush_all(self, logs: Iterable[PartitionLog]) -> None:
        """Flush these logs, dirty or not, after flushes that are running."""
        unflushed = dict.fromkeys(logs)
        while unflushed:
            flushed = self._flush_some(lambda: unflushed)
            for log in flushed:
                del unflushed[log]
            if unflushed and not flushed:
                with self._changed:
                    self._changed.wait(RETRY_SECONDS)
