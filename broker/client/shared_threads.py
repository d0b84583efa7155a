"""SharedThreads: runs many pieces of work in turns on a few threads.

             a turn returns a wait           wait over, or `wake`
    READY --------------------------> RESTING ----------------> READY
      |  a turn returns None
      +--------------------------> ENDED

A turn is a function that does what can be done now and returns the time in milliseconds until its
next turn, or None when the work has ended. Turns of one piece of work never run at the same time;
each may run in another thread.
"""

import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum

from broker import concurrency
from broker.clock import Clock, SystemClock

logger = logging.getLogger(__name__)

REST_MS_MAX = 60_000
NEVER = 1 << 62
CLOSE_TIMEOUT_MS = 30_000
SENDER_THREADS = 2  # while one waits for a coordinator, the other runs
Turn = Callable[[], int | None]


class _Stage(Enum):
    READY = "ready"
    RUNNING = "running"
    RESTING = "resting"
    ENDED = "ended"


class Work:
    """One piece of work; any thread may call its methods."""

    __slots__ = ("_ended", "_threads", "due_ms", "ident", "stage", "turn", "woken")

    def __init__(self, turn: Turn, threads: "SharedThreads") -> None:
        self.turn = turn
        self.stage = _Stage.READY
        self.due_ms = 0
        self.woken = False  # during a turn: the next turn follows immediately
        self.ident: int | None = None  # of the thread that runs a turn now
        self._threads = threads
        self._ended = concurrency.Event()

    def wake(self) -> None:
        """Run the next turn now."""
        self._threads.wake(self)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False on a timeout. Inside a turn it does not wait."""
        return self.is_current() or self._ended.wait(timeout_s)

    def is_current(self) -> bool:
        """Whether this thread runs a turn of this work."""
        return self.ident == concurrency.get_ident()

    def end(self) -> None:
        """Run no more turns."""
        self.stage = _Stage.ENDED
        self._ended.set()


class SharedThreads:
    """Threads that start on demand and run until `close`."""

    def __init__(self, name: str, count: int, clock: Clock | None = None) -> None:
        """`count` is the maximum number of threads."""
        self._name = name
        self._count = count
        self._clock = clock or SystemClock()
        self._changed = concurrency.Condition()
        self._ready: deque[Work] = deque()
        self._resting: list[tuple[int, int, Work]] = []  # a heap; stale entries are skipped
        self._order = itertools.count()
        self._threads: list[concurrency.Thread] = []
        self._idle = 0
        self._keeps_time_ms = NEVER  # until when one idle thread waits; others wait forever
        self._closed = False

    def run(self, turn: Turn) -> Work:
        """Add a piece of work."""
        work = Work(turn, self)
        with self._changed:
            if self._closed:
                raise RuntimeError(f"the threads of {self._name} are closed")
            self._make_ready(work)
        return work

    @property
    def waiting(self) -> int:
        """The number of pieces of work that wait for a thread."""
        return len(self._ready)

    def wake(self, work: Work) -> None:
        """Run the next turn of some work now."""
        if work.stage is _Stage.READY:
            return  # another turn follows anyway
        with self._changed:
            if work.stage is _Stage.RESTING:
                self._make_ready(work)
            elif work.stage is _Stage.RUNNING:
                work.woken = True

    def close(self) -> None:
        """End the threads after the running turns; pending work is dropped.

        Waits for a turn at most CLOSE_TIMEOUT_MS.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            threads = list(self._threads)
        deadline_ms = self._clock.monotonic_ms() + CLOSE_TIMEOUT_MS
        for thread in threads:
            if thread is not concurrency.current_thread():
                thread.join(max(0, deadline_ms - self._clock.monotonic_ms()) / 1000)
        with self._changed:
            left = [*self._ready, *(work for _, _, work in self._resting)]
            self._ready.clear()
            self._resting.clear()
        for work in left:
            work.end()

    # --- inside, holding the lock -------------------------------------------------------------

    def _make_ready(self, work: Work) -> None:
        work.stage = _Stage.READY
        self._ready.append(work)
        if self._idle:
            self._changed.notify()
        elif len(self._threads) < self._count:
            name = f"{self._name}-{len(self._threads) + 1}"
            thread = concurrency.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _take(self) -> Work | None:
        """Wait for the next piece of work; None at the end."""
        while not self._closed:
            wait_ms = self._take_due()
            if self._ready:
                work = self._ready.popleft()
                work.stage = _Stage.RUNNING
                work.woken = False
                work.ident = concurrency.get_ident()
                if self._idle and (self._ready or self._needs_timekeeper()):
                    self._changed.notify()
                return work
            self._wait(wait_ms)
        return None

    def _needs_timekeeper(self) -> bool:
        """Whether work rests, and no idle thread waits with a timeout."""
        return self._keeps_time_ms == NEVER and bool(self._resting)

    def _wait(self, wait_ms: int) -> None:
        """Wait for work; only one idle thread waits with a timeout, for work that rests."""
        until_ms = self._clock.monotonic_ms() + wait_ms
        keeps_time = until_ms < self._keeps_time_ms
        self._idle += 1
        if keeps_time:
            self._keeps_time_ms = until_ms
        self._clock.wait(self._changed, wait_ms if keeps_time else None)
        if keeps_time and self._keeps_time_ms == until_ms:
            self._keeps_time_ms = NEVER
        self._idle -= 1

    def _take_due(self) -> int:
        """Make due work ready; returns the time until more is due."""
        now_ms = self._clock.monotonic_ms()
        resting = self._resting
        while resting:
            due_ms, _, work = resting[0]
            if work.stage is _Stage.RESTING and work.due_ms == due_ms:
                if due_ms > now_ms:
                    return due_ms - now_ms
                work.stage = _Stage.READY
                self._ready.append(work)
            heapq.heappop(resting)
        return REST_MS_MAX

    def _put_back(self, work: Work, rest_ms: int | None) -> None:
        work.ident = None
        if rest_ms is None:
            work.end()
        elif rest_ms <= 0 or work.woken:
            work.stage = _Stage.READY
            self._ready.append(work)
        else:
            work.stage = _Stage.RESTING
            work.due_ms = self._clock.monotonic_ms() + rest_ms
            heapq.heappush(self._resting, (work.due_ms, next(self._order), work))

    # --- the threads --------------------------------------------------------------------------

    def _run(self) -> None:
        work: Work | None = None
        rest_ms: int | None = None
        while True:
            with self._changed:
                if work is not None:
                    self._put_back(work, rest_ms)
                work = self._take()
            if work is None:
                return
            try:
                rest_ms = work.turn()
            except Exception:
                # The owner of the work must not let this happen; the other work continues.
                logger.exception("a worker of %s failed and ends", self._name)
                rest_ms = None


class ClientThreads:
    """Threads that all clients of a process share, instead of having their own."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.heartbeats = SharedThreads("shared-heartbeat", 1, clock)
        self.senders = SharedThreads("shared-producer", SENDER_THREADS, clock)

    def close(self) -> None:
        """Stop the threads; close the clients first."""
        self.senders.close()
        self.heartbeats.close()
