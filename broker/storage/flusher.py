"""Flusher: fsyncs logs outside the broker's lock; one fsync serves all who wait for it."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from broker.errors import StorageError
from broker.storage.files import FileSystem
from broker.storage.flushing import FlushTicket
from broker.storage.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)
WORKERS_MAX = 16
ROUND_LOGS_MAX = 64

Durable = Callable[[], None]
Failed = Callable[[StorageError], None]


class Flusher:
    """Knows the logs with something to flush, and who waits for it.

    With a thread (`start`) every append is fsynced as soon as the one before it is done: group
    commit. Without, `flush` is called when the policy of the logs says so.
    """

    def __init__(self, lock: threading.RLock, files: FileSystem) -> None:
        """Nothing to flush."""
        self._changed = threading.Condition(lock)
        self._files = files
        self._dirty: dict[PartitionLog, None] = {}
        # In the order of their offsets, which is that of the appends.
        self._waiters: dict[PartitionLog, deque[tuple[int, Durable, Failed]]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    def needs_flush(self, log: PartitionLog) -> None:
        """Take note of a log that was written to."""
        with self._changed:
            self._dirty[log] = None
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
        """Drop a log that is being deleted; who waits for it is told."""
        self._dirty.pop(log, None)
        gone = log.failure = StorageError("the partition was deleted", at=str(log.topic_partition))
        for _, _, failed in self._waiters.pop(log, ()):
            failed(gone)

    def start(self) -> None:
        """Flush in a thread of its own from now on."""
        self._thread = threading.Thread(target=self._run, name="log-flusher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is dirty stays so."""
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
                while not self._dirty and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
            self.flush()

    def flush(self, wanted: Callable[[PartitionLog], bool] = lambda _: True) -> int:
        """Flush the dirty logs that are wanted; how many there were."""
        count = 0
        while True:
            with self._changed:
                # A few at a time: what is flushed is held open, and files are limited.
                logs = list(islice(filter(wanted, self._dirty), ROUND_LOGS_MAX))
                for log in logs:
                    del self._dirty[log]
                tickets = [self._begin(log) for log in logs]
                for log, ticket in zip(logs, tickets, strict=True):
                    if ticket is None:  # somebody else has flushed it meanwhile
                        self._answer(log)
            if not logs:
                return count
            self._sync_all([ticket for ticket in tickets if ticket is not None])
            count += len(logs)

    def _begin(self, log: PartitionLog) -> FlushTicket | None:
        try:
            return log.begin_flush()
        except OSError as error:
            self._failed(log, error)
            return None

    def _sync_all(self, tickets: list[FlushTicket]) -> None:
        if len(tickets) == 1:
            self._finish(tickets[0], self._sync(tickets[0]))
        elif tickets:
            # The file system commits what many wait for at once together.
            if self._pool is None:
                self._pool = ThreadPoolExecutor(WORKERS_MAX, thread_name_prefix="log-fsync")
            for ticket, error in zip(tickets, self._pool.map(self._sync, tickets), strict=True):
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
            if error is not None:
                self._failed(log, error)
                return
            try:
                log.finish_flush(ticket)
            except Exception:
                # One who listens has failed; those who wait are answered all the same.
                LOGGER.exception("cannot tell all of what is durable in %s", log.topic_partition)
            self._answer(log)

    def _answer(self, log: PartitionLog) -> None:
        """Call back those whose records are on the disk."""
        waiters = self._waiters.get(log)
        while waiters and waiters[0][0] <= log.durable_offset:
            callback = waiters.popleft()[1]
            try:
                callback()
            except Exception:
                # The thread that all others wait for must go on.
                LOGGER.exception("cannot answer what is durable in %s", log.topic_partition)
        if not waiters:
            self._waiters.pop(log, None)

    def _failed(self, log: PartitionLog, error: OSError) -> None:
        is_news = log.failure is None  # one that is being deleted has lost its folder, too
        failure = log.fail(error)
        if is_news:
            LOGGER.error("%s", failure)
        for _, _, failed in self._waiters.pop(log, ()):
            failed(failure)

    def flush_all(self, logs: Iterable[PartitionLog]) -> None:
        """Flush these logs, dirty or not."""
        with self._changed:
            for log in logs:
                self._dirty[log] = None
        self.flush()
