"""EmbeddedTransport: requests to a broker in the same process, as calls; nothing is encoded.

A request is handled in the thread that sends it. An answer that comes later (a long poll, a group
that is not complete) arrives under the broker's lock: it is passed to a thread of the transport,
which completes the future outside that lock, so that callbacks may send again.
"""

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Protocol

from broker.client.transport import Node
from broker.clock import Clock, SystemClock
from broker.errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    MillstreamError,
    RequestTimeout,
    UnsupportedVersion,
)
from broker.model import ConnectionInfo, FileSlice
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.wire import SPECS

WAIT_MS_MAX = 60_000


class RequestHandler(Protocol):
    """What the transport needs of a broker."""

    def handle(
        self, api_key: ApiKey, version: int, request: object, connection: ConnectionInfo
    ) -> object:
        """Answer a request: a response, a Pending one, or None."""
        ...

    def abandon(self, pending: Pending[object]) -> None:
        """Nobody waits for this answer any more."""
        ...

    def when_done(self, pending: Pending[object], callback: Callable[[object], None]) -> None:
        """Call back, under the broker's lock, when a pending answer is there."""
        ...


class EmbeddedTransport:
    """Requests to a broker in this process; see Transport. The broker is not closed with it."""

    def __init__(
        self,
        broker: RequestHandler,
        *,
        client_id: str = "millstream",
        clock: Clock | None = None,
    ) -> None:
        """Speak to this broker under a client id."""
        self._broker = broker
        self._clock = clock or SystemClock()
        self._connection = ConnectionInfo(client_id=client_id)
        self._nodes: list[Node] = []
        self._changed = threading.Condition()
        self._answers: deque[tuple[Future[object], object]] = deque()
        self._waiting: dict[Future[object], Pending[object]] = {}
        self._deadlines: list[tuple[int, int, Future[object], str]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def nodes(self) -> list[Node]:
        """The broker, once metadata told about it."""
        return list(self._nodes)

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Remember the broker; there is only one way to it."""
        self._nodes = list(nodes)

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Handle a request; see Transport."""
        if self._closed:
            raise ClientError("the client is closed")
        spec = SPECS[type(request)]
        assert spec.api_key is not None, f"{type(request).__name__} is not a request"
        version = spec.versions.last if version_max is None else version_max
        if isinstance(request, ProduceRequest):
            request = _with_own_records(request)
        future: Future[object] = Future()
        future.set_running_or_notify_cancel()
        try:
            answer = self._broker.handle(
                spec.api_key, min(version, spec.versions.last), request, self._connection
            )
            if isinstance(answer, Pending):
                self._wait_for(answer, future, timeout_ms, type(request).__name__)
                return future
        except UnsupportedVersion as error:
            future.set_exception(error)
            return future
        except BrokerError as error:
            # There is no way to answer: what would be a closed connection over the network.
            future.set_exception(ConnectionFailed(f"the embedded broker gave up: {error}"))
            return future
        future.set_result(_loaded(answer))
        return future

    def close(self) -> None:
        """Fail what still waits."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and threading.current_thread() is not thread:
            thread.join()

    def _wait_for(
        self, pending: Pending[object], future: Future[object], timeout_ms: int, name: str
    ) -> None:
        with self._changed:
            if self._closed:
                raise ClientError("the client is closed")
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            self._waiting[future] = pending
            late = f"{name} was not answered in {timeout_ms} ms"
            heapq.heappush(self._deadlines, (deadline_ms, next(self._order), future, late))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="millstream-embedded", daemon=True
                )
                self._thread.start()

        def arrived(answer: object) -> None:
            with self._changed:
                self._answers.append((future, answer))
                self._changed.notify()

        self._broker.when_done(pending, arrived)

    def _run(self) -> None:
        while not self._closed:
            for future, answer in self._take():
                if isinstance(answer, MillstreamError):
                    future.set_exception(answer)
                else:
                    future.set_result(_loaded(answer))
        with self._changed:
            left, self._waiting = self._waiting, {}
        for future, pending in left.items():
            self._broker.abandon(pending)
            future.set_exception(ConnectionFailed("the client was closed"))

    def _take(self) -> list[tuple[Future[object], object]]:
        """Wait for answers or deadlines; return the futures that are decided."""
        with self._changed:
            if not self._answers and not self._closed:
                self._clock.wait(self._changed, self._wait_ms())
            decided = [pair for pair in self._answers if self._waiting.pop(pair[0], None)]
            self._answers.clear()
            late = self._take_late()
        for future, pending, error in late:
            self._broker.abandon(pending)
            decided.append((future, error))
        return decided

    def _take_late(self) -> list[tuple[Future[object], Pending[object], RequestTimeout]]:
        late = []
        now_ms = self._clock.monotonic_ms()
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, _, future, message = heapq.heappop(self._deadlines)
            pending = self._waiting.pop(future, None)
            if pending is not None:
                late.append((future, pending, RequestTimeout(message)))
        return late

    def _wait_ms(self) -> int:
        while self._deadlines and self._deadlines[0][2] not in self._waiting:
            heapq.heappop(self._deadlines)
        if not self._deadlines:
            return WAIT_MS_MAX
        return max(0, min(WAIT_MS_MAX, self._deadlines[0][0] - self._clock.monotonic_ms()))


def _with_own_records(request: ProduceRequest) -> ProduceRequest:
    """The request with copies of its batches: the broker writes offsets into them."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if isinstance(records, bytes | memoryview):
                partition.records = memoryview(bytearray(records))
    return request


def _loaded(answer: object) -> object:
    """The answer with record bytes in memory, as a frame would bring them."""
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for partition in topic.partitions:
                if isinstance(partition.records, FileSlice):
                    partition.records = memoryview(partition.records.read())
    return answer
