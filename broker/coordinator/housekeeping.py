"""Housekeeping: the threads that run timers, flush, write the catalog, apply retention, compact."""

import logging
from collections.abc import Callable
from functools import partial

from broker import concurrency
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator.topics import TopicCatalog
from broker.storage.data_directory import DataDirectory
from broker.timers import Timers

logger = logging.getLogger(__name__)

TIMER_WAIT_MS = 60_000
# Settings may request waits longer than threads support; this one is practically endless.
PAUSE_MS_MAX = 30 * 24 * 3_600_000
FLUSH_CHECK_MS = 1_000


class Housekeeping:
    """Background threads of a broker on a real clock; all end at `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        timers: Timers,
        storage: DataDirectory,
        topics: TopicCatalog,
        lock: concurrency.RLock,
    ) -> None:
        """No thread starts before `start`."""
        self._config = config
        self._clock = clock
        self._timers = timers
        self._storage = storage
        self._topics = topics
        self._lock = lock
        self._wake = concurrency.Condition()
        self._stopping = False
        self._threads: list[concurrency.Thread] = []

    def start(self) -> None:
        """Start all threads."""
        config, storage = self._config, self._storage
        jobs: list[tuple[str, int, Callable[[], None]]] = [
            ("flush", FLUSH_CHECK_MS, storage.flush_due),
            ("retention", config.log_retention_check_interval_ms, storage.apply_retention),
            ("checkpoint", config.checkpoint_interval_ms, storage.checkpoint),
        ]
        self._run("timers", self._run_timers)
        self._run("catalog", self._write_changes)
        for name, interval_ms, job in jobs:
            self._run(name, partial(self._repeat, job, max(interval_ms, 1)))
        if config.log_cleaner_enable:
            self._run("cleaner", partial(self._repeat, self._clean, config.log_cleaner_backoff_ms))

    def stop(self) -> None:
        """End all threads; returns when they have ended."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._timers.wake()
        self._topics.has_changes.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, body: Callable[[], None]) -> None:
        thread = concurrency.Thread(target=body, name=f"broker-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write_changes(self) -> None:
        while not self._stopping:
            self._topics.has_changes.wait()
            self._guarded(self._topics.write_changes)

    def _run_timers(self) -> None:
        while not self._stopping:
            self._timers.wait_until_due(TIMER_WAIT_MS)
            # One at a time: requests need not wait for all timers that are due.
            while not self._stopping and self._run_next_timer():
                pass

    def _run_next_timer(self) -> bool:
        with self._lock:
            return self._timers.run_next()

    def _repeat(self, job: Callable[[], object], interval_ms: int) -> None:
        while True:
            with self._wake:
                if not self._stopping:
                    self._clock.wait(self._wake, min(interval_ms, PAUSE_MS_MAX))
                if self._stopping:
                    return
            self._guarded(job)

    def _clean(self) -> None:
        """Compact while there is a log that needs it."""
        while not self._stopping and self._storage.compact_one():
            pass

    def _guarded(self, job: Callable[[], object]) -> None:
        # A job that fails, for example on a full disk, runs again at its next time.
        try:
            job()
        except Exception:
            logger.exception("housekeeping failed")
