"""ResponseThread: one thread that completes the futures of an embedded broker's delayed responses.

Such a response arrives under the broker's lock. It is passed to this thread, which completes the
future outside that lock, so that callbacks may send again. Several transports may share it.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from broker import concurrency
from broker.clock import Clock, SystemClock
from broker.errors import ClientError, ConnectionFailed, MillstreamError, RequestTimeout
from broker.model import FileSlice
from broker.pending import Pending
from broker.protocol.messages.fetch import FetchResponse

WAIT_MS_MAX = 60_000


class ResponseSource(Protocol):
    """The interface of a broker that the thread needs."""

    def abandon(self, pending: Pending[object]) -> None:
        """The caller no longer needs this response."""
        ...

    def when_done(self, pending: Pending[object], callback: Callable[[object], None]) -> None:
        """Call back, under the broker's lock, when a pending response is complete."""
        ...


class ExpectedResponse(NamedTuple):
    """An expected response: its owner, its broker, and the error message if it is late."""

    owner: object
    broker: ResponseSource
    pending: Pending[object]
    late: str


Waiting = tuple[Future[object], ExpectedResponse]


class ResponseThread:
    """Completes futures on responses, timeouts and closing; the first wait starts it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._changed = concurrency.Condition()
        self._owners: set[object] = set()  # never iterated over
        # Deadlines outlive responses: they refer to waits by number, to keep no response in memory.
        self._numbers = itertools.count()
        self._answers: deque[tuple[int, object]] = deque()
        self._waiting: dict[int, Waiting] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._thread: concurrency.Thread | None = None
        self._closed = False

    def join(self, owner: object) -> None:
        """Register an owner of waits."""
        with self._changed:
            if self._closed:
                raise ClientError("the client is closed")
            self._owners.add(owner)

    def wait_for(self, expected: ExpectedResponse, future: Future[object], timeout_ms: int) -> None:
        """Complete a future when its response comes or its timeout expires."""
        with self._changed:
            if expected.owner not in self._owners:
                raise ClientError("the client is closed")
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            number = next(self._numbers)
            self._waiting[number] = (future, expected)
            heapq.heappush(self._deadlines, (deadline_ms, number))
            if self._thread is None:
                self._thread = concurrency.Thread(
                    target=self._run, name="millstream-embedded", daemon=True
                )
                self._thread.start()
            elif self._deadlines[0][1] == number:
                self._changed.notify()  # it waits for a later deadline

        def arrived(answer: object) -> None:
            with self._changed:
                self._answers.append((number, answer))
                self._changed.notify()

        expected.broker.when_done(expected.pending, arrived)

    def leave(self, owner: object) -> None:
        """Fail the pending responses of an owner, and unregister it."""
        with self._changed:
            self._owners.discard(owner)
            left = [number for number, each in self._waiting.items() if each[1].owner is owner]
            failed = [self._waiting.pop(number) for number in left]
        _fail(failed)

    def close(self) -> None:
        """Fail all pending responses and end the thread."""
        with self._changed:
            self._closed = True
            self._owners.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and concurrency.current_thread() is not thread:
            thread.join()

    def _run(self) -> None:
        while not self._closed:
            for future, answer in self._take():
                complete(future, answer)
        with self._changed:
            left, self._waiting = self._waiting, {}
        _fail(left.values())

    def _take(self) -> list[tuple[Future[object], object]]:
        """Wait for responses or timeouts; returns the futures to complete."""
        with self._changed:
            if not self._answers and not self._closed:
                self._clock.wait(self._changed, self._wait_ms())
            decided = [
                (waiting[0], answer)
                for number, answer in self._answers
                if (waiting := self._waiting.pop(number, None)) is not None
            ]
            self._answers.clear()
            late = self._take_late()
        for future, expected in late:
            expected.broker.abandon(expected.pending)
            decided.append((future, RequestTimeout(expected.late)))
        return decided

    def _take_late(self) -> list[Waiting]:
        late = []
        now_ms = self._clock.monotonic_ms()
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            waiting = self._waiting.pop(heapq.heappop(self._deadlines)[1], None)
            if waiting is not None:
                late.append(waiting)
        return late

    def _wait_ms(self) -> int:
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heapq.heappop(self._deadlines)
        if not self._deadlines:
            return WAIT_MS_MAX
        return max(0, min(WAIT_MS_MAX, self._deadlines[0][0] - self._clock.monotonic_ms()))


def _fail(left: Iterable[Waiting]) -> None:
    for future, expected in left:
        expected.broker.abandon(expected.pending)
        future.set_exception(ConnectionFailed("the client was closed"))


def complete(future: Future[object], answer: object) -> None:
    """Complete a future with a response, whose records may still have to be read."""
    if isinstance(answer, MillstreamError):
        future.set_exception(answer)
        return
    try:
        result = _loaded(answer)
    except Exception as error:
        # Over the network the broker would close the connection.
        future.set_exception(ConnectionFailed(f"the embedded broker cannot read records: {error}"))
    else:
        future.set_result(result)


def _loaded(answer: object) -> object:
    """The response with record bytes in memory, as received over the network."""
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for partition in topic.partitions:
                if isinstance(partition.records, FileSlice):
                    partition.records = memoryview(partition.records.read())
    return answer
