"""SimulatedLoop: the part of asyncio's event loop that servers use, in virtual time."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE
from typing import cast

from broker.sockets import Socket
from millstream.simulation.scheduler import Scheduler
from millstream.simulation.sockets import SimulatedSelector

Callback = Callable[..., object]


class SimulatedLoop:
    """Calls callbacks when sockets are ready or time has passed; see EventLoop of broker.server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._selector = SimulatedSelector(scheduler)
        self._watched: dict[Socket, tuple[Callback | None, Callback | None]] = {}
        self._soon: deque[tuple[Callback, tuple[object, ...]]] = deque()
        self._later: list[tuple[int, int, Callback, tuple[object, ...]]] = []
        self._order = itertools.count()
        self._is_stopping = False

    # --- sockets --------------------------------------------------------------------------------

    def add_reader(self, fd: Socket, callback: Callback, /) -> None:
        """Call back whenever bytes can be received."""
        self._watch(fd, callback, self._watched.get(fd, (None, None))[1])

    def remove_reader(self, fd: Socket, /) -> bool:
        """Remove the callback."""
        before = self._watched.get(fd, (None, None))
        self._watch(fd, None, before[1])
        return before[0] is not None

    def add_writer(self, fd: Socket, callback: Callback, /) -> None:
        """Call back whenever bytes can be sent."""
        self._watch(fd, self._watched.get(fd, (None, None))[0], callback)

    def remove_writer(self, fd: Socket, /) -> bool:
        """Remove the callback."""
        before = self._watched.get(fd, (None, None))
        self._watch(fd, before[0], None)
        return before[1] is not None

    def _watch(self, fd: Socket, reader: Callback | None, writer: Callback | None) -> None:
        was_watched = fd in self._watched
        events = (EVENT_READ if reader else 0) | (EVENT_WRITE if writer else 0)
        if not events:
            if was_watched:
                del self._watched[fd]
                self._selector.unregister(fd)
            return
        self._watched[fd] = (reader, writer)
        if was_watched:
            self._selector.modify(fd, events)
        else:
            self._selector.register(fd, events)

    # --- time -----------------------------------------------------------------------------------

    def call_soon(self, callback: Callback, /, *args: object) -> None:
        """Call back after everything that is ready now."""
        self._soon.append((callback, args))

    def call_soon_threadsafe(self, callback: Callback, /, *args: object) -> None:
        """Like `call_soon`, from another thread."""
        if self._is_stopping:
            raise RuntimeError("the event loop is closed")
        self._soon.append((callback, args))
        self._selector.interrupt()

    def call_later(self, delay: float, callback: Callback, /, *args: object) -> None:
        """Call back after this many seconds."""
        at_us = self._scheduler.now_us + int(delay * 1_000_000)
        heapq.heappush(self._later, (at_us, next(self._order), callback, args))

    def run(self) -> None:
        """Run callbacks until `stop`."""
        while not self._is_stopping:
            for key, mask in self._selector.select(self._timeout()):
                self._call(cast(Socket, key.fileobj), mask)
            while self._later and self._later[0][0] <= self._scheduler.now_us:
                _, _, callback, args = heapq.heappop(self._later)
                self._soon.append((callback, args))
            for _ in range(len(self._soon)):
                callback, args = self._soon.popleft()
                callback(*args)
        self._selector.close()

    def _call(self, fd: Socket, mask: int) -> None:
        reader, _ = self._watched.get(fd, (None, None))
        if mask & EVENT_READ and reader is not None:
            reader()
        _, writer = self._watched.get(fd, (None, None))
        if mask & EVENT_WRITE and writer is not None:
            writer()

    def _timeout(self) -> float | None:
        if self._soon:
            return 0
        if not self._later:
            return None
        return max(0, self._later[0][0] - self._scheduler.now_us) / 1_000_000

    def stop(self) -> None:
        """Make `run` return; any thread may call this."""
        self._is_stopping = True
        self._selector.interrupt()
