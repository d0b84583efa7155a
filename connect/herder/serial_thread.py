"""SerialThread: runs functions one after another, in its own thread."""

import heapq
import itertools
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from broker import concurrency
from broker.clock import Clock

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SerialThread:
    """Any thread may submit functions, optionally with a delay."""

    def __init__(self, name: str, clock: Clock) -> None:
        """The first function starts the thread."""
        self._name = name
        self._clock = clock
        self._changed = concurrency.Condition()
        self._numbers = itertools.count()
        # The due time, a sequence number, and functions to run and to cancel it.
        self._work: list[tuple[int, int, Callable[[], None], Callable[[], bool]]] = []
        self._thread: concurrency.Thread | None = None
        self._closed = False

    def submit(self, function: Callable[[], T], *, delay_ms: int = 0) -> "Future[T]":
        """Run a function; the future is cancelled if the thread is closed first."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        with self._changed:
            if self._closed:
                future.cancel()
                return future
            due_ms = self._clock.monotonic_ms() + delay_ms if delay_ms else 0
            heapq.heappush(self._work, (due_ms, next(self._numbers), run, future.cancel))
            if self._thread is None:
                self._thread = concurrency.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return future

    def is_idle(self) -> bool:
        """Whether no function is due; called in the thread itself."""
        with self._changed:
            return not any(work[0] == 0 for work in self._work)

    def close(self) -> None:
        """Accept no more functions; pending ones are dropped, a running one finishes."""
        with self._changed:
            self._closed = True
            dropped, self._work = self._work, []
            self._changed.notify_all()
        for _, _, _, cancel in dropped:
            cancel()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._closed:
                wait_ms = None
                if self._work:
                    wait_ms = self._work[0][0] - self._clock.monotonic_ms()
                    if wait_ms <= 0:
                        return heapq.heappop(self._work)[2]
                self._clock.wait(self._changed, wait_ms)
        return None
